//! A client of `POST /v1/chat/completions`: sends requests, reads chunks, and joins their texts.

use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::http_client::expect;
use crate::support::poll::DEADLINE;
use crate::support::v1_client::{V1Client, error_of, with_default_model};

pub const PATH: &str = "/chat/completions";

/// The body of a request with one message of the user.
pub fn ask(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": text }] })
}

/// Returns the body with more fields.
pub fn with(mut body: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().expect("fields are an object") {
        body[name] = value.clone();
    }
    body
}

/// Completes a chat and asserts success.
pub async fn complete(program: &V1Client, body: Value) -> Value {
    expect(200, program.post(PATH, with_default_model(body)).await)
}

/// Completes a chat and asserts an error; returns status, code, param.
pub async fn complete_with_error(program: &V1Client, body: Value) -> (u16, String, Value) {
    error_of(&program.post(PATH, with_default_model(body)).await)
}

/// Sends a request for a stream.
pub async fn send_streamed(program: &V1Client, body: Value) -> reqwest::Response {
    let body = with(with_default_model(body), json!({ "stream": true }));
    let request = program.request(Method::POST, PATH).json(&body);
    request.send().await.expect("the server answers")
}

/// Starts a stream and asserts success.
pub async fn stream(program: &V1Client, body: Value) -> ChunkReader {
    let answer = send_streamed(program, body).await;
    assert_eq!(answer.status(), 200, "{:?}", answer.text().await);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    ChunkReader {
        bytes: answer.bytes_stream().boxed(),
        rest: String::new(),
    }
}

/// Reads a stream; disconnects on drop.
pub struct ChunkReader {
    bytes: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    rest: String,
}

impl ChunkReader {
    /// Returns the next data, or `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((frame, rest)) = self.rest.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.rest = rest;
                if frame.starts_with(':') {
                    continue;
                }
                let data = frame.strip_prefix("data: ").expect("a frame has only data");
                return Some(data.to_owned());
            }
            let more = timeout(DEADLINE, self.bytes.next()).await;
            let more = more.expect("the next bytes arrive in time")?;
            let more = more.expect("the stream is not cut off");
            let more = std::str::from_utf8(&more).expect("chunks are valid UTF-8");
            self.rest.push_str(more);
        }
    }

    /// Returns the chunks up to the end, and whether `[DONE]` was the last data.
    pub async fn rest(mut self) -> (Vec<Value>, bool) {
        let mut chunks = Vec::new();
        while let Some(data) = self.next().await {
            if data == "[DONE]" {
                assert_eq!(self.next().await, None);
                return (chunks, true);
            }
            chunks.push(serde_json::from_str(&data).expect("data is JSON"));
        }
        (chunks, false)
    }
}

/// Returns the chunks of a complete stream.
pub async fn chunks(program: &V1Client, body: Value) -> Vec<Value> {
    let (chunks, is_done) = stream(program, body).await.rest().await;
    assert!(is_done, "{chunks:?}");
    chunks
}

/// Returns the joined text of all chunks.
pub fn text_of(chunks: &[Value]) -> String {
    let texts = chunks
        .iter()
        .map(|it| &it["choices"][0]["delta"]["content"]);
    texts.filter_map(Value::as_str).collect()
}

/// Returns the message of an answer.
pub fn message(answer: &Value) -> &Value {
    &answer["choices"][0]["message"]
}
