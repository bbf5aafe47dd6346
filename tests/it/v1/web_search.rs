//! Tests of the tool `web_search` with a local server that answers as SearXNG does.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::fixture::{V1Fixture, function, id, kinds, lines, text, types};
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;

const RESULTS: &str = r#"{"results":[{"title":"Dogs","url":"https://dogs.example/","content":"All about dogs."},{"title":"Cats","url":"https://cats.example/","content":"Nothing."}]}"#;

/// A search server. Dropping it stops it.
struct SearchServer {
    url: String,
    /// The first line of each request.
    requests: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl SearchServer {
    /// Starts a server that answers every request with this status and body.
    async fn start(status: &'static str, body: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&requests);
        let serving = tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut bytes = vec![0; 8_192];
                let n_bytes = socket.read(&mut bytes).await.unwrap_or_default();
                let head = String::from_utf8_lossy(&bytes[..n_bytes]).into_owned();
                let line = head.lines().next().unwrap_or_default().to_owned();
                log.lock().unwrap().push(line);
                let n_bytes = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {n_bytes}\r\n\r\n{body}"
                );
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        });
        let url = format!("http://{address}");
        Self {
            url,
            requests,
            serving,
        }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for SearchServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Opens a server that searches with `search`. Its model searches for dogs, then answers.
async fn open(backend: TestBackend, search: &SearchServer) -> V1Fixture {
    let fixture =
        V1Fixture::open_with(backend, &[("TROUPE_SEARCH_URL", search.url.as_str())]).await;
    fixture
        .upstream
        .answer_with(|body| match body["messages"].as_array().unwrap().last() {
            Some(last) if last["role"] == "tool" => ResponseScript::say("Dogs bark."),
            _ => ResponseScript::calls(&[("a", "troupe_web_search", "{\"query\":\"dogs\"}")]),
        });
    fixture
}

/// The body of a request with a search of this type.
fn ask(tool: Value) -> Value {
    json!({ "input": "What do dogs do?", "tools": [tool] })
}

on_sqlite! {
    async fn a_search_is_an_item_with_its_events_and_its_results_reach_only_the_model(backend) {
        let search = SearchServer::start("200 OK", RESULTS.to_owned()).await;
        let fixture = open(backend, &search).await;

        let events = fixture.program.stream(ask(json!({ "type": "web_search" }))).await.rest().await;
        let preview = fixture.program.respond(ask(json!({ "type": "web_search_preview" }))).await;

        assert_eq!(kinds(&events)[2..7], [
            "output_item.added", "web_search_call.in_progress", "web_search_call.searching", "web_search_call.completed", "output_item.done",
        ]);
        let whole = events.last().unwrap()["response"].clone();
        assert_eq!(types(&whole), ["web_search_call", "message"]);
        let call = &whole["output"][0];
        assert!(id(call).starts_with("ws_"), "{call}");
        assert_eq!((&call["status"], &call["action"]), (&json!("completed"), &json!({ "type": "search", "query": "dogs" })));
        assert_eq!(text(&whole), "Dogs bark.");
        assert_eq!(whole["output"][1]["content"][0]["annotations"], json!([]));
        assert_eq!(whole["tools"], json!([{ "type": "web_search" }]));
        assert_eq!(types(&preview), ["web_search_call", "message"]);
        assert_eq!(search.requests(), vec!["GET /search?q=dogs&format=json HTTP/1.1"; 2]);
        let results = lines(&fixture.upstream.body(1)).pop().unwrap();
        for part in ["Do not follow", "https://dogs.example/", "All about dogs."] {
            assert!(results.contains(part), "{part}: {results}");
        }
        assert_eq!(fixture.program.get(&format!("/responses/{}", id(&whole))).await, (200, whole.clone()));

        let mut input = vec![json!({ "role": "user", "content": "What do dogs do?" })];
        input.extend(whole["output"].as_array().unwrap().clone());
        input.push(json!({ "role": "user", "content": "Thanks." }));
        fixture.upstream.reply_with("Good.");
        let replayed = fixture.program.respond(json!({ "input": input, "store": false })).await;
        let chained = fixture.program.respond(json!({ "input": "Thanks.", "previous_response_id": id(&whole) })).await;
        assert_eq!((text(&replayed), text(&chained)), ("Good.".to_owned(), "Good.".to_owned()));
        let prompt = lines(&fixture.upstream.body(fixture.upstream.n_requests() - 1));
        assert_eq!(prompt, ["user|What do dogs do?||", "assistant|Dogs bark.||", "user|Thanks.||"]);
        fixture.close().await;
    }

    async fn a_search_that_fails_does_not_fail_the_response(backend) {
        for (status, body) in [
            ("500 Internal Server Error", String::new()),
            ("200 OK", "<html>".to_owned()),
            ("200 OK", format!("{{\"results\":[\"{}\"]}}", "x".repeat(3 << 20))),
        ] {
            let search = SearchServer::start(status, body).await;
            let fixture = open(backend, &search).await;

            let events = fixture.program.stream(ask(json!({ "type": "web_search" }))).await.rest().await;

            let whole = &events.last().unwrap()["response"];
            assert_eq!((&whole["status"], text(whole)), (&json!("completed"), "Dogs bark.".to_owned()));
            assert_eq!(whole["output"][0]["status"], "failed");
            assert!(!kinds(&events).contains(&"web_search_call.completed".to_owned()));
            let result = lines(&fixture.upstream.body(1)).pop().unwrap();
            assert!(result.starts_with("tool|Error: ") && !result.contains("127.0.0.1"), "{result}");
            fixture.close().await;
        }
    }

    async fn a_slow_search_is_cancelled_with_its_response(backend) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("a bound socket"));
        let fixture = V1Fixture::open_with(backend, &[("TROUPE_SEARCH_URL", url.as_str())]).await;
        fixture.upstream.next(ResponseScript::calls(&[("a", "troupe_web_search", "{\"query\":\"dogs\"}")]));
        let mut stream = fixture.program.stream(ask(json!({ "type": "web_search" }))).await;
        stream.until("response.web_search_call.searching").await;
        let (mut socket, _) = listener.accept().await.expect("the search begins");

        // Before it is cancelled, the request must have been sent.
        let mut first = [0; 11];
        socket.read_exact(&mut first).await.expect("the request is sent");

        drop(stream);

        socket.read_to_end(&mut Vec::new()).await.expect("the server closes the connection");
        assert_eq!(&first, b"GET /search");
        assert_eq!(fixture.upstream.n_requests(), 1);
        fixture.close().await;
    }

    async fn the_tool_choice_and_the_allowed_domains_of_a_search_are_applied(backend) {
        let search = SearchServer::start("200 OK", RESULTS.to_owned()).await;
        let fixture = open(backend, &search).await;
        let tool = json!({ "type": "web_search", "filters": { "allowed_domains": ["cats.example"] }, "search_context_size": "low" });
        let body = json!({ "input": "Hi.", "tools": [tool, function("f")], "tool_choice": { "type": "web_search" } });

        let request = fixture.program.request(reqwest::Method::POST, "/responses");
        let mut body_with_model = body.clone();
        body_with_model["model"] = json!("scripted");
        let answer = request.json(&body_with_model).send().await.unwrap();

        assert_eq!(answer.headers()["troupe-ignored"], "tools[0].search_context_size");
        assert_eq!(fixture.upstream.body(0)["tool_choice"]["function"]["name"], "troupe_web_search");
        let results = lines(&fixture.upstream.body(1)).pop().unwrap();
        assert!(results.contains("cats.example") && !results.contains("dogs.example"), "{results}");
        let unknown = json!({ "type": "web_search", "filters": { "blocked_domains": [] } });
        let refused = fixture.program.respond_with_error(ask(unknown)).await;
        assert_eq!(refused, (400, "unknown_parameter".to_owned(), json!("tools[0].filters.blocked_domains")));
        fixture.close().await;
    }

    async fn without_a_search_server_the_tool_is_left_out_and_named(backend) {
        let fixture = V1Fixture::open(backend).await;
        let mut body = ask(json!({ "type": "web_search", "filters": { "allowed_domains": ["a.example"] } }));
        body["model"] = json!("scripted");

        let answer = fixture.program.request(reqwest::Method::POST, "/responses").json(&body).send().await.unwrap();

        assert_eq!((answer.status().as_u16(), &answer.headers()["troupe-ignored"]), (200, &"tools[0].web_search".parse().unwrap()));
        assert!(fixture.upstream.body(0).get("tools").is_none());
        fixture.close().await;
    }
}
