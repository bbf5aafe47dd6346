//! Sends every string of the corpus in every field of every WebSocket frame. The fields of a frame
//! are probed by sending it, as for the endpoints.

use std::collections::BTreeSet;

use futures::{SinkExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::support::backends::on_sqlite;
use crate::support::ws_client::{Socket, connect_with_key};
use crate::untrusted_input::encodings::{BROKEN_TOKENS, share};
use crate::untrusted_input::installation::Installation;
use crate::untrusted_input::strings;

/// The number of frames that a socket may send before it has to wait.
const FRAMES: usize = 55;

/// Sends frames over as many sockets as necessary.
struct FrameSender<'a> {
    server: &'a Installation,
    socket: Option<Socket>,
    n_sent: usize,
    n_all: usize,
}

impl FrameSender<'_> {
    /// Sends one frame and returns the response.
    async fn send_frame(&mut self, frame: &str) -> Value {
        if self.n_sent.is_multiple_of(FRAMES) {
            self.socket = None;
        }
        if self.socket.is_none() {
            let address = format!("{}/ws", self.server.app.base.replacen("http", "ws", 1));
            let opened = connect_with_key(&address, &self.server.key).await;
            self.socket = Some(opened.expect("the socket did not open"));
        }
        let socket = self.socket.as_mut().expect("the socket was just opened");
        self.n_sent += 1;
        self.n_all += 1;
        let sent = socket.send(Message::text(frame)).await;
        sent.unwrap_or_else(|error| panic!("{frame:.100}: {error}"));
        loop {
            let received = socket.next().await;
            let text = match received {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Ping(_))) => continue,
                other => panic!("{frame:.100} was not answered: {other:?}"),
            };
            let answer: Value = serde_json::from_str(&text).expect("the frame is not JSON");
            // Only responses have `re`, the id of their frame.
            if answer.get("re").is_some() {
                return answer;
            }
        }
    }

    /// All operations, from the error message for an unknown one.
    async fn operations(&mut self) -> Vec<String> {
        let answer = self.send_frame(r#"{"id":1,"op":"x"}"#).await;
        let message = answer["error"]["message"]
            .as_str()
            .expect("the error has no message");
        let list = message
            .rsplit("one of ")
            .next()
            .expect("the message lists no operations");
        let words = list.trim_end_matches('.').split(", ");
        words.map(str::to_owned).collect()
    }

    /// A frame of this operation with all required fields.
    async fn frame_of(&mut self, op: &str) -> Map<String, Value> {
        let mut frame = Map::new();
        frame.insert("id".to_owned(), json!(1));
        frame.insert("op".to_owned(), json!(op));
        for _ in 0..10 {
            let answer = self
                .send_frame(&Value::Object(frame.clone()).to_string())
                .await;
            let error = &answer["error"];
            let Some(param) = error["param"].as_str() else {
                break;
            };
            let guess = match error["code"].as_str() {
                Some("missing_field") => json!(1),
                Some("invalid_type") => json!(true),
                _ => break,
            };
            frame.insert(param.to_owned(), guess);
        }
        frame
    }
}

on_sqlite! {
    async fn no_string_in_a_frame_causes_an_internal_error(backend) {
        let server = Installation::open(backend).await;
        let mut sender = FrameSender { server: &server, socket: None, n_sent: 0, n_all: 0 };
        let strings: Vec<String> = strings::all().into_iter().filter(|it| it.len() < 10_000).collect();
        let operations = sender.operations().await;
        assert!(operations.len() > 5, "{operations:?}");
        let mut codes = BTreeSet::new();
        let mut index = 0;
        for op in operations {
            let whole = sender.frame_of(&op).await;
            let mut keys: Vec<String> = whole.keys().cloned().collect();
            keys.extend(["after_rev".to_owned(), "type".to_owned(), "\u{0}".to_owned()]);
            for key in keys {
                index += 1;
                let values = share(&strings, index).map(|it| json!(it).to_string());
                let broken = share(BROKEN_TOKENS, index).map(|it| (*it).to_owned());
                for value in values.chain(broken) {
                    let mut frame = whole.clone();
                    frame.insert(key.clone(), json!("@"));
                    let frame = Value::Object(frame).to_string().replacen("\"@\"", &value, 1);

                    let answer = sender.send_frame(&frame).await;

                    let code = answer["error"]["code"].as_str().unwrap_or("ok").to_owned();
                    assert!(code != "internal" && code != "rate_limited", "{frame}: {answer}");
                    assert!(answer.to_string().len() < 20_000, "{frame}");
                    codes.insert(code);
                }
            }
        }
        eprintln!("strings in frames: {} frames, response codes {codes:?}", sender.n_all);
        drop(sender);
        server.close_unharmed().await;
    }
}
