//! An HTTP server on the loopback address that answers embedding requests as a test wants, for tests.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outbound_http::client::{OutboundClient, SystemResolver};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

use crate::embeddings::client::EmbeddingClient;
use crate::embeddings::vector_cache;
use crate::registry::{ProviderKind, ProviderRegistry, ProviderSpec};
use crate::secret::Secret;

/// How the server answers a request.
pub enum Answer {
    /// The vector of each text, by [`vector_of`].
    Vectors,
    /// This body, with the status 200.
    Body(Value),
    Status(u16),
    /// This answer, after the test has notified the server.
    WhenNotified(Arc<Notify>, Box<Answer>),
    /// Nothing: the connection stays open until the client closes it.
    Hang,
}

/// A request that the server received.
pub struct Received {
    /// The first line and the headers, in lower case.
    pub head: String,
    pub body: Value,
}

impl Received {
    /// Returns the texts of the request.
    pub fn texts(&self) -> Vec<&str> {
        let texts = self.body["input"].as_array().unwrap();
        texts.iter().map(|it| it.as_str().unwrap()).collect()
    }
}

/// A running server. It ends with the runtime of its test.
pub struct ScriptedServer {
    pub url: String,
    received: mpsc::UnboundedReceiver<Received>,
    /// Gets an entry when the client closes a connection without an answer.
    closed: mpsc::UnboundedReceiver<()>,
}

impl ScriptedServer {
    /// Starts a server; `answer` is called with the number of the request, from 0.
    pub async fn start(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (received_tx, received) = mpsc::unbounded_channel();
        let (closed_tx, closed) = mpsc::unbounded_channel();
        let script = Arc::new(Script {
            answer: Box::new(answer),
            n_requests: AtomicUsize::new(0),
            received: received_tx,
            closed: closed_tx,
        });
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&script).serve(socket));
            }
        });
        Self {
            url,
            received,
            closed,
        }
    }

    /// Returns the requests since the last call.
    pub fn requests(&mut self) -> Vec<Received> {
        std::iter::from_fn(|| self.received.try_recv().ok()).collect()
    }

    /// Returns the number of requests since the last call.
    pub fn n_requests(&mut self) -> usize {
        self.requests().len()
    }

    /// Waits for a request.
    pub async fn next_request(&mut self) -> Received {
        self.received.recv().await.unwrap()
    }

    /// Waits until the client closes a connection whose request has no answer.
    pub async fn wait_for_close(&mut self) {
        self.closed.recv().await.unwrap();
    }

    /// Returns the settings of a provider at this server.
    pub fn spec(&self, model: &str) -> ProviderSpec {
        ProviderSpec {
            kind: ProviderKind::OpenaiCompatible,
            base_url: Some(self.url.clone()),
            api_key: Some(Secret::new("planted-key")),
            model: model.to_owned(),
            options: Default::default(),
            extra_headers: Vec::new(),
        }
    }

    /// Returns a new client of this server.
    pub fn client(&self, has_cache: bool) -> EmbeddingClient {
        let endpoint = registry().endpoint(&self.spec("m")).unwrap();
        EmbeddingClient::new(endpoint, "m".to_owned(), has_cache).unwrap()
    }
}

struct Script {
    answer: Box<dyn Fn(usize) -> Answer + Send + Sync>,
    n_requests: AtomicUsize,
    received: mpsc::UnboundedSender<Received>,
    closed: mpsc::UnboundedSender<()>,
}

impl Script {
    async fn serve(self: Arc<Self>, socket: TcpStream) {
        let mut socket = BufReader::new(socket);
        while let Some(request) = read_request(&mut socket).await {
            let nth = self.n_requests.fetch_add(1, Ordering::Relaxed);
            let mut answer = (self.answer)(nth);
            let vectors = match &answer {
                Answer::Vectors => list(&request.texts()),
                // The request may contain token ids.
                _ => Value::Null,
            };
            let _ = self.received.send(request);
            while let Answer::WhenNotified(notify, next) = answer {
                notify.notified().await;
                answer = *next;
            }
            let (status, body) = match answer {
                Answer::Vectors => (200, vectors),
                Answer::Body(body) => (200, body),
                Answer::Status(status) => (status, json!({ "error": "planted" })),
                Answer::WhenNotified(..) | Answer::Hang => {
                    let n_read = socket.read(&mut [0; 1]).await;
                    assert!(matches!(n_read, Ok(0) | Err(_)), "nothing more was sent");
                    let _ = self.closed.send(());
                    return;
                }
            };
            let body = body.to_string();
            let mut response = String::new();
            write!(response, "HTTP/1.1 {status} X\r\ncontent-length: ").unwrap();
            write!(response, "{}\r\n\r\n{body}", body.len()).unwrap();
            if socket.write_all(response.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

async fn read_request(socket: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if socket.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|it| it.strip_prefix("content-length: "));
    let mut body = vec![0; length?.parse().unwrap()];
    socket.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).unwrap();
    Some(Received { head, body })
}

/// Returns a registry that may call this machine.
pub fn registry() -> ProviderRegistry {
    let client = OutboundClient::new(Arc::new(SystemResolver), true).unwrap();
    ProviderRegistry::new(client, Duration::ZERO, None)
}

/// Returns the response for these texts.
pub fn list(texts: &[&str]) -> Value {
    let items = texts.iter().enumerate().map(|(index, text)| {
        json!({ "object": "embedding", "index": index, "embedding": numbers_of(text) })
    });
    json!({ "object": "list", "data": items.collect::<Vec<_>>() })
}

/// Returns what the server sends for a text: three numbers that differ for each text.
fn numbers_of(text: &str) -> [f32; 3] {
    let hash = vector_cache::hash_text(text);
    [hash[0], hash[1], hash[2]].map(|it| f32::from(it) + 1.0)
}

/// Returns the vector that a client must return for a text.
pub fn vector_of(text: &str) -> Vec<f32> {
    let numbers = numbers_of(text).map(f64::from);
    let length = numbers.iter().map(|it| it * it).sum::<f64>().sqrt();
    numbers.iter().map(|it| (it / length) as f32).collect()
}
