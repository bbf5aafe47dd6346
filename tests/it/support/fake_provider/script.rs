//! The script of one response: its steps, such as text, pauses and faults.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// One thing that the server does to the connection.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends a visible text chunk. Waits at the gate if there is one.
    Text(String),
    /// Sends these bytes unchanged.
    Raw(Vec<u8>),
    /// Sends the same bytes repeatedly until the client disconnects.
    Forever(Vec<u8>, Duration),
    /// Waits for this time.
    Pause(Duration),
    /// Waits until the client disconnects.
    Hang,
    /// Resets the connection.
    Reset,
    /// Closes the connection in the middle of the body.
    Close,
}

/// A response. Unless a step closes the connection, the HTTP body is ended correctly.
#[derive(Debug, Clone)]
pub struct ResponseScript {
    pub hangs_before_head: bool,
    pub resets_before_head: bool,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub steps: Vec<Step>,
    pub gate: Option<HoldPoint>,
}

impl ResponseScript {
    /// A complete response: role, text word by word, finish reason, usage, `[DONE]`.
    pub fn say(text: &str) -> Self {
        let n_words = i64::try_from(text.split_whitespace().count()).expect("a short text");
        Self::stream()
            .role()
            .words(text)
            .finish("stop")
            .usage(7, n_words)
            .done()
    }

    /// An event stream without events.
    pub fn stream() -> Self {
        Self::body(200, "text/event-stream", Vec::new())
    }

    /// A response with this status, content type and steps.
    pub fn body(status: u16, content_type: &str, steps: Vec<Step>) -> Self {
        Self {
            hangs_before_head: false,
            resets_before_head: false,
            status,
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            steps,
            gate: None,
        }
    }

    /// An error response with a message.
    pub fn status(status: u16) -> Self {
        Self::json(
            status,
            &json!({ "error": { "message": format!("Scripted {status}."), "type": "scripted" } }),
        )
    }

    /// A 429 response with this `Retry-After` value.
    pub fn rate_limited(retry_after: &str) -> Self {
        Self::status(429).header("Retry-After", retry_after)
    }

    /// A JSON response instead of a stream.
    pub fn json(status: u16, document: &Value) -> Self {
        Self::body(
            status,
            "application/json",
            vec![Step::Raw(document.to_string().into_bytes())],
        )
    }

    /// An HTML page instead of a response of the API.
    pub fn html() -> Self {
        let page = b"<!doctype html><title>Sign in</title><h1>Sign in</h1>".to_vec();
        Self::body(200, "text/html; charset=utf-8", vec![Step::Raw(page)])
    }

    /// Accepts the request and never sends anything.
    pub fn hang_before_headers() -> Self {
        Self {
            hangs_before_head: true,
            ..Self::stream()
        }
    }

    /// Accepts the request and closes the connection.
    pub fn reset_before_headers() -> Self {
        Self {
            resets_before_head: true,
            ..Self::stream()
        }
    }

    /// Sends the headers of a stream and no event.
    pub fn hang_before_first_chunk() -> Self {
        Self::stream().hang()
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The first chunk of most servers: a role and no text.
    pub fn role(self) -> Self {
        self.delta(json!({ "role": "assistant", "content": "" }))
    }

    /// A chunk with an empty delta.
    pub fn empty(self) -> Self {
        self.delta(json!({}))
    }

    pub fn comment(self) -> Self {
        self.raw(": keep-alive\n\n")
    }

    pub fn text(mut self, text: &str) -> Self {
        self.steps.push(Step::Text(text.to_owned()));
        self
    }

    /// A text chunk with the log probabilities of its token and of the alternatives.
    pub fn text_with_logprob(self, text: &str, logprob: f64, others: &[(&str, f64)]) -> Self {
        let logprob_of = |token: &str, logprob| json!({ "token": token, "logprob": logprob, "bytes": token.as_bytes() });
        let mut token = logprob_of(text, logprob);
        token["top_logprobs"] = others.iter().map(|it| logprob_of(it.0, it.1)).collect();
        self.event(&json!({ "choices": [{
            "index": 0, "delta": { "content": text }, "logprobs": { "content": [token] },
            "finish_reason": null,
        }] }))
    }

    /// The text in chunks of one word.
    pub fn words(self, text: &str) -> Self {
        text.split_inclusive(' ').fold(self, Self::text)
    }

    /// A complete response that only calls tools: ids, names, arguments.
    pub fn calls(calls: &[(&str, &str, &str)]) -> Self {
        let calls = calls.iter().enumerate();
        let script = calls.fold(
            Self::stream().role(),
            |script, (at, (id, name, arguments))| {
                script.call(at, id, name).arguments(at, arguments)
            },
        );
        script.finish("tool_calls").usage(7, 3).done()
    }

    /// The first chunk of a call, without arguments.
    pub fn call(self, index: usize, id: &str, name: &str) -> Self {
        let function = json!({ "name": name, "arguments": "" });
        let call = json!({ "index": index, "id": id, "type": "function", "function": function });
        self.delta(json!({ "tool_calls": [call] }))
    }

    /// The next chunk of a call's arguments.
    pub fn arguments(self, index: usize, more: &str) -> Self {
        let call = json!({ "index": index, "function": { "arguments": more } });
        self.delta(json!({ "tool_calls": [call] }))
    }

    pub fn finish(self, reason: &str) -> Self {
        self.event(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }))
    }

    pub fn usage(self, prompt_tokens: i64, completion_tokens: i64) -> Self {
        let usage = json!({
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        });
        self.event(&json!({ "choices": [], "usage": usage }))
    }

    pub fn done(self) -> Self {
        self.raw("data: [DONE]\n\n")
    }

    /// An error object in the middle of a stream.
    pub fn error(self, message: &str) -> Self {
        self.event(&json!({ "error": { "message": message, "type": "server_error" } }))
    }

    pub fn garbage(self) -> Self {
        self.raw("data: {\"choices\": [{\"delta\": {\"cont\n\n")
    }

    /// Adds raw bytes.
    pub fn raw(self, bytes: impl AsRef<[u8]>) -> Self {
        self.step(Step::Raw(bytes.as_ref().to_vec()))
    }

    pub fn pause(self, duration: Duration) -> Self {
        self.step(Step::Pause(duration))
    }

    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    pub fn reset(self) -> Self {
        self.step(Step::Reset)
    }

    pub fn close(self) -> Self {
        self.step(Step::Close)
    }

    /// The same bytes until the client disconnects: keep-alives, or a flood without pauses.
    pub fn forever(self, bytes: impl AsRef<[u8]>, every: Duration) -> Self {
        self.step(Step::Forever(bytes.as_ref().to_vec(), every))
    }

    /// Each text chunk waits for the gate.
    pub fn held_at(self, gate: &HoldPoint) -> Self {
        Self {
            gate: Some(gate.clone()),
            ..self
        }
    }

    /// Adds an event.
    pub fn event(self, chunk: &Value) -> Self {
        self.raw(event(chunk))
    }

    /// A chunk with this delta.
    pub fn delta(self, delta: Value) -> Self {
        self.event(&json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }))
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

/// Returns the event of a visible text chunk.
pub fn text_event(text: &str) -> Vec<u8> {
    let delta = json!({ "content": text });
    event(&json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }))
}

fn event(chunk: &Value) -> Vec<u8> {
    let mut chunk = chunk.clone();
    chunk["id"] = "chatcmpl-scripted".into();
    chunk["object"] = "chat.completion.chunk".into();
    format!("data: {chunk}\n\n").into_bytes()
}

/// Releases text chunks one by one.
#[derive(Debug, Clone)]
pub struct HoldPoint(Arc<Semaphore>);

impl HoldPoint {
    /// A closed gate.
    pub fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Releases one chunk: the waiting one or the next one.
    pub fn step(&self) {
        self.0.add_permits(1);
    }

    /// Releases all chunks from now on.
    pub fn open(&self) {
        self.0.close();
    }

    /// Waits for the release of one chunk.
    pub async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}
