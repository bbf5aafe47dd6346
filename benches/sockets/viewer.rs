//! Readers that only count: one of a conversation at a WebSocket, and one of bare writes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::bare_writes;
use crate::frames::FrameCounter;
use crate::http_client::HttpClient;

/// A byte that occurs once in each delta of the reply, and nowhere else.
pub const DELTA_MARK: u8 = b'~';
/// What has not arrived after this time does not arrive at all.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// A frame with the masking key 0, which leaves its payload unchanged.
const PONG: [u8; 6] = [0x8a, 0x80, 0, 0, 0, 0];
const TEXT: u8 = 0x81;
const MASKED: u8 = 0x80;

/// What a viewer has received.
#[derive(Default)]
struct Counts {
    deltas: AtomicUsize,
    frames: AtomicUsize,
    replies: AtomicUsize,
    pings: AtomicUsize,
}

/// A reader. Reads until it is dropped.
pub struct Viewer {
    counts: Arc<Counts>,
    reading: JoinHandle<()>,
}

impl Viewer {
    /// Opens a WebSocket, subscribes to the conversation and waits for the acknowledgment.
    pub async fn subscribe(person: &HttpClient, conversation: i64) -> Viewer {
        let host = person.base().trim_start_matches("http://");
        let mut socket = TcpStream::connect(host).await.unwrap();
        socket.set_nodelay(true).unwrap();
        let subscribe = json!({"id": 1, "op": "subscribe", "conversation_id": conversation});
        let opening = async {
            let counter = upgrade(&mut socket, host, person.cookie()).await;
            let subscribe = text_frame(&subscribe.to_string());
            socket.write_all(&subscribe).await.unwrap();
            read_first_text(&mut socket, counter).await
        };
        let counter = timeout(ANSWER_TIMEOUT, opening).await.unwrap();
        let counts = Arc::<Counts>::default();
        let reading = tokio::spawn(count_frames(socket, counter, counts.clone()));
        Viewer { counts, reading }
    }

    /// Reads bare writes.
    pub async fn connect_bare(host: &str) -> Viewer {
        let socket = TcpStream::connect(host).await.unwrap();
        let counts = Arc::<Counts>::default();
        let reading = tokio::spawn(count_bare_writes(socket, counts.clone()));
        Viewer { counts, reading }
    }

    pub fn n_deltas(&self) -> usize {
        self.counts.deltas.load(Ordering::Relaxed)
    }

    pub fn n_frames(&self) -> usize {
        self.counts.frames.load(Ordering::Relaxed)
    }

    pub fn n_replies(&self) -> usize {
        self.counts.replies.load(Ordering::Relaxed)
    }

    pub fn n_pings(&self) -> usize {
        self.counts.pings.load(Ordering::Relaxed)
    }

    pub fn is_open(&self) -> bool {
        !self.reading.is_finished()
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Sends the handshake and reads the head of its response. Returns the counter of what follows it.
async fn upgrade(socket: &mut TcpStream, host: &str, cookie: &str) -> FrameCounter {
    let request = format!(
        "GET /ws?protocol=2 HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {cookie}\r\n\
         Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    let n_head = loop {
        let n_bytes = socket.read_buf(&mut received).await.unwrap();
        assert!(n_bytes > 0, "the server closed the socket");
        if let Some(end) = received.windows(4).position(|it| it == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&received[..n_head]);
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    let mut counter = FrameCounter::default();
    counter.add(&received[n_head..], DELTA_MARK);
    counter
}

fn text_frame(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap();
    assert!(length < 126, "the frame needs a longer header");
    [&[TEXT, MASKED | length, 0, 0, 0, 0], text.as_bytes()].concat()
}

/// Reads until the first text frame, the acknowledgment, has arrived.
async fn read_first_text(socket: &mut TcpStream, mut counter: FrameCounter) -> FrameCounter {
    while !counter.has_whole_text() {
        let mut bytes = [0; 4096];
        let n_bytes = socket.read(&mut bytes).await.unwrap();
        assert!(n_bytes > 0, "the server closed the socket");
        counter.add(&bytes[..n_bytes], DELTA_MARK);
    }
    counter
}

/// Counts frames and answers pings until the socket is closed.
async fn count_frames(mut socket: TcpStream, mut counter: FrameCounter, counts: Arc<Counts>) {
    let mut n_answered = 0;
    while let Ok(n_new) = read_available(&socket, |it| counter.add(it, DELTA_MARK)).await
        && n_new > 0
    {
        counts.deltas.store(counter.n_deltas, Ordering::Relaxed);
        counts.frames.store(counter.n_texts, Ordering::Relaxed);
        counts.replies.store(counter.n_replies, Ordering::Relaxed);
        counts.pings.store(counter.n_pings, Ordering::Relaxed);
        while n_answered < counter.n_pings {
            n_answered += 1;
            if socket.write_all(&PONG).await.is_err() {
                return;
            }
        }
    }
}

async fn count_bare_writes(socket: TcpStream, counts: Arc<Counts>) {
    let mut n_bytes = 0;
    while let Ok(n_new) = read_available(&socket, |it| n_bytes += it.len()).await
        && n_new > 0
    {
        let n_deltas = n_bytes / bare_writes::FRAME_BYTES;
        counts.deltas.store(n_deltas, Ordering::Relaxed);
        counts.frames.store(n_deltas, Ordering::Relaxed);
    }
}

/// Waits for bytes, passes them to `receive` and returns their number; 0 at the end. The buffer exists
/// only while there are bytes, because most sockets are idle.
async fn read_available(socket: &TcpStream, mut receive: impl FnMut(&[u8])) -> io::Result<usize> {
    loop {
        socket.readable().await?;
        let mut bytes = [0; 4096];
        match socket.try_read(&mut bytes) {
            Ok(n_bytes) => {
                receive(&bytes[..n_bytes]);
                return Ok(n_bytes);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}
