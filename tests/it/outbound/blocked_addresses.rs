//! Every way in which a base URL reaches the server, tried with every address: no connection is
//! made.

use base::clock::Clock;
use base::ids::ProviderId;
use sea_orm::ActiveModelTrait;
use sea_orm::ActiveValue::Set;
use serde_json::{Value, json};
use troupe::app::App;
use troupe::providers::provider;
use troupe::server::check;

use super::addresses::{NAMES, base_urls, is_a_name};
use crate::support::app::{TestApp, settings};
use crate::support::backends::{TestBackend, fresh_database, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::poll;
use crate::support::test_resolver::TestResolver;
use crate::support::trap_server::TrapServer;

/// Settings of a server that is not bound to loopback.
const PRIVATE_BLOCKED: &[(&str, &str)] = &[
    ("TROUPE_ALLOW_PRIVATE_PROVIDERS", "false"),
    ("LIMIT_POSTS_PER_MINUTE", "0"),
];

/// Settings of a server at home.
const PRIVATE_ALLOWED: &[(&str, &str)] = &[("TROUPE_ALLOW_PRIVATE_PROVIDERS", "true")];

/// An admin's provider at another address, and a conversation that uses it.
struct ProviderFixture {
    app: TestApp,
    admin: HttpClient,
    provider: i64,
    conversation: i64,
}

impl ProviderFixture {
    async fn set_up(backend: TestBackend, env: &[(&str, &str)]) -> ProviderFixture {
        let app = TestApp::start_with_resolver(backend, env, TestResolver::new(NAMES)).await;
        let admin = app.admin().await;
        let body = json!({"name": "Far", "base_url": "https://api.example/v1", "model": "m", "is_default": true});
        let provider = id(&expect(201, admin.post("/api/providers", body).await));
        let space = admin
            .create_space("Room", json!({"user_turn_debounce_ms": 0}))
            .await;
        let mina = admin.create_character("Mina", None).await;
        admin.add_character(&space, &mina).await;
        ProviderFixture {
            conversation: root_of(&space),
            app,
            admin,
            provider,
        }
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/providers/{}{rest}", self.provider)
    }

    /// Stores an address in the row, without the check of the endpoint.
    async fn store(&self, base_url: &str) {
        let row = provider::ActiveModel {
            id: Set(ProviderId(self.provider)),
            base_url: Set(Some(base_url.to_owned())),
            ..Default::default()
        };
        let stored = self
            .app
            .app
            .db
            .write(|tx| Box::pin(async move { row.update(tx).await }));
        let _: provider::Model = stored
            .await
            .unwrap_or_else(|error: sea_orm::DbErr| panic!("{error}"));
    }

    /// Returns how the reply to a message ended.
    async fn reply(&self) -> Value {
        let posted = self.admin.post_message(self.conversation, "Hi.", None);
        let run = expect(201, posted.await)["run"]["id"].clone();
        let path = format!("/api/runs/{}", run.as_str().expect("a run is planned"));
        poll::until("the end of the run", async || {
            let run = expect(200, self.admin.get(&path).await);
            let is_over = !["queued", "running"].contains(&run["status"].as_str()?);
            is_over.then_some(run)
        })
        .await
    }
}

/// Sends an address to six endpoints of a running server; each must reject it.
async fn try_all_endpoints(fixture: &ProviderFixture, base_url: &str) {
    let new = json!({"name": "x", "base_url": base_url, "model": "m", "api_key": "sk-planted"});
    let made = fixture.admin.post("/api/providers", new).await;
    let change = json!({"base_url": base_url});
    let changed = fixture.admin.patch(&fixture.path(""), change).await;
    match is_a_name(base_url) {
        // A name is resolved and checked only when it is called.
        true => {
            let made = format!("/api/providers/{}", id(&expect(201, made)));
            expect(200, changed);
            let tested = fixture.admin.post(&format!("{made}/test"), json!({})).await;
            assert_eq!(expect(200, tested)["ok"], false, "{base_url}");
            assert_eq!(fixture.admin.delete(&made).await.0, 204);
        }
        false => {
            let refused = (422, "invalid_value".to_owned());
            assert_eq!(refusal(&made), refused, "{base_url}");
            assert_eq!(refusal(&changed), refused, "{base_url}");
        }
    }

    fixture.store(base_url).await;
    let tested = fixture.admin.post(&fixture.path("/test"), json!({})).await;
    let tested = expect(200, tested);
    assert_eq!(tested["ok"], false, "{base_url}: {tested}");
    let listed = fixture.admin.get(&fixture.path("/models")).await;
    assert_eq!(
        refusal(&listed),
        (503, "upstream_error".to_owned()),
        "{base_url}"
    );
    let run = fixture.reply().await;
    // Reported without a call or a retry.
    assert_eq!(
        run["error"]["code"], "no_provider",
        "{base_url}: {}",
        run["error"]
    );
}

on_sqlite! {
    async fn no_endpoint_reaches_a_private_address(backend) {
        let decoy = TrapServer::start();
        let fixture = ProviderFixture::set_up(backend, PRIVATE_BLOCKED).await;
        let all = base_urls(decoy.port);
        assert!(all.len() >= 80);

        for base_url in &all {
            try_all_endpoints(&fixture, base_url).await;
        }

        eprintln!("{} addresses at 5 endpoints: {} connections", all.len(), decoy.n_came());
        assert_eq!(decoy.n_came(), 0);
        fixture.app.close().await;
    }

    async fn no_environment_address_reaches_a_private_address(backend) {
        let decoy = TrapServer::start();
        let database = fresh_database(&backend).await;
        let folder = tempfile::tempdir().unwrap();
        let mut n_started = 0;

        for base_url in base_urls(decoy.port) {
            let env = [PRIVATE_BLOCKED, &[("TROUPE_LLM_BASE_URL", base_url.as_str()), ("TROUPE_LLM_MODEL", "m")]].concat();
            let config = settings(&database, folder.path(), &env);
            let names = TestResolver::new(NAMES);
            let mut report = Vec::new();

            let started = App::build_with_resolver(config.clone(), Clock::manual(), names.clone()).await;
            let checked = check::print_report(&config, names, &mut report).await;

            let report = String::from_utf8(report).unwrap();
            assert!(checked.is_err() && report.contains("wrong"), "{base_url}: {report}");
            assert_eq!(started.is_ok(), is_a_name(&base_url), "{base_url}");
            match started {
                Ok(app) => {
                    n_started += 1;
                    assert!(report.contains("wrong provider: "), "{report}");
                    app.db.clone().close().await;
                }
                Err(error) => assert!(error.to_string().contains("TROUPE_LLM_BASE_URL"), "{error}"),
            }
        }

        eprintln!("the server started with {n_started} names and no address: {} connections", decoy.n_came());
        assert_eq!(decoy.n_came(), 0);
    }

    async fn check_calls_no_stored_private_address(backend) {
        let decoy = TrapServer::start();
        let fixture = ProviderFixture::set_up(backend, PRIVATE_BLOCKED).await;

        for base_url in base_urls(decoy.port) {
            fixture.store(&base_url).await;
            let mut report = Vec::new();

            let checked = check::print_report(&fixture.app.app.config, TestResolver::new(NAMES), &mut report).await;

            let report = String::from_utf8(report).unwrap();
            assert!(checked.is_err() && report.contains("wrong provider: "), "{base_url}: {report}");
        }

        eprintln!("by `check`: {} connections", decoy.n_came());
        assert_eq!(decoy.n_came(), 0);
        fixture.app.close().await;
    }
}

/// Ensures that the tests above could detect a connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_endpoints_reach_private_addresses_where_allowed() {
    let decoy = TrapServer::start();
    let fixture = ProviderFixture::set_up(TestBackend::Sqlite, PRIVATE_ALLOWED).await;
    let mut hosts = vec!["127.0.0.1", "2130706433", "home.example"];
    if decoy.has_ipv6() {
        hosts.extend(["[::1]", "six.example"]);
    }

    for host in hosts {
        let before = decoy.n_came();
        fixture
            .store(&format!("http://{host}:{}/v1", decoy.port))
            .await;
        let _ = fixture.admin.post(&fixture.path("/test"), json!({})).await;

        assert!(decoy.n_came() > before, "{host}");
    }
    fixture.app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cloud_metadata_stays_blocked_where_private_addresses_are_allowed() {
    let fixture = ProviderFixture::set_up(TestBackend::Sqlite, PRIVATE_ALLOWED).await;

    for host in [
        "169.254.169.254",
        "2852039166",
        "0.0.0.0",
        "100.100.100.200",
        "224.0.0.1",
        "255.255.255.255",
        "[::]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "metadata.google.internal",
        "any.example",
    ] {
        fixture.store(&format!("http://{host}/v1")).await;

        let tested = fixture.admin.post(&fixture.path("/test"), json!({})).await;

        let message = expect(200, tested)["error"]["message"].clone();
        let message = message.as_str().unwrap();
        assert!(message.contains("a cloud's metadata"), "{host}: {message}");
    }
    fixture.app.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_is_not_followed_and_is_reported() {
    let decoy = TrapServer::start();
    let upstream = FakeProvider::start().await;
    let fixture = ProviderFixture::set_up(TestBackend::Sqlite, PRIVATE_ALLOWED).await;
    fixture.store(&upstream.base_url()).await;
    let targets = [
        format!("http://127.0.0.1:{}/v1/chat/completions", decoy.port),
        format!("//127.0.0.1:{}/v1/chat/completions", decoy.port),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "/v1/elsewhere".to_owned(),
    ];

    for target in &targets {
        for status in [301, 302, 303, 307, 308] {
            let redirect = ResponseScript::status(status).header("Location", target);
            upstream.next(redirect.clone());
            let tested = fixture.admin.post(&fixture.path("/test"), json!({})).await;
            let message = expect(200, tested)["error"]["message"].to_string();
            assert!(message.contains("redirect"), "{message}");
        }
    }
    upstream.next(ResponseScript::status(307).header("Location", &targets[0]));
    let run = fixture.reply().await;

    assert!(
        run["error"]["message"]
            .as_str()
            .is_some_and(|it| it.contains("redirect")),
        "{run}"
    );
    eprintln!("by redirects: {} connections", decoy.n_came());
    assert_eq!(decoy.n_came(), 0);
    assert_eq!(upstream.n_requests(), 21, "no request was retried");
    fixture.app.close().await;
}
