//! A member of a conversation, who posts messages and waits for the replies at a WebSocket.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::fake_provider::server::FakeProvider;
use crate::http_client::{HttpClient, expect, http_client, id};

/// The messages in a conversation before the first exchange.
const HISTORY: usize = 142;
const BOUNDARY: &str = "----a-line-that-no-chat-holds";

/// A user with a WebSocket that is subscribed to a conversation.
pub struct Member {
    person: HttpClient,
    conversation: i64,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

/// The times of one exchange since the post was sent.
#[derive(Clone)]
pub struct Delays {
    /// Until the request arrived at the model; exact only if no other conversation is active.
    pub model_asked_ms: f64,
    /// Until the committed reply arrived at the socket.
    pub reply_ms: f64,
}

impl Member {
    /// Opens a socket and subscribes to the conversation.
    pub async fn connect(person: &HttpClient, conversation: i64) -> Member {
        let url = person.base();
        let address = format!("{}/ws", url.replacen("http", "ws", 1));
        let mut request = address.into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("cookie", person.cookie().parse().unwrap());
        headers.insert("origin", url.parse().unwrap());
        let (socket, _) = connect_async(request).await.unwrap();
        let mut member = Member {
            person: person.clone(),
            conversation,
            socket,
        };
        let frame = json!({"id": 1, "op": "subscribe", "conversation_id": conversation});
        let frame = Message::text(frame.to_string());
        member.socket.send(frame).await.unwrap();
        member.wait_for_frame("{\"re\":1,\"ok\":true").await;
        member
    }

    /// Posts a message and waits until its reply has arrived and the run has ended.
    pub async fn exchange(&mut self, upstream: &FakeProvider) -> Delays {
        let n_before = upstream.n_requests();
        let began = Instant::now();
        let posted = self.person.post_message(
            self.conversation,
            "What does the lantern show tonight?",
            None,
        );
        expect(201, posted.await);
        self.wait_for_frame("{\"type\":\"stream_complete\"").await;
        let reply_ms = began.elapsed().as_secs_f64() * 1_000.0;
        let asked_at = upstream.seen(n_before).came_at.into_std();
        self.wait_for_frame("{\"type\":\"typing_stop\"").await;
        Delays {
            model_asked_ms: (asked_at - began).as_secs_f64() * 1_000.0,
            reply_ms,
        }
    }

    /// Waits for the next frame with this prefix.
    async fn wait_for_frame(&mut self, prefix: &str) {
        loop {
            let frame = self.socket.next().await.unwrap().unwrap();
            let Message::Text(text) = frame else { continue };
            assert!(!text.starts_with("{\"type\":\"run_failed\""), "{text}");
            if text.starts_with(prefix) {
                return;
            }
        }
    }
}

/// Creates a space with this character, and a conversation with a history; returns it.
pub async fn create_conversation(person: &HttpClient, character: &Value, n: usize) -> i64 {
    let space = person
        .create_space(&format!("Bench {n}"), json!({"user_turn_debounce_ms": 0}))
        .await;
    person.add_character(&space, character).await;
    import_history(person, id(&space)).await
}

/// Imports a chat into the space and returns its conversation.
async fn import_history(person: &HttpClient, space: i64) -> i64 {
    let mut file = String::from("{\"user_name\":\"ann\",\"character_name\":\"Ada\"}\n");
    for n in 0..HISTORY {
        let (name, is_user) = [("ann", true), ("Ada", false)][n % 2];
        let text =
            format!("This is line {n} of a long evening at the harbor, and the lamps are lit.");
        let line = json!({"name": name, "is_user": is_user, "mes": text});
        writeln!(file, "{line}").unwrap();
    }
    let body = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"history.jsonl\"\r\n\r\n{file}\r\n--{BOUNDARY}--\r\n"
    );
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    let request = http_client()
        .post(format!("{}/api/spaces/{space}/import", person.base()))
        .header("cookie", person.cookie())
        .header("content-type", kind)
        .body(body);
    let started: Value = request.send().await.unwrap().json().await.unwrap();
    let path = format!("/api/imports/{}", started["id"]);
    loop {
        let import = expect(200, person.get(&path).await);
        match import["status"].as_str() {
            Some("running") => sleep(Duration::from_millis(20)).await,
            _ => return import["conversation_id"].as_i64().unwrap(),
        }
    }
}
