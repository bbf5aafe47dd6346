//! One client connection of the fake provider: reads requests, plays scripts, and detects when the
//! client disconnects.

use serde_json::Value;
use tokio::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::script::{HoldPoint, ResponseScript, Step, text_event};

const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

/// A complete request.
#[derive(Debug)]
pub struct Received {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Null if it is not JSON.
    pub body: Value,
}

/// How a script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlayedScript {
    /// All steps were played; the connection can receive another request.
    Whole,
    /// A step closed or reset the connection.
    Broken,
    /// The client disconnected before the end.
    Left,
}

pub struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            buffer: Vec::new(),
        }
    }

    /// Returns the next request; `None` if the client disconnects or sends no valid HTTP.
    pub async fn receive(&mut self) -> Option<Received> {
        let head_len = loop {
            if let Some(at) = self.buffer.windows(4).position(|it| it == b"\r\n\r\n") {
                break at + 4;
            }
            if self.buffer.len() > MAX_HEAD_BYTES || !self.fill().await {
                return None;
            }
            if !self.buffer[0].is_ascii_uppercase() {
                let _ = self
                    .socket
                    .write_all(b"HTTP/1.1 400 Not HTTP\r\n\r\n")
                    .await;
                return None;
            }
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_len]).into_owned();
        let mut lines = head.lines();
        let mut first = lines.next()?.split(' ');
        let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let body_len = length.map_or(Some(0), |(_, value)| value.parse().ok())?;
        if body_len > MAX_BODY_BYTES {
            return None;
        }
        while self.buffer.len() < head_len + body_len {
            if !self.fill().await {
                return None;
            }
        }
        let body = serde_json::from_slice(&self.buffer[head_len..head_len + body_len]);
        self.buffer.drain(..head_len + body_len);
        Some(Received {
            method,
            path,
            headers,
            body: body.unwrap_or_default(),
        })
    }

    /// Sends the response of the script; calls `on_text` after each text chunk.
    pub async fn play(
        &mut self,
        script: &ResponseScript,
        mut on_text: impl FnMut(),
    ) -> PlayedScript {
        if script.resets_before_head {
            return self.reset();
        }
        if script.hangs_before_head {
            self.left().await;
            return PlayedScript::Left;
        }
        if !self.send(head(script).as_bytes()).await {
            return PlayedScript::Left;
        }
        for step in &script.steps {
            match step {
                Step::Reset => return self.reset(),
                Step::Close => {
                    let _ = self.socket.shutdown().await;
                    return PlayedScript::Broken;
                }
                _ => {}
            }
            if !self.play_step(step, script.gate.as_ref()).await {
                return PlayedScript::Left;
            }
            if matches!(step, Step::Text(_)) {
                on_text();
            }
        }
        if self.send(b"0\r\n\r\n").await {
            PlayedScript::Whole
        } else {
            PlayedScript::Left
        }
    }

    /// Returns `false` if the client disconnected.
    async fn play_step(&mut self, step: &Step, gate: Option<&HoldPoint>) -> bool {
        match step {
            Step::Text(text) => {
                let may_go = match gate {
                    None => true,
                    Some(gate) => self.stays_until(gate.pass()).await,
                };
                may_go && self.send_chunk(&text_event(text)).await
            }
            Step::Raw(bytes) => self.send_chunk(bytes).await,
            Step::Pause(duration) => self.stays_until(sleep(*duration)).await,
            Step::Forever(bytes, every) => {
                while self.send_chunk(bytes).await && self.stays_until(sleep(*every)).await {}
                false
            }
            Step::Hang => {
                self.left().await;
                false
            }
            Step::Reset | Step::Close => true,
        }
    }

    async fn send_chunk(&mut self, bytes: &[u8]) -> bool {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        bytes.is_empty() || self.send(&chunk).await
    }

    /// Sends, unless the client disconnects first, which a full send buffer would hide.
    async fn send(&mut self, bytes: &[u8]) -> bool {
        let (mut reader, mut writer) = self.socket.split();
        tokio::select! {
            biased;
            () = gone(&mut reader, &mut self.buffer) => false,
            res = writer.write_all(bytes) => res.is_ok(),
        }
    }

    async fn stays_until(&mut self, fact: impl Future<Output = ()>) -> bool {
        tokio::select! {
            biased;
            () = gone(&mut self.socket, &mut self.buffer) => false,
            () = fact => true,
        }
    }

    async fn left(&mut self) {
        gone(&mut self.socket, &mut self.buffer).await;
    }

    fn reset(&mut self) -> PlayedScript {
        let _ = self.socket.set_zero_linger();
        PlayedScript::Broken
    }

    async fn fill(&mut self) -> bool {
        self.socket
            .read_buf(&mut self.buffer)
            .await
            .is_ok_and(|n| n > 0)
    }
}

/// Returns when the client closes its side; keeps what it sends until then, up to a limit.
async fn gone(reader: &mut (impl io::AsyncRead + Unpin), buffer: &mut Vec<u8>) {
    while buffer.len() < MAX_HEAD_BYTES + MAX_BODY_BYTES {
        match reader.read_buf(buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

fn head(script: &ResponseScript) -> String {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", script.status);
    for (name, value) in &script.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("Transfer-Encoding: chunked\r\n\r\n");
    head
}
