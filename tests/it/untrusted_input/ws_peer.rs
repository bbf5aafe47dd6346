//! A low-level WebSocket client: it sends the given frames, valid or not, and never responds on its
//! own.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::support::poll::DEADLINE;

/// First bytes of unfragmented frames: the opcode with the FIN bit.
pub const TEXT: u8 = 0x81;
pub const BINARY: u8 = 0x82;
pub const CLOSE: u8 = 0x88;
pub const PING: u8 = 0x89;
pub const PONG: u8 = 0x8a;
/// First bytes of the fragments of a text: the first, a middle one, the last.
pub const FIRST: u8 = 0x01;
pub const MORE: u8 = 0x00;
pub const LAST: u8 = 0x80;

/// One frame of a client. Its mask is zero, so that the payload is sent unchanged.
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

/// A connection with an open WebSocket.
pub struct WsPeer {
    read: BufReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

impl WsPeer {
    /// Opens a socket with a key.
    ///
    /// # Errors
    /// The HTTP status when the server rejects the upgrade.
    pub async fn open(base: &str, key: &str) -> Result<WsPeer, u16> {
        let host = base.trim_start_matches("http://");
        let stream = TcpStream::connect(host)
            .await
            .expect("the server does not accept connections");
        let (read, mut write) = stream.into_split();
        let upgrade = format!(
            "GET /ws HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
        );
        write
            .write_all(upgrade.as_bytes())
            .await
            .expect("the server does not read the upgrade request");
        let mut read = BufReader::new(read);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(
                read.read_u8()
                    .await
                    .expect("the response head is incomplete"),
            );
        }
        let head = String::from_utf8(head).expect("the response head is not UTF-8");
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        match status.expect("the response has no status") {
            101 => {
                let head = head.to_lowercase();
                assert!(
                    !head.contains("extensions"),
                    "the server enabled an extension: {head}"
                );
                Ok(WsPeer { read, write })
            }
            refused => Err(refused),
        }
    }

    /// Sends bytes; returns `false` when the server has closed the connection.
    pub async fn send(&mut self, bytes: &[u8]) -> bool {
        let sent = timeout(DEADLINE, self.write.write_all(bytes)).await;
        sent.expect("the server does not read").is_ok()
    }

    /// Sends an unfragmented text.
    pub async fn send_text(&mut self, text: &str) -> bool {
        self.send(&frame(TEXT, text.as_bytes())).await
    }

    /// The next frame; `None` when the server has closed.
    pub async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let read = timeout(DEADLINE, self.read_frame()).await;
        read.expect("the server sent nothing")
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

    /// The next response; events are skipped.
    pub async fn answer(&mut self) -> Value {
        loop {
            let text = match self.next().await.expect("the socket was closed") {
                (TEXT, text) => text,
                (PING | PONG, _) => continue,
                (first, content) => panic!("not a text: {first:#x} {content:?}"),
            };
            let frame: Value = serde_json::from_slice(&text).expect("the frame is not JSON");
            if frame.get("re").is_some() {
                return frame;
            }
        }
    }

    /// The close code of the server; `None` when it sends no close frame.
    pub async fn closing(&mut self) -> Option<u16> {
        while let Some((first, content)) = self.next().await {
            if first == CLOSE {
                return Some(u16::from_be_bytes([*content.first()?, *content.get(1)?]));
            }
        }
        None
    }

    /// Whether the server still responds on this socket.
    pub async fn is_answered(&mut self) -> bool {
        self.send_text(r#"{"id":4711,"op":"ping"}"#).await && self.answer().await["re"] == 4711
    }
}
