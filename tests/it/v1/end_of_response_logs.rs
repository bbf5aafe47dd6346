//! Tests of the log line at the end of each response.

use serde_json::{Value, json};

use super::fixture::id;
use crate::support::backends::{TestBackend, TestDatabase, fresh_database, on_both};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::HttpClient;
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
            .filter(|it: &Value| it["response.id"] == *id && it["response.status"].is_string())
            .collect()
    }

    /// Waits for the line about the end of this response.
    async fn line_about(&self, id: &str) -> Value {
        let what = format!("a line about {id}");
        poll::until(&what, async || self.lines_about(id).pop()).await
    }
}

/// A script that ends with these tokens.
fn script(finish: &str) -> ResponseScript {
    let words = ResponseScript::stream().role().words(OUTPUT);
    words.finish(finish).usage(7, 3).done()
}

/// Status, reason, error and tokens.
fn result(line: &Value) -> Value {
    let names = [
        "response.status",
        "response.reason",
        "error",
        "llm.tokens_in",
        "llm.tokens_out",
    ];
    names.map(|it| line[it].clone()).into_iter().collect()
}

on_both! {
    async fn each_response_has_one_log_line_when_it_ends(backend) {
        let fixture = LoggingServer::open(backend, &[]).await;
        let completed = json!(["completed", null, null, 7, 3]);
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
        expect(&cut, &json!(["incomplete", "max_output_tokens", null, 7, 3]));
        let failed = fixture.respond(ResponseScript::status(401), json!({})).await;
        expect(&failed, &json!(["failed", null, "upstream_error", null, null]));
        let canceled = fixture.respond(ResponseScript::hang_before_headers(), json!({ "background": true })).await;
        fixture.upstream.wait_for_requests(9).await;
        fixture.program.post(&format!("/responses/{}/cancel", id(&canceled)), json!({})).await;
        expect(&canceled, &json!(["cancelled", "cancelled", null, null, null]));
        fixture.upstream.next(ResponseScript::hang_before_headers());
        let mut reader = fixture.program.stream(json!({ "input": INPUT, "store": false })).await;
        let disconnected = reader.next().await.unwrap();
        drop(reader);
        expect(&disconnected["response"], &json!(["cancelled", "cancelled", null, null, null]));

        let (mut users, mut nodes) = (Vec::new(), Vec::new());
        for (id, wanted) in &expected {
            let line = fixture.line_about(id).await;
            assert_eq!(result(&line), *wanted, "{line}");
            let model = (&line["llm.provider"], &line["llm.model"]);
            assert_eq!(model, (&json!("environment"), &json!("scripted")), "{line}");
            assert!(line["duration_ms"].is_u64() || line["duration_ms"].is_i64(), "{line}");
            let is_background = [self::id(&queued), self::id(&canceled)].contains(&id.as_str());
            assert_eq!(line["queue_wait_ms"].is_number(), is_background, "{line}");
            assert_eq!(line["level"], "INFO");
            users.push(line["user.id"].clone());
            nodes.push(line["node.id"].clone());
        }
        users.dedup();
        nodes.dedup();
        assert!(users.len() == 1 && users[0].is_string(), "{users:?}");
        assert!(nodes.len() == 1 && nodes[0].is_string(), "{nodes:?}");

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
        assert_eq!(result(&lost), json!(["failed", null, "instance_lost", null, null]));
        assert!(lost["user.id"].is_string() && lost["node.id"].is_string(), "{lost}");
        assert_eq!(result(&canceled), json!(["cancelled", "cancelled", null, null, null]));
        assert!(canceled["queue_wait_ms"].is_number(), "{canceled}");
        assert_eq!(fixture.lines_about(id(&queued)).len(), 1);
    }
}
