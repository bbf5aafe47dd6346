//! What the tests of runs share: assistants, threads and runs, and a reader of their streams.

use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::http_client::expect;
use crate::support::poll;
use crate::support::poll::DEADLINE;
use crate::support::v1_client::{V1Client, error_of, with_default_model};
use crate::v1::chat_client::with;
use crate::v1::fixture::id;

/// A thread and an assistant of one program.
pub struct ThreadClient {
    pub program: V1Client,
    pub assistant: String,
    pub thread: String,
}

impl ThreadClient {
    /// Creates an assistant with these fields, and a thread with these messages of the user.
    pub async fn new(program: &V1Client, assistant: Value, texts: &[&str]) -> ThreadClient {
        let made = program.post("/assistants", with_default_model(assistant));
        let assistant = id(&expect(200, made.await)).to_owned();
        let messages: Vec<Value> = texts.iter().map(|it| user(it)).collect();
        let made = program.post("/threads", json!({ "messages": messages }));
        let thread = id(&expect(200, made.await)).to_owned();
        ThreadClient {
            program: program.clone(),
            assistant,
            thread,
        }
    }

    /// The same thread, through another node.
    pub fn with_base(&self, base: &str) -> ThreadClient {
        ThreadClient {
            program: self.program.with_base(base),
            assistant: self.assistant.clone(),
            thread: self.thread.clone(),
        }
    }

    pub fn path(&self, rest: &str) -> String {
        format!("/threads/{}{rest}", self.thread)
    }

    fn run_body(&self, fields: Value) -> Value {
        with(json!({ "assistant_id": self.assistant }), fields)
    }

    /// Creates a run and asserts success.
    pub async fn create(&self, fields: Value) -> Value {
        let body = self.run_body(fields);
        expect(200, self.program.post(&self.path("/runs"), body).await)
    }

    /// Creates a run and asserts an error; returns status, code, param.
    pub async fn create_with_error(&self, fields: Value) -> (u16, String, Value) {
        let body = self.run_body(fields);
        error_of(&self.program.post(&self.path("/runs"), body).await)
    }

    /// Creates a run and returns it when it has this status.
    pub async fn run_until(&self, fields: Value, status: &str) -> Value {
        let run = self.create(fields).await;
        self.wait_for(id(&run), status).await
    }

    /// Creates a run and reads its stream.
    pub async fn stream(&self, fields: Value) -> RunStream {
        let body = with(self.run_body(fields), json!({ "stream": true }));
        RunStream::open(&self.program, &self.path("/runs"), &body).await
    }

    pub async fn show(&self, run: &str) -> Value {
        expect(
            200,
            self.program.get(&self.path(&format!("/runs/{run}"))).await,
        )
    }

    /// Waits until a run has this status, and returns it.
    pub async fn wait_for(&self, run: &str, status: &str) -> Value {
        poll::until(&format!("{run} becomes {status}"), async || {
            let run = self.show(run).await;
            (run["status"] == status).then_some(run)
        })
        .await
    }

    pub async fn cancel(&self, run: &str) -> (u16, Value) {
        let path = self.path(&format!("/runs/{run}/cancel"));
        self.program.post(&path, json!({})).await
    }

    /// Sends outputs of tools: ids of calls, and texts.
    pub async fn submit(&self, run: &str, outputs: &[(&str, &str)]) -> (u16, Value) {
        let path = self.path(&format!("/runs/{run}/submit_tool_outputs"));
        self.program.post(&path, outputs_body(outputs)).await
    }

    /// Sends outputs of tools and reads the stream of the rest of the run.
    pub async fn submit_streamed(&self, run: &str, outputs: &[(&str, &str)]) -> RunStream {
        let path = self.path(&format!("/runs/{run}/submit_tool_outputs"));
        let body = with(outputs_body(outputs), json!({ "stream": true }));
        RunStream::open(&self.program, &path, &body).await
    }

    /// Adds a message of the user.
    pub async fn say(&self, text: &str) -> (u16, Value) {
        self.program.post(&self.path("/messages"), user(text)).await
    }

    /// All messages, oldest first.
    pub async fn messages(&self) -> Vec<Value> {
        let path = self.path("/messages?order=asc&limit=100");
        list_of(expect(200, self.program.get(&path).await))
    }

    /// The texts of all messages, oldest first.
    pub async fn texts(&self) -> Vec<String> {
        self.messages().await.iter().map(text_of).collect()
    }

    /// The steps of a run, oldest first.
    pub async fn steps(&self, run: &str) -> Vec<Value> {
        let path = self.path(&format!("/runs/{run}/steps?order=asc"));
        list_of(expect(200, self.program.get(&path).await))
    }
}

fn outputs_body(outputs: &[(&str, &str)]) -> Value {
    let output = |it: &(&str, &str)| json!({ "tool_call_id": it.0, "output": it.1 });
    let outputs: Vec<Value> = outputs.iter().map(output).collect();
    json!({ "tool_outputs": outputs })
}

pub fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

/// The declaration of a function of the client.
pub fn function(name: &str) -> Value {
    let parameters = json!({ "type": "object", "properties": {} });
    json!({ "type": "function", "function": { "name": name, "parameters": parameters } })
}

fn list_of(list: Value) -> Vec<Value> {
    assert_eq!(list["object"], "list");
    list["data"].as_array().expect("a list has data").clone()
}

/// The text of a message.
pub fn text_of(message: &Value) -> String {
    let parts = message["content"].as_array().expect("a message has parts");
    let texts = parts.iter().filter_map(|it| it["text"]["value"].as_str());
    texts.collect()
}

/// Reads the stream of a run; disconnects on drop.
pub struct RunStream {
    bytes: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    rest: String,
}

impl RunStream {
    pub async fn open(program: &V1Client, path: &str, body: &Value) -> RunStream {
        let answer = program.request(Method::POST, path).json(body).send().await;
        let answer = answer.expect("the server answers");
        assert_eq!(answer.status(), 200, "{:?}", answer.text().await);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        RunStream {
            bytes: answer.bytes_stream().boxed(),
            rest: String::new(),
        }
    }

    /// Returns the name and the data of the next event; `None` after `done`.
    pub async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((frame, rest)) = self.rest.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.rest = rest;
                if frame.starts_with(':') {
                    continue;
                }
                if frame == "event: done\ndata: [DONE]" {
                    return None;
                }
                let frame = frame.strip_prefix("event: ").expect("an event has a name");
                let (name, data) = frame.split_once("\ndata: ").expect("an event has data");
                let data: Value = serde_json::from_str(data).expect("data is JSON");
                assert!(
                    data.get("type").is_none() || name.contains("step"),
                    "{data}"
                );
                return Some((name.to_owned(), data));
            }
            let more = timeout(DEADLINE, self.bytes.next()).await;
            let more = more.expect("the next bytes arrive in time");
            let more = more.expect("the stream ends with done");
            let more = more.expect("the stream is not cut off");
            let more = std::str::from_utf8(&more).expect("events are valid UTF-8");
            self.rest.push_str(more);
        }
    }

    /// Returns the events up to and including the first one of this name.
    pub async fn until(&mut self, name: &str) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            let is_it = event.0 == name;
            events.push(event);
            if is_it {
                return events;
            }
        }
        panic!("no {name} in {events:?}");
    }

    /// Returns all remaining events.
    pub async fn rest(mut self) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

/// The names of events, without the prefix `thread.`.
pub fn names(events: &[(String, Value)]) -> Vec<&str> {
    let names = events.iter().map(|it| it.0.as_str());
    names.map(|it| it.trim_start_matches("thread.")).collect()
}

/// The joined deltas of the messages.
pub fn joined(events: &[(String, Value)]) -> String {
    let deltas = events.iter().filter(|it| it.0 == "thread.message.delta");
    let text = |it: &(String, Value)| {
        let text = it.1["delta"]["content"][0]["text"]["value"].as_str();
        text.expect("a delta has a text").to_owned()
    };
    deltas.map(text).collect()
}
