//! The log contains no secret, even at the most verbose level.

use serde_json::json;

use crate::support::backends::{fresh_database, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, http_client, id, root_of};
use crate::support::http_response::Answer;
use crate::support::poll;
use crate::support::process::Server;
use crate::support::raw_http::{UPGRADE, exchange, request};

const SERVER_SECRET: &str = "canary-of-the-server-0123456789";
const ENVIRONMENT_KEY: &str = "sk-canary-of-the-environment";
const STORED_KEY: &str = "sk-canary-of-the-shelf";
const PASSWORD: &str = "canary of a password";
const WRONG_PASSWORD: &str = "canary of a wrong password";
const NEW_PASSWORD: &str = "canary of a new password";
const INVITE: &str = "canary-of-an-invite";
const DATABASE_PASSWORD: &str = "canary-of-the-database";
const SAID: &str = "canary of what was said";
const ANSWERED: &str = "canary of what was answered";

/// A client that keeps its credentials and sends requests.
struct Caller {
    base: String,
    cookie: String,
}

impl Caller {
    fn to(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        http_client()
            .request(method, format!("{}{path}", self.base))
            .header("cookie", &self.cookie)
    }

    async fn post(&self, path: &str, body: serde_json::Value) -> Answer {
        Answer::to(self.to(reqwest::Method::POST, path).json(&body)).await
    }
}

fn token_of(answer: &Answer) -> String {
    let cookie = cookie_of(answer);
    let (_, token) = cookie.split_once('=').expect("a cookie has a value");
    token.to_owned()
}

fn cookie_of(answer: &Answer) -> String {
    let cookie = answer.header("set-cookie").split(';').next();
    cookie.expect("a session cookie is set").to_owned()
}

/// Calls everything that accepts a secret; returns the secrets that the server created.
async fn use_every_secret(server: &Server, upstream: &FakeProvider) -> Vec<String> {
    let base = server.url();
    let account = json!({"username": "ann", "password": PASSWORD, "display_name": "Ann"});
    let set_up = Answer::to(
        http_client()
            .post(format!("{base}/api/setup"))
            .json(&account),
    )
    .await;
    assert_eq!(set_up.status, 201);
    let mut ann = Caller {
        base: base.clone(),
        cookie: cookie_of(&set_up),
    };
    let mut made = vec![token_of(&set_up)];

    for password in [WRONG_PASSWORD, PASSWORD] {
        let body = json!({"username": "ann", "password": password});
        let signed_in = Answer::to(
            http_client()
                .post(format!("{base}/api/session"))
                .json(&body),
        )
        .await;
        if signed_in.status == 200 {
            made.push(token_of(&signed_in));
        }
    }
    let body = json!({"username": "ben", "password": PASSWORD, "display_name": "Ben", "invite_token": INVITE});
    let refused = Answer::to(http_client().post(format!("{base}/api/users")).json(&body)).await;
    assert!(refused.status >= 400, "{refused:?}");
    for path in [format!("/api/join/{INVITE}"), format!("/join/{INVITE}")] {
        let _ = Answer::to(http_client().get(format!("{base}{path}"))).await;
    }

    let key = ann.post("/api/api_keys", json!({"name": "k"})).await.json()["key"]
        .as_str()
        .unwrap()
        .to_owned();
    for path in ["/api/spaces", "/api/nowhere"] {
        let request_with_key = http_client()
            .get(format!("{base}{path}"))
            .header("authorization", format!("Bearer {key}"));
        let _ = Answer::to(request_with_key).await;
    }
    made.push(key.clone());

    provider(&ann, upstream).await;
    let space = conversation(&ann).await;
    made.extend(invitation(&ann, space).await);
    sockets(&base, &ann.cookie, &key).await;

    let change = json!({"password": NEW_PASSWORD, "current_password": PASSWORD});
    let changed = Answer::to(
        ann.to(reqwest::Method::PATCH, "/api/users/me")
            .json(&change),
    )
    .await;
    assert_eq!(changed.status, 200, "{changed:?}");
    ann.cookie = cookie_of(&changed);
    made.push(token_of(&changed));
    // Errors about invalid bodies do not quote the body.
    for body in [
        format!("{{\"password\": \"{PASSWORD}\", \"x\": 1}}"),
        PASSWORD.to_owned(),
        format!("{{\"password\": [\"{PASSWORD}\"]}}"),
    ] {
        let broken = ann
            .to(reqwest::Method::POST, "/api/session")
            .header("content-type", "application/json");
        let _ = Answer::to(broken.body(body)).await;
    }
    made
}

async fn provider(ann: &Caller, upstream: &FakeProvider) {
    let body = json!({"name": "Near", "base_url": upstream.base_url(), "model": "m", "api_key": STORED_KEY});
    let path = format!(
        "/api/providers/{}",
        id(&ann.post("/api/providers", body).await.json())
    );
    upstream.next(ResponseScript::json(
        401,
        &json!({"error": {"message": format!("Wrong: {STORED_KEY}")}}),
    ));
    for script in [
        None,
        Some(ResponseScript::status(500)),
        Some(ResponseScript::stream().error(STORED_KEY)),
    ] {
        script.into_iter().for_each(|it| upstream.next(it));
        assert_eq!(
            ann.post(&format!("{path}/test"), json!({})).await.status,
            200
        );
    }
    let _ = Answer::to(ann.to(reqwest::Method::GET, &format!("{path}/models"))).await;
}

/// Creates an invite, previews it and joins; returns its token and the guest's.
async fn invitation(ann: &Caller, space: i64) -> [String; 2] {
    let invite = json!({"role": "guest", "max_uses": 2, "expires_in_hours": 1});
    let invites = format!("/api/spaces/{space}/invites");
    let token = ann.post(&invites, invite).await.json()["token"].clone();
    let token = token.as_str().expect("an invite has a token").to_owned();
    let join_url = format!("{}/api/join/{token}", ann.base);
    assert_eq!(Answer::to(http_client().get(&join_url)).await.status, 200);
    let _ = Answer::to(http_client().get(format!("{}/join/{token}", ann.base))).await;
    let guest = http_client()
        .post(&join_url)
        .json(&json!({"display_name": "Gast"}));
    let guest = Answer::to(guest).await;
    assert!(guest.status < 300, "{guest:?}");
    [token, token_of(&guest)]
}

/// Posts a message that the provider of the environment answers; returns the space.
async fn conversation(ann: &Caller) -> i64 {
    let space = ann
        .post(
            "/api/spaces",
            json!({"name": "Room", "user_turn_debounce_ms": 0}),
        )
        .await
        .json();
    let card = json!({"name": "Mina", "description": SAID});
    let mina = ann.post("/api/characters", card).await.json();
    let memberships = format!("/api/spaces/{}/memberships", id(&space));
    assert_eq!(
        ann.post(&memberships, json!({"character_id": id(&mina)}))
            .await
            .status,
        201
    );
    let messages = format!("/api/conversations/{}/messages", root_of(&space));
    let posted = ann.post(&messages, json!({"content": SAID})).await.json();
    let run = format!(
        "/api/runs/{}",
        posted["run"]["id"].as_str().expect("a run is planned")
    );
    poll::until("the reply of the character", async || {
        let run = Answer::to(ann.to(reqwest::Method::GET, &run)).await.json();
        (run["status"] == "succeeded").then_some(())
    })
    .await;
    let told = Answer::to(ann.to(reqwest::Method::GET, &messages)).await;
    assert!(
        told.text.contains(SAID) && told.text.contains(ANSWERED),
        "{}",
        told.text
    );
    id(&space)
}

async fn sockets(base: &str, cookie: &str, key: &str) {
    let bearer = format!("Bearer {key}");
    let host = base.strip_prefix("http://");
    for headers in [
        vec![("Cookie", cookie), ("Origin", base)],
        vec![("Cookie", cookie), ("Origin", "https://evil.example")],
        vec![("Authorization", bearer.as_str())],
    ] {
        let headers = [&headers[..], &UPGRADE].concat();
        let _ = exchange(base, request("GET /ws HTTP/1.1", host, &headers)).await;
    }
}

on_sqlite! {
    async fn the_log_contains_no_secrets_and_no_message_texts(backend) {
        let database = fresh_database(&backend).await;
        let upstream = FakeProvider::start().await;
        upstream.reply_with(ANSWERED);
        let base_url = upstream.base_url();
        // PostgreSQL without authentication accepts any password; a test database that has one
        // keeps it.
        let with_password = format!(":{DATABASE_PASSWORD}@");
        let database_url = match database.url().matches(':').count() {
            2 => database.url().replacen('@', &with_password, 1),
            _ => database.url().to_owned(),
        };
        let env = [
            ("DATABASE_URL", database_url.as_str()),
            ("RUST_LOG", "trace"),
            ("TROUPE_SECRET_KEY", SERVER_SECRET),
            ("TROUPE_LLM_BASE_URL", base_url.as_str()),
            ("TROUPE_LLM_API_KEY", ENVIRONMENT_KEY),
            ("TROUPE_LLM_MODEL", "m"),
        ];
        let mut server = Server::start(&database, &env).await;

        let made = use_every_secret(&server, &upstream).await;

        server.sigterm();
        assert!(server.wait_exit().await.success());
        let log = server.output();
        assert!(log.contains("TRACE"), "the log contains trace lines");
        assert_eq!(upstream.seen(upstream.n_requests() - 1).header("authorization").map(str::len), Some(7 + ENVIRONMENT_KEY.len()));
        let planted = [SERVER_SECRET, ENVIRONMENT_KEY, STORED_KEY, DATABASE_PASSWORD, PASSWORD, WRONG_PASSWORD, NEW_PASSWORD, INVITE, SAID, ANSWERED];
        let all = planted.into_iter().chain(made.iter().map(String::as_str));
        let found: Vec<String> = all
            .filter_map(|secret| {
                let line = log.lines().find(|it| it.contains(secret))?;
                Some(format!("{secret}: {line}"))
            })
            .collect();
        eprintln!("{} secrets in {} lines: {} hits", planted.len() + made.len(), log.lines().count(), found.len());
        assert!(found.is_empty(), "{found:#?}");
    }
}

#[test]
fn the_debug_output_of_the_settings_contains_no_secrets() {
    let env = [
        ("DATABASE_URL", "postgres://me:hunter22@db/troupe"),
        ("REDIS_URL", "redis://:hunter22@cache"),
        ("TROUPE_SECRET_KEY", "hunter22 hunter22"),
        ("TROUPE_LLM_BASE_URL", "https://api.example/v1"),
        ("TROUPE_LLM_API_KEY", "sk-hunter22"),
        ("TROUPE_LLM_MODEL", "m"),
    ];
    let value = |name: &str| env.iter().find(|it| it.0 == name).map(|it| it.1.to_owned());

    let shown = format!("{:?}", troupe::config::Config::read(value).unwrap());

    assert!(!shown.contains("hunter22"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_capture_contains_a_line_about_a_request() {
    // Checks that the log is captured at all: a request must leave a line in it.
    let database = fresh_database(&crate::support::backends::TestBackend::Sqlite).await;
    let server = Server::start(&database, &[("RUST_LOG", "trace")]).await;
    let admin = HttpClient::set_up(&server.url(), "admin").await;
    expect(200, admin.get("/api/session").await);

    poll::until("a log line about the request", async || {
        server.output().contains("request.id").then_some(())
    })
    .await;
}
