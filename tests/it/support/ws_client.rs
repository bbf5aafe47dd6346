//! A WebSocket client that records every frame in order and waits for particular ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::{SinkExt, StreamExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::http_client::HttpClient;
use crate::support::poll::DEADLINE;

/// A WebSocket to a test server.
pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Opens a socket as this user's browser would, in protocol 1.
pub async fn connect(person: &HttpClient) -> Result<Socket, Error> {
    connect_to(person, "/ws").await
}

async fn connect_to(person: &HttpClient, path: &str) -> Result<Socket, Error> {
    let mut request = person
        .base()
        .replacen("http", "ws", 1)
        .into_client_request()?;
    *request.uri_mut() = format!("{}{path}", person.base().replacen("http", "ws", 1))
        .parse()
        .expect("our own address is well formed");
    let headers = request.headers_mut();
    headers.insert(
        "cookie",
        HeaderValue::from_str(person.cookie()).expect("a cookie is plain text"),
    );
    headers.insert(
        "origin",
        HeaderValue::from_str(person.base()).expect("an address is plain text"),
    );
    Ok(connect_async(request).await?.0)
}

/// Opens a socket as a program would, at an address `ws://…/ws` and with an API key.
pub async fn connect_with_key(address: &str, key: &str) -> Result<Socket, Error> {
    let mut request = address.into_client_request()?;
    let bearer = HeaderValue::from_str(&format!("Bearer {key}")).expect("a key is plain text");
    request.headers_mut().insert("authorization", bearer);
    Ok(connect_async(request).await?.0)
}

/// An open socket and every frame that it received.
pub struct WsClient {
    log: Arc<Mutex<Vec<Value>>>,
    /// The length of the log; closed with the socket.
    received: watch::Receiver<usize>,
    outbox: mpsc::Sender<String>,
    next_id: AtomicI64,
    task: JoinHandle<()>,
}

impl WsClient {
    /// Opens a socket and starts recording.
    pub async fn open(person: &HttpClient) -> WsClient {
        let socket = connect(person).await;
        let socket =
            socket.unwrap_or_else(|error| panic!("the server rejected the socket: {error}"));
        WsClient::at(socket)
    }

    /// Opens a socket in protocol 2 and starts recording.
    pub async fn open_in_protocol_2(person: &HttpClient) -> WsClient {
        let socket = connect_to(person, "/ws?protocol=2").await;
        let socket =
            socket.unwrap_or_else(|error| panic!("the server rejected the socket: {error}"));
        WsClient::at(socket)
    }

    /// Starts recording on an open socket.
    pub fn at(socket: Socket) -> WsClient {
        let log = Arc::new(Mutex::new(Vec::new()));
        let (notify, received) = watch::channel(0);
        let (outbox, outgoing) = mpsc::channel(64);
        let task = tokio::spawn(listen(socket, outgoing, Arc::clone(&log), notify));
        WsClient {
            log,
            received,
            outbox,
            next_id: AtomicI64::new(1),
            task,
        }
    }

    /// Opens a socket and subscribes to a conversation.
    pub async fn subscribed(person: &HttpClient, conversation: i64) -> WsClient {
        let client = WsClient::open(person).await;
        let answer = client.subscribe(conversation, None).await;
        assert_eq!(answer["ok"], true, "{answer}");
        client
    }

    /// Subscribes; returns the frame with the snapshot.
    pub async fn subscribe(&self, conversation: i64, after_rev: Option<i64>) -> Value {
        let mut frame = json!({"op": "subscribe", "conversation_id": conversation});
        if let Some(rev) = after_rev {
            frame["after_rev"] = json!(rev);
        }
        self.call(frame).await
    }

    /// Sends a frame with a new `id` and waits for its response.
    pub async fn call(&self, mut frame: Value) -> Value {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        frame["id"] = json!(id);
        self.send_text(&frame.to_string()).await;
        self.wait_for("the response to a frame", |received| received["re"] == id)
            .await
    }

    /// Sends any text.
    pub async fn send_text(&self, text: &str) {
        self.outbox
            .send(text.to_owned())
            .await
            .expect("the socket is open");
    }

    /// Returns the first frame that fits, received or future; panics with the end of the log.
    pub async fn wait_for(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.wait_after(0, what, fits).await.1
    }

    /// The same from a position in the log on; also returns the position after the frame.
    pub async fn wait_after(
        &self,
        from: usize,
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> (usize, Value) {
        let mut received = self.received.clone();
        let mut at = from;
        let search = async {
            loop {
                let n_received = *received.borrow_and_update();
                while at < n_received {
                    let frame = self.log.lock()[at].clone();
                    at += 1;
                    if fits(&frame) {
                        return Some((at, frame));
                    }
                }
                received.changed().await.ok()?;
            }
        };
        match timeout(DEADLINE, search).await {
            Ok(Some(found)) => found,
            Ok(None) => panic!(
                "the socket was closed while waiting for: {what}\n{}",
                self.tail()
            ),
            Err(_) => panic!("timed out after {DEADLINE:?}: {what}\n{}", self.tail()),
        }
    }

    /// Waits for the next event of a type about a run.
    pub async fn wait_for_event(&self, event: &str, run_id: &str) -> Value {
        self.wait_for(&format!("{event} of run {run_id}"), |frame| {
            frame["type"] == event && is_of_run(frame, run_id)
        })
        .await
    }

    /// Waits until the server has closed this socket.
    pub async fn wait_closed(&self) {
        let mut received = self.received.clone();
        let closed = async { while received.changed().await.is_ok() {} };
        timeout(DEADLINE, closed)
            .await
            .unwrap_or_else(|_| panic!("the socket stayed open\n{}", self.tail()));
    }

    /// Returns every frame so far.
    pub fn log(&self) -> Vec<Value> {
        self.log.lock().clone()
    }

    /// Returns the number of frames so far, a position for `wait_after`.
    pub fn here(&self) -> usize {
        self.log.lock().len()
    }

    /// Returns the types of the events about one run; consecutive deltas count once.
    pub fn order_of(&self, run_id: &str) -> Vec<String> {
        let log = self.log.lock();
        let mut order: Vec<String> = log
            .iter()
            .filter(|frame| is_of_run(frame, run_id))
            .filter_map(type_of)
            .collect();
        order.dedup_by(|later, earlier| later == earlier && later == "stream_chunk");
        order
    }

    fn tail(&self) -> String {
        let log = self.log.lock();
        let from = log.len().saturating_sub(15);
        let lines: Vec<String> = log[from..].iter().map(Value::to_string).collect();
        format!(
            "received {} frames, the last:\n{}",
            log.len(),
            lines.join("\n")
        )
    }
}

impl Drop for WsClient {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the type of an event; responses have none.
pub fn type_of(frame: &Value) -> Option<String> {
    frame["type"].as_str().map(str::to_owned)
}

/// Returns whether an event contains the id of a run, the run itself or its message.
pub fn is_of_run(frame: &Value, run_id: &str) -> bool {
    frame["run_id"] == run_id
        || frame["run"]["id"] == run_id
        || (frame["type"] != "message_hidden" && frame["message"]["conversation_run_id"] == run_id)
}

async fn listen(
    mut socket: Socket,
    mut outgoing: mpsc::Receiver<String>,
    log: Arc<Mutex<Vec<Value>>>,
    notify: watch::Sender<usize>,
) {
    loop {
        tokio::select! {
            text = outgoing.recv() => {
                let Some(text) = text else { return };
                if socket.send(Message::text(text)).await.is_err() {
                    return;
                }
            }
            frame = socket.next() => {
                let Some(Ok(frame)) = frame else { return };
                let Message::Text(text) = frame else { continue };
                let frame = serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON: {text}"));
                log.lock().push(frame);
                notify.send_modify(|n| *n += 1);
            }
        }
    }
}
