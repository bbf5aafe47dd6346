//! A client of `/v1` with an API key, which sends JSON and reads streams as they arrive.

use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::api_contract;
use crate::support::http_client::{HttpClient, expect, http_client};
use crate::support::poll::DEADLINE;

/// A client program of `/v1`.
#[derive(Clone)]
pub struct V1Client {
    client: Client,
    pub base: String,
    pub key: String,
}

impl V1Client {
    /// Creates a client with a new API key of this user.
    pub async fn new(person: &HttpClient) -> V1Client {
        let made = expect(
            201,
            person.post("/api/api_keys", json!({ "name": "bot" })).await,
        );
        V1Client {
            client: http_client(),
            base: person.base().to_owned(),
            key: made["key"].as_str().expect("a key is text").to_owned(),
        }
    }

    /// Returns the same client for another node.
    pub fn with_base(&self, base: &str) -> V1Client {
        V1Client {
            base: base.to_owned(),
            ..self.clone()
        }
    }

    /// Returns a request with the API key.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self
            .client
            .request(method, format!("{}/v1{path}", self.base));
        request.header("authorization", format!("Bearer {}", self.key))
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let what = format!("{method} {path}");
        let mut request = self.request(method.clone(), path);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request
            .send()
            .await
            .unwrap_or_else(|it| panic!("{what}: {it}"));
        let status = answer.status().as_u16();
        let text = answer.text().await.expect("the body is complete");
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        api_contract::check_v1_response(&method, &format!("/v1{path}"), status, &body);
        (status, body)
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.send(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(Method::POST, path, Some(&body)).await
    }

    /// Sends a body without a content type.
    pub async fn post_untyped(&self, path: &str, body: impl Into<reqwest::Body>) -> (u16, Value) {
        let answer = self.request(Method::POST, path).body(body).send().await;
        let answer = answer.expect("the server answers");
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    pub async fn delete(&self, path: &str) -> (u16, Value) {
        self.send(Method::DELETE, path, None).await
    }

    /// Creates a response and asserts success.
    pub async fn respond(&self, body: Value) -> Value {
        expect(200, self.post("/responses", with_default_model(body)).await)
    }

    /// Creates a response and asserts an error; returns status, code, param.
    pub async fn respond_with_error(&self, body: Value) -> (u16, String, Value) {
        error_of(&self.post("/responses", with_default_model(body)).await)
    }

    /// Creates a response and returns its event stream.
    pub async fn stream(&self, body: Value) -> SseReader {
        let mut body = with_default_model(body);
        body["stream"] = json!(true);
        SseReader::of(self.request(Method::POST, "/responses").json(&body)).await
    }

    /// Returns the event stream of an existing response.
    pub async fn replay(&self, id: &str, after: Option<i64>) -> SseReader {
        let after = after.map_or_else(String::new, |it| format!("&starting_after={it}"));
        let path = format!("/responses/{id}?stream=true{after}");
        SseReader::of(self.request(Method::GET, &path)).await
    }
}

/// Adds the model of the tests if the body has none.
pub fn with_default_model(mut body: Value) -> Value {
    if body.get("model").is_none() {
        body["model"] = json!("scripted");
    }
    body
}

/// Returns the status, code and param of an error and checks its format.
pub fn error_of((status, body): &(u16, Value)) -> (u16, String, Value) {
    let error = body["error"]
        .as_object()
        .unwrap_or_else(|| panic!("{status}: {body}"));
    let names: Vec<&String> = error.keys().collect();
    assert_eq!(names, ["type", "code", "message", "param"]);
    let code = error["code"].as_str().expect("a code is text").to_owned();
    (*status, code, error["param"].clone())
}

/// Reads an event stream; disconnects on drop.
pub struct SseReader {
    bytes: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    rest: String,
    is_done: bool,
}

impl SseReader {
    async fn of(request: reqwest::RequestBuilder) -> SseReader {
        let answer = request.send().await.expect("the server answers");
        assert_eq!(answer.status(), 200, "{:?}", answer.text().await);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert!(answer.headers().contains_key("x-request-id"));
        SseReader {
            bytes: answer.bytes_stream().boxed(),
            rest: String::new(),
            is_done: false,
        }
    }

    /// Returns the next event; `None` after `[DONE]`. Panics if the stream ends before it.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((frame, rest)) = self.rest.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.rest = rest;
                match self.read(&frame) {
                    Some(event) => return Some(event),
                    None if self.is_done => return None,
                    None => continue,
                }
            }
            let more = timeout(DEADLINE, self.bytes.next()).await;
            let more = more
                .expect("the next bytes arrive in time")
                .expect("the stream ends with [DONE]");
            let more = more.expect("the stream is not cut off");
            self.rest
                .push_str(std::str::from_utf8(&more).expect("events are valid UTF-8"));
        }
    }

    fn read(&mut self, frame: &str) -> Option<Value> {
        if frame == "data: [DONE]" {
            self.is_done = true;
            return None;
        }
        if frame.starts_with(':') {
            return None;
        }
        let (name, data) = frame.split_once("\ndata: ").expect("an event has data");
        let event: Value = serde_json::from_str(data).expect("data is JSON");
        assert_eq!(name, format!("event: {}", event["type"].as_str().unwrap()));
        api_contract::check_v1_event("StreamEvent", &event);
        Some(event)
    }

    /// Returns the events up to and including the first one of this type.
    pub async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            let is_it = event["type"] == kind;
            events.push(event);
            if is_it {
                return events;
            }
        }
        panic!("no {kind} in {events:?}");
    }

    /// Returns all remaining events.
    pub async fn rest(mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}
