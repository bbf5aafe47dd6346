//! Tests of the log line at the end of each response.

use serde_json::{Value, json};

use super::fixture::id;
use crate::support::backends::{TestBackend, TestDatabase, fresh_database, on_both};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, http_client};
use crate::support::poll;
use crate::support::process::Server;
use crate::support::test_space::{SHORT_LEASES, model_env};
use crate::support::v1_client::V1Client;
use crate::support::ws_client::{WsClient, connect_with_key};

const INPUT: &str = "canary of the input";
const OUTPUT: &str = "canary of the output";

/// A server that logs JSON, and a client with a key. The server is dropped first, the database last.
struct LoggingServer {
    server: Server,
    program: V1Client,
    upstream: FakeProvider,
    _database: TestDatabase,
}

impl LoggingServer {
    async fn open(backend: TestBackend, env: &[(&str, &str)]) -> LoggingServer {
        let database = fresh_database(&backend).await;
        let upstream = FakeProvider::start().await;
        upstream.reply_with(OUTPUT);
        let base_url = upstream.base_url();
        let log_format = [("LOG_FORMAT", "json")];
        let env = [SHORT_LEASES, &model_env(&base_url), &log_format, env].concat();
        let server = Server::start(&database, &env).await;
        let person = HttpClient::set_up(&server.url(), "ann").await;
        let program = V1Client::new(&person).await;
        LoggingServer {
            server,
            program,
            upstream,
            _database: database,
        }
    }

    /// Creates a response with this script and these fields in addition to its input.
    async fn respond(&self, script: ResponseScript, mut body: Value) -> Value {
        self.upstream.next(script);
        body["input"] = json!(INPUT);
        self.program.respond(body).await
    }

    /// The lines about the end of this response.
    fn lines_about(&self, id: &str) -> Vec<Value> {
        let output = self.server.output();
        let lines = output
            .lines()
            .filter_map(|it| serde_json::from_str(it).ok());
        lines
            .filter(|it: &Value| it["id"] == *id && it["surface"].is_string())
            .collect()
    }

    /// Waits for the line about the end of this response.
    async fn line_about(&self, id: &str) -> Value {
        let what = format!("a line about {id}");
        poll::until(&what, async || self.lines_about(id).pop()).await
    }
}

/// Asserts that a line has no other fields than the listed ones.
fn assert_fields(line: &Value) {
    let names = line.as_object().expect("a line is an object").keys();
    let is_known = |it: &&String| {
        FIELDS.contains(&it.as_str()) || OF_EVERY_LINE.contains(&it.as_str()) || it.ends_with(".id")
    };
    let others: Vec<&String> = names.filter(|it| !is_known(it)).collect();
    assert!(others.is_empty(), "{others:?} in {line}");
}

/// A script that ends with these tokens.
fn script(finish: &str) -> ResponseScript {
    let words = ResponseScript::stream().role().words(OUTPUT);
    words.finish(finish).usage(7, 3).done()
}

/// The fields of a line, in its order; those without a value are left out.
const FIELDS: [&str; 21] = [
    "request_id",
    "surface",
    "id",
    "user_id",
    "key_prefix",
    "model",
    "provider",
    "status",
    "reason",
    "stored",
    "stream",
    "background",
    "attempt",
    "duration_ms",
    "first_token_ms",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "model_calls",
    "tool_calls",
    "client_left",
];

/// The fields that every log line has.
const OF_EVERY_LINE: [&str; 6] = ["timestamp", "level", "message", "target", "span", "spans"];

/// Status, reason and tokens.
fn result(line: &Value) -> Value {
    let names = ["status", "reason", "input_tokens", "output_tokens"];
    names.map(|it| line[it].clone()).into_iter().collect()
}

on_both! {
    async fn each_response_has_one_log_line_when_it_ends(backend) {
        let fixture = LoggingServer::open(backend, &[]).await;
        let completed = json!(["completed", null, 7, 3]);
        let mut expected = Vec::new();
        let mut expect = |response: &Value, wanted: &Value| expected.push((id(response).to_owned(), wanted.clone()));

        // Blocking, streamed, in the background and over the socket; stored and not.
        for store in [true, false] {
            let blocking = fixture.respond(script("stop"), json!({ "store": store })).await;
            expect(&blocking, &completed);
            fixture.upstream.next(script("stop"));
            let events = fixture.program.stream(json!({ "input": INPUT, "store": store })).await.rest().await;
            expect(&events.last().unwrap()["response"], &completed);
        }
        let queued = fixture.respond(script("stop"), json!({ "background": true })).await;
        fixture.line_about(id(&queued)).await;
        expect(&queued, &completed);
        let address = format!("{}/v1/responses", fixture.server.url().replacen("http", "ws", 1));
        let socket = WsClient::at(connect_with_key(&address, &fixture.program.key).await.unwrap());
        fixture.upstream.next(script("stop"));
        socket.send_text(&json!({ "type": "response.create", "model": "scripted", "input": INPUT }).to_string()).await;
        let last = socket.wait_for("the last event", |it| it["type"] == "response.completed").await;
        expect(&last["response"], &completed);

        // Incomplete, failed and canceled.
        let cut = fixture.respond(script("length"), json!({ "store": false })).await;
        expect(&cut, &json!(["incomplete", "max_output_tokens", 7, 3]));
        let failed = fixture.respond(ResponseScript::status(401), json!({})).await;
        expect(&failed, &json!(["failed", "upstream_error", null, null]));
        let canceled = fixture.respond(ResponseScript::hang_before_headers(), json!({ "background": true })).await;
        fixture.upstream.wait_for_requests(9).await;
        fixture.program.post(&format!("/responses/{}/cancel", id(&canceled)), json!({})).await;
        expect(&canceled, &json!(["cancelled", "cancelled", null, null]));
        fixture.upstream.next(ResponseScript::hang_before_headers());
        let mut reader = fixture.program.stream(json!({ "input": INPUT, "store": false })).await;
        let disconnected = reader.next().await.unwrap();
        drop(reader);
        expect(&disconnected["response"], &json!(["cancelled", "cancelled", null, null]));

        for (id, wanted) in &expected {
            let line = fixture.line_about(id).await;
            assert_eq!(result(&line), *wanted, "{line}");
            assert_fields(&line);
            assert_eq!((&line["provider"], &line["model"]), (&json!("environment"), &json!("scripted")), "{line}");
            assert_eq!((&line["surface"], &line["level"]), (&json!("responses"), &json!("INFO")));
            assert!(line["duration_ms"].is_number() && line["user_id"].is_string(), "{line}");
            let is_background = [self::id(&queued), self::id(&canceled)].contains(&id.as_str());
            assert_eq!(line["background"], is_background, "{line}");
            assert_eq!(line["request_id"].is_string(), !is_background, "{line}");
            assert_eq!(line["key_prefix"].is_string(), !is_background, "{line}");
            let has_output = wanted[3].is_number();
            assert_eq!(line["first_token_ms"].is_number(), has_output, "{line}");
            assert_eq!(line["client_left"], *id == self::id(&disconnected["response"]), "{line}");
        }

        fixture.server.sigterm();
        poll::until("the server has shut down", async || fixture.server.output().contains("shutdown complete").then_some(())).await;
        for (id, _) in &expected {
            assert_eq!(
                fixture.lines_about(id).len(),
                1,
                "not exactly one line: {:?}",
                fixture.lines_about(id),
            );
        }
        let output = fixture.server.output();
        assert!(!output.contains(INPUT) && !output.contains(OUTPUT), "{output}");
    }

    async fn a_response_that_no_task_runs_has_a_log_line_when_it_ends(backend) {
        let mut fixture = LoggingServer::open(backend, &[("TROUPE_WORKERS", "0")]).await;
        let queued = fixture.program.respond(json!({ "input": INPUT, "background": true })).await;
        fixture.program.post(&format!("/responses/{}/cancel", id(&queued)), json!({})).await;
        let canceled = fixture.line_about(id(&queued)).await;
        let hanging = ResponseScript::stream().role().words("One two ").hang();
        fixture.upstream.next(hanging);
        let mut reader = fixture.program.stream(json!({ "input": INPUT })).await;
        let seen = reader.next().await.unwrap();

        fixture.server.kill9();
        fixture.server.restart().await;

        let lost = fixture.line_about(id(&seen["response"])).await;
        assert_eq!(result(&lost), json!(["failed", "instance_lost", null, null]));
        assert_fields(&lost);
        assert_eq!(result(&canceled), json!(["cancelled", "cancelled", null, null]));
        assert_eq!(fixture.lines_about(id(&queued)).len(), 1);
    }

    async fn a_chat_completion_and_embeddings_have_one_line_each_and_no_content(backend) {
        let fixture = LoggingServer::open(backend, &[("RUST_LOG", "info,troupe=debug")]).await;
        fixture.upstream.always(script("stop"));
        let message = json!({ "role": "user", "content": INPUT });
        let chat = json!({ "model": "scripted", "messages": [message], "n": 2 });

        let (status, completion) = fixture.program.post("/chat/completions", chat.clone()).await;
        assert_eq!(status, 200, "{completion}");
        let line = fixture.line_about(id(&completion)).await;
        let embedded = json!({ "model": "troupe-ngram-256", "input": INPUT });
        assert_eq!(fixture.program.post("/embeddings", embedded).await.0, 200);
        let refused = json!({ "model": INPUT, "messages": [message] });
        assert_eq!(fixture.program.post("/chat/completions", refused).await.0, 404);

        assert_fields(&line);
        // The prompt of two answers counts once.
        assert_eq!(result(&line), json!(["completed", null, 7, 6]));
        assert_eq!(fixture.lines_about(id(&completion)).len(), 1);
        assert_eq!((&line["surface"], &line["stored"]), (&json!("chat_completions"), &json!(false)));
        assert_eq!((&line["model_calls"], &line["tool_calls"]), (&json!(2), &json!(0)));
        assert!(fixture.program.key.starts_with(line["key_prefix"].as_str().unwrap()), "{line}");
        let find = |name: &str, value: &str| {
            let output = fixture.server.output();
            let lines = output.lines().filter_map(|it| serde_json::from_str(it).ok());
            let mut lines = lines.filter(|it: &Value| it[name] == value);
            lines.next()
        };
        let of_embedding = poll::until("the line of the embeddings", async || find("surface", "embeddings")).await;
        assert_fields(&of_embedding);
        assert_eq!((&of_embedding["status"], &of_embedding["model"]), (&json!("completed"), &json!("troupe-ngram-256")));
        let refusal = poll::until("the line of the refusal", async || find("code", "model_not_found")).await;
        assert_eq!(refusal["level"], "DEBUG");
        let metrics = http_client().get(format!("{}/metrics", fixture.server.url())).send().await.unwrap().text().await.unwrap();
        for (surface, kind) in [("chat_completions", "model"), ("embeddings", "embedding")] {
            let sample = format!("troupe_v1_call_duration_seconds_count{{surface=\"{surface}\",model_kind=\"{kind}\",status=\"completed\"}} 1\n");
            assert!(metrics.contains(&sample), "{sample} in {metrics}");
        }
        let output = fixture.server.output();
        assert!(!output.contains(INPUT) && !output.contains(OUTPUT), "{output}");
    }
}
