//! A model behind an OpenAI-compatible endpoint: says a numbered line, waits at a gate when it is
//! held there, and fails on every twentieth call when it is told to be unreliable.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The endpoint, and the hand on it.
pub struct Model {
    address: String,
    desk: Arc<Desk>,
    task: JoinHandle<()>,
}

/// What all calls share.
struct Desk {
    /// While true, a reply stops after its first words.
    is_held: watch::Sender<bool>,
    is_unreliable: AtomicBool,
    n_calls: AtomicUsize,
    /// Calls that ended, by their last word or because the caller hung up.
    n_ended: watch::Sender<usize>,
}

/// What goes wrong with a call.
#[derive(Clone, Copy)]
enum Fault {
    /// 500 before anything was said.
    Refused,
    /// The line breaks in the middle of the reply.
    Cut,
    /// An error object in the middle of the stream.
    Error,
}

impl Model {
    /// Opens the endpoint on a free port.
    pub async fn start() -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = format!(
            "http://{}/v1",
            listener
                .local_addr()
                .expect("a bound socket has an address")
        );
        let desk = Arc::new(Desk {
            is_held: watch::Sender::new(false),
            is_unreliable: AtomicBool::new(false),
            n_calls: AtomicUsize::new(0),
            n_ended: watch::Sender::new(0),
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&desk)));
        Model {
            address,
            desk,
            task,
        }
    }

    /// What `TROUPE_LLM_BASE_URL` takes.
    pub fn base_url(&self) -> &str {
        &self.address
    }

    /// From now on a reply stops after its first words.
    pub fn hold(&self) {
        self.desk.is_held.send_replace(true);
    }

    /// Lets every held reply go on, and those to come.
    pub fn release(&self) {
        self.desk.is_held.send_replace(false);
    }

    /// From now on one call in twenty goes wrong, each time in another way.
    pub fn be_unreliable(&self) {
        self.desk.is_unreliable.store(true, Ordering::Relaxed);
    }

    /// How many replies were asked for.
    pub fn n_calls(&self) -> usize {
        self.desk.n_calls.load(Ordering::Relaxed)
    }

    /// Waits until so many calls have ended, by their last word or by hanging up.
    pub async fn wait_ended(&self, n: usize) {
        let mut ended = self.desk.n_ended.subscribe();
        ended
            .wait_for(|ended| *ended >= n)
            .await
            .expect("the desk lives as long as the model");
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, desk: Arc<Desk>) {
    while let Ok((stream, _)) = listener.accept().await {
        let desk = Arc::clone(&desk);
        // A caller that hangs up is no failure of the model.
        tokio::spawn(async move { answer(stream, &desk).await.ok() });
    }
}

async fn answer(mut stream: TcpStream, desk: &Desk) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let request = read_request(&mut stream).await?;
    if request.starts_with("GET ") {
        return respond(
            &mut stream,
            "200 OK",
            &json!({"object": "list", "data": [{"id": "test", "object": "model"}]}).to_string(),
        )
        .await;
    }
    let n = desk.n_calls.fetch_add(1, Ordering::Relaxed) + 1;
    let outcome = reply(&mut stream, desk, n).await;
    desk.n_ended.send_modify(|ended| *ended += 1);
    outcome
}

async fn reply(stream: &mut TcpStream, desk: &Desk, n: usize) -> io::Result<()> {
    let fault = desk
        .is_unreliable
        .load(Ordering::Relaxed)
        .then(|| fault_of(n))
        .flatten();
    if matches!(fault, Some(Fault::Refused)) {
        let body =
            json!({"error": {"message": "the model is out of breath", "type": "server_error"}});
        return respond(stream, "500 Internal Server Error", &body.to_string()).await;
    }
    stream
        .write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
        )
        .await?;
    say(stream, &format!("This is line {n},")).await?;
    say(stream, " said slowly,").await?;
    wait_at_the_gate(stream, desk).await?;
    match fault {
        Some(Fault::Cut) => return Ok(()),
        Some(Fault::Error) => {
            return event(
                stream,
                &json!({"error": {"message": "the model lost its thread"}}).to_string(),
            )
            .await;
        }
        Some(Fault::Refused) | None => {}
    }
    say(stream, " and said to the end. 🎭").await?;
    event(stream, &json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 9}}).to_string()).await?;
    event(stream, "[DONE]").await
}

/// One call in twenty, the kinds in turn; the first soon, so that a short test meets one.
fn fault_of(n: usize) -> Option<Fault> {
    let faults = [Fault::Cut, Fault::Refused, Fault::Error];
    (n % 20 == 5).then(|| faults[n / 20 % faults.len()])
}

/// Waits while the model is held; a caller that hangs up in the meantime ends the call.
async fn wait_at_the_gate(stream: &mut TcpStream, desk: &Desk) -> io::Result<()> {
    let mut is_held = desk.is_held.subscribe();
    let mut nothing = [0; 1];
    tokio::select! {
        released = is_held.wait_for(|held| !*held) => released.map(|_| ()).map_err(io::Error::other),
        heard = stream.read(&mut nothing) => Err(heard.err().unwrap_or_else(|| io::ErrorKind::ConnectionAborted.into())),
    }
}

async fn say(stream: &mut TcpStream, delta: &str) -> io::Result<()> {
    let chunk =
        json!({"choices": [{"index": 0, "delta": {"content": delta}, "finish_reason": null}]});
    event(stream, &chunk.to_string()).await
}

async fn event(stream: &mut TcpStream, data: &str) -> io::Result<()> {
    stream
        .write_all(format!("data: {data}\n\n").as_bytes())
        .await?;
    stream.flush().await
}

async fn respond(stream: &mut TcpStream, status: &str, body: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.flush().await
}

/// The head of a request; its body is read and dropped.
async fn read_request(stream: &mut TcpStream) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        match stream.read(&mut part).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => bytes.extend_from_slice(&part[..n]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length:")
            .and_then(|length| length.trim().parse().ok())
    });
    let mut missing = length
        .unwrap_or(0usize)
        .saturating_sub(bytes.len() - head_end);
    while missing > 0 {
        match stream.read(&mut part).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => missing = missing.saturating_sub(n),
        }
    }
    Ok(head)
}
