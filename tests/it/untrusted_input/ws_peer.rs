//! A WebSocket client below the protocol: it sends the given frames, valid or not, and answers
//! nothing by itself.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::support::poll::DEADLINE;

/// What a frame says it is, with the bit that says that it is whole.
pub const TEXT: u8 = 0x81;
pub const BINARY: u8 = 0x82;
pub const CLOSE: u8 = 0x88;
pub const PING: u8 = 0x89;
pub const PONG: u8 = 0x8a;
/// Pieces of a text: the first, another, the last.
pub const FIRST: u8 = 0x01;
pub const MORE: u8 = 0x00;
pub const LAST: u8 = 0x80;

/// One frame of a client. Its mask is zero, so that what is sent is what is read.
pub fn frame(first: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match content.len() {
        length @ 0..=125 => frame.push(0x80 | length as u8),
        length @ 126..=0xffff => {
            frame.push(0x80 | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(0x80 | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(content);
    frame
}

/// See the module.
pub struct WsPeer {
    read: BufReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

impl WsPeer {
    /// Opens a socket with a key; the status of the refusal when there is one.
    pub async fn open(base: &str, key: &str) -> Result<WsPeer, u16> {
        let host = base.trim_start_matches("http://");
        let stream = TcpStream::connect(host).await.expect("it listens");
        let (read, mut write) = stream.into_split();
        let upgrade = format!(
            "GET /ws HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
        );
        write.write_all(upgrade.as_bytes()).await.expect("it reads");
        let mut read = BufReader::new(read);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(read.read_u8().await.expect("a whole head"));
        }
        let head = String::from_utf8(head).expect("our heads are text");
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        match status.expect("a status") {
            101 => {
                let head = head.to_lowercase();
                assert!(
                    !head.contains("extensions"),
                    "nothing is compressed: {head}"
                );
                Ok(WsPeer { read, write })
            }
            refused => Err(refused),
        }
    }

    /// Sends bytes; `false`: the server has closed.
    pub async fn send(&mut self, bytes: &[u8]) -> bool {
        let sent = timeout(DEADLINE, self.write.write_all(bytes)).await;
        sent.expect("the server takes what is sent").is_ok()
    }

    /// Sends a whole text.
    pub async fn send_text(&mut self, text: &str) -> bool {
        self.send(&frame(TEXT, text.as_bytes())).await
    }

    /// The next frame; `None` when the server has closed.
    pub async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let read = timeout(DEADLINE, self.read_frame()).await;
        read.expect("the server says something")
    }

    async fn read_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let first = self.read.read_u8().await.ok()?;
        let length = match self.read.read_u8().await.ok()? {
            126 => usize::from(self.read.read_u16().await.ok()?),
            127 => usize::try_from(self.read.read_u64().await.ok()?).ok()?,
            length => usize::from(length),
        };
        let mut content = vec![0; length];
        self.read.read_exact(&mut content).await.ok()?;
        Some((first, content))
    }

    /// The next answer; events are not waited for.
    pub async fn answer(&mut self) -> Value {
        loop {
            let text = match self.next().await.expect("the socket is open") {
                (TEXT, text) => text,
                (PING | PONG, _) => continue,
                (first, content) => panic!("no text: {first:#x} {content:?}"),
            };
            let frame: Value = serde_json::from_slice(&text).expect("frames are JSON");
            if frame.get("re").is_some() {
                return frame;
            }
        }
    }

    /// The code with which the server closes; `None` when it says no word.
    pub async fn closing(&mut self) -> Option<u16> {
        while let Some((first, content)) = self.next().await {
            if first == CLOSE {
                return Some(u16::from_be_bytes([*content.first()?, *content.get(1)?]));
            }
        }
        None
    }

    /// Whether the server still answers here.
    pub async fn is_answered(&mut self) -> bool {
        self.send_text(r#"{"id":4711,"op":"ping"}"#).await && self.answer().await["re"] == 4711
    }
}
