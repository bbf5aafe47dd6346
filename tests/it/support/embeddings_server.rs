//! An embeddings server whose behavior a test chooses. Its vectors depend on what a text is about: dogs,
//! the sea, or anything else.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::support::poll;

/// What a text may be about, in the order of the dimensions.
const SUBJECTS: [[&str; 2]; 2] = [["dog", "hound"], ["sea", "ocean"]];

/// How the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingAnswer {
    Vectors,
    /// The items of the list in the reverse order, with their indices.
    Reversed,
    /// One vector less than requested.
    TooFew,
    Status(u16),
    /// The status 400 if a text has more bytes than this.
    RefuseLonger(usize),
    /// Nothing: the connection stays open until the client closes it.
    Hang,
}

/// A running server. Dropping it closes every connection.
pub struct EmbeddingsServer {
    pub url: String,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    state: Mutex<ServerState>,
}

struct ServerState {
    answer: EmbeddingAnswer,
    requests: Vec<Value>,
    /// Connections that the client closed without an answer.
    n_closed: usize,
}

impl EmbeddingsServer {
    /// Starts a server that returns vectors.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let shared = Arc::new(Shared {
            state: Mutex::new(ServerState {
                answer: EmbeddingAnswer::Vectors,
                requests: Vec::new(),
                n_closed: 0,
            }),
        });
        Self {
            url: format!("http://{address}/v1"),
            accepting: tokio::spawn(accept(listener, shared.clone())),
            shared,
        }
    }

    /// Answers later requests in this way.
    pub fn answer(&self, answer: EmbeddingAnswer) {
        self.shared.change(|it| it.answer = answer);
    }

    /// Returns the number of requests.
    pub fn n_requests(&self) -> usize {
        self.shared.change(|it| it.requests.len())
    }

    /// Returns the body of a request, counted from 0.
    pub fn request(&self, nth: usize) -> Value {
        self.shared.change(|it| it.requests[nth].clone())
    }

    /// Returns the texts of a request, counted from 0.
    pub fn texts(&self, nth: usize) -> Vec<String> {
        let request = self.request(nth);
        let texts = request["input"].as_array().expect("a list").iter();
        texts
            .map(|it| it.as_str().expect("a text").to_owned())
            .collect()
    }

    /// Waits until this many requests have arrived.
    pub async fn wait_for_requests(&self, n: usize) {
        poll::until("the requests for embeddings", async || {
            (self.n_requests() >= n).then_some(())
        })
        .await;
    }

    /// Returns how many connections the client closed without an answer.
    pub fn n_closed(&self) -> usize {
        self.shared.change(|it| it.n_closed)
    }

    /// Waits until the client has closed this many connections without an answer.
    pub async fn wait_for_closed(&self, n: usize) {
        poll::until("the client closes the connection", async || {
            (self.n_closed() >= n).then_some(())
        })
        .await;
    }
}

impl Drop for EmbeddingsServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn change<T>(&self, change: impl FnOnce(&mut ServerState) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn serve(self: Arc<Self>, socket: TcpStream) {
        let mut socket = BufReader::new(socket);
        while let Some(request) = read_request(&mut socket).await {
            let answer = self.change(|it| {
                it.requests.push(request.clone());
                it.answer
            });
            let mut items = embed(&request);
            let status = match answer {
                EmbeddingAnswer::Vectors => 200,
                EmbeddingAnswer::Reversed => {
                    items.reverse();
                    200
                }
                EmbeddingAnswer::TooFew => {
                    items.pop();
                    200
                }
                EmbeddingAnswer::Status(status) => status,
                EmbeddingAnswer::RefuseLonger(limit) if has_longer(&request, limit) => 400,
                EmbeddingAnswer::RefuseLonger(_) => 200,
                EmbeddingAnswer::Hang => {
                    let n_read = socket.read(&mut [0; 1]).await;
                    assert!(matches!(n_read, Ok(0) | Err(_)), "nothing more was sent");
                    self.change(|it| it.n_closed += 1);
                    return;
                }
            };
            let body = json!({"object": "list", "data": items}).to_string();
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            if socket.write_all((head + &body).as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this task, which ends every connection.
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        connections.spawn(shared.clone().serve(socket));
    }
}

async fn read_request(socket: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if socket.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let mut lines = head.lines();
    let length = lines.find_map(|it| it.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.trim().parse().ok()?];
    socket.read_exact(&mut body).await.ok()?;
    serde_json::from_slice(&body).ok()
}

fn has_longer(request: &Value, limit: usize) -> bool {
    let mut texts = request["input"].as_array().expect("a list").iter();
    texts.any(|it| it.as_str().expect("a text").len() > limit)
}

/// Returns the items of the response. The model `wide` has one dimension more than others.
fn embed(request: &Value) -> Vec<Value> {
    let is_wide = request["model"] == "wide";
    let texts = request["input"].as_array().expect("a list").iter();
    let items = texts.enumerate().map(|(index, text)| {
        // A list of token ids has no text, so it is about none of the subjects.
        let text = text.as_str().unwrap_or_default();
        let is_about = SUBJECTS.map(|names| names.iter().any(|it| text.contains(it)));
        let is_other = !is_about.contains(&true);
        let mut vector = vec![is_about[0], is_about[1], is_other];
        if is_wide {
            vector.insert(0, false);
        }
        let vector: Vec<u8> = vector.into_iter().map(u8::from).collect();
        json!({"object": "embedding", "index": index, "embedding": vector})
    });
    items.collect()
}
