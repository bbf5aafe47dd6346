//! The fixture of the `/v1` tests: a server with a scripted model, and a client with its admin's
//! key.

use std::sync::Arc;

use serde_json::{Value, json};
use troupe::app::App;

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::HttpClient;
use crate::support::poll;
use crate::support::test_space::{SHORT_LEASES, model_env};
use crate::support::v1_client::V1Client;

/// The server, its fake provider and a client of `/v1`.
pub struct V1Fixture {
    pub app: TestApp,
    pub upstream: Arc<FakeProvider>,
    pub admin: HttpClient,
    pub program: V1Client,
}

impl V1Fixture {
    pub async fn open(backend: TestBackend) -> V1Fixture {
        V1Fixture::open_with(backend, &[]).await
    }

    /// Like `open`, with additional settings; registration is open.
    pub async fn open_with(backend: TestBackend, env: &[(&str, &str)]) -> V1Fixture {
        V1Fixture::open_all(backend, env, |_| {}).await
    }

    /// Like `open`, with a change of the app before the server listens.
    pub async fn open_changed(backend: TestBackend, change: impl FnOnce(&mut App)) -> V1Fixture {
        V1Fixture::open_all(backend, &[], change).await
    }

    async fn open_all(
        backend: TestBackend,
        env: &[(&str, &str)],
        change: impl FnOnce(&mut App),
    ) -> V1Fixture {
        let upstream = Arc::new(FakeProvider::start().await);
        let base_url = upstream.base_url();
        let registration = [("TROUPE_OPEN_REGISTRATION", "true")];
        let env = [SHORT_LEASES, &registration, &model_env(&base_url), env].concat();
        let app = TestApp::start_changed(backend, &env, change).await;
        let admin = app.admin().await;
        let program = V1Client::new(&admin).await;
        V1Fixture {
            app,
            upstream,
            admin,
            program,
        }
    }

    /// Starts another node of the same installation, with the same model.
    pub async fn second_node(&self) -> TestApp {
        self.second_node_with(&[]).await
    }

    /// Like `second_node`, with additional settings.
    pub async fn second_node_with(&self, env: &[(&str, &str)]) -> TestApp {
        let base_url = self.upstream.base_url();
        let env = [SHORT_LEASES, &model_env(&base_url), env].concat();
        self.app.start_second_node(&env).await
    }

    /// Adds a provider of this kind with one model of this name.
    pub async fn add_model(&self, kind: &str, model: &str) {
        let base_url = self.upstream.base_url();
        let provider = json!({ "name": model, "kind": kind, "model": model, "base_url": base_url });
        let (status, made) = self.admin.post("/api/providers", provider).await;
        assert_eq!(status, 201, "{made}");
    }

    /// The number of rows of a table.
    pub async fn n_rows(&self, table: &str) -> i64 {
        let mut facts = DatabaseFacts::open(&self.app.database).await;
        facts
            .number(&format!("SELECT CAST(count(*) AS TEXT) FROM {table}"))
            .await
    }

    /// Waits until a response has this status, and returns it.
    pub async fn wait_for_status(&self, id: &str, status: &str) -> Value {
        let path = format!("/responses/{id}");
        poll::until(&format!("{id} becomes {status}"), async || {
            let (_, response) = self.program.get(&path).await;
            (response["status"] == status).then_some(response)
        })
        .await
    }

    /// Closes this node and returns the fixture for another one.
    pub async fn moved_to(self, node: TestApp) -> V1Fixture {
        self.app.close().await;
        V1Fixture {
            program: self.program.with_base(&node.base),
            upstream: self.upstream,
            admin: self.admin,
            app: node,
        }
    }

    pub async fn close(self) {
        self.app.close().await;
    }
}

/// The text of a response.
pub fn text(response: &Value) -> String {
    let items = response["output"]
        .as_array()
        .expect("`output` is not a list");
    let messages = items.iter().filter(|it| it["type"] == "message");
    let parts = messages.filter_map(|it| it["content"][0]["text"].as_str());
    parts.collect()
}

pub fn id(response: &Value) -> &str {
    response["id"].as_str().expect("the response has no id")
}

/// The types of events, without the prefix `response.`.
pub fn kinds(events: &[Value]) -> Vec<String> {
    let kind = |it: &Value| it["type"].as_str().unwrap().replacen("response.", "", 1);
    events.iter().map(kind).collect()
}

/// All deltas of the text.
pub fn deltas(events: &[Value]) -> Vec<&str> {
    let deltas = events
        .iter()
        .filter(|it| it["type"] == "response.output_text.delta");
    deltas.map(|it| it["delta"].as_str().unwrap()).collect()
}

/// A response without the fields that always differ: ids and times.
pub fn plain(response: &Value) -> Value {
    let mut plain = response.clone();
    for name in ["id", "created_at", "completed_at"] {
        plain[name] = json!(null);
    }
    for item in plain["output"].as_array_mut().unwrap() {
        item["id"] = json!(null);
    }
    plain
}

/// The prompt of a request, as role and text.
pub fn prompt_lines(body: &Value) -> Vec<(String, String)> {
    let word = |it: &Value| it.as_str().unwrap().to_owned();
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .map(|it| (word(&it["role"]), word(&it["content"])))
        .collect()
}

/// The texts of the prompt of a request.
pub fn prompt_texts(body: &Value) -> Vec<String> {
    prompt_lines(body).into_iter().map(|it| it.1).collect()
}

/// The declaration of a function.
pub fn function(name: &str) -> Value {
    let parameters = json!({ "type": "object", "properties": { "x": { "type": "integer" } } });
    json!({ "type": "function", "name": name, "parameters": parameters })
}

/// The output of a function call, as an input item.
pub fn output(call_id: &str, output: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": call_id, "output": output })
}

/// The types of the items of a response.
pub fn types(response: &Value) -> Vec<&str> {
    let items = response["output"]
        .as_array()
        .expect("`output` is not a list");
    items
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect()
}

/// The prompt of a request, one line for each message: role, text, ids of its calls, id of the call
/// that it answers.
pub fn lines(body: &Value) -> Vec<String> {
    let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let line = |it: &Value| {
        let calls = it["tool_calls"].as_array().into_iter().flatten();
        let calls: Vec<String> = calls.map(|it| word(&it["id"])).collect();
        let (role, text, answers) = (
            word(&it["role"]),
            word(&it["content"]),
            word(&it["tool_call_id"]),
        );
        format!("{role}|{text}|{}|{answers}", calls.join(","))
    };
    body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(line)
        .collect()
}
