//! A client that sends the given bytes, valid or not, and reads the response.
//!
//! A library would refuse to send most of the corpora, or would normalize it first.

use std::io;
use std::io::ErrorKind;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// No endpoint needs this long, however busy the machine is; an injected statement would.
const REPLY_TIMEOUT: Duration = Duration::from_secs(45);

/// One connection, opened again when the server has closed it.
pub struct HttpConnection {
    address: String,
    open: Option<Open>,
}

/// The two halves of a connection.
struct Open {
    read: BufReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// Lines of the head, without the first.
    pub head: Vec<String>,
    pub body: Vec<u8>,
}

impl Reply {
    /// The value of a header; empty when it is absent.
    pub fn header(&self, name: &str) -> &str {
        let mut lines = self.head.iter().filter_map(|it| it.split_once(':'));
        let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.trim())
    }

    /// The body; `null` when it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The code of an error, and its `param`.
    pub fn error(&self) -> (String, String) {
        let error = &self.json()["error"];
        let word = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        (word("code"), word("param"))
    }
}

impl HttpConnection {
    /// Returns a connection to the server at `http://…`, opened by the first request.
    pub fn connect(base: &str) -> HttpConnection {
        HttpConnection {
            address: base.trim_start_matches("http://").to_owned(),
            open: None,
        }
    }

    /// Sends a request and waits for its response.
    ///
    /// # Errors
    /// An error when there is no response, or one that cannot be parsed.
    pub async fn send(&mut self, request: &[u8]) -> io::Result<Reply> {
        let is_used = self.open.is_some();
        let first = self.try_once(request).await;
        match first {
            // A server may close a connection between two requests; clients then reconnect.
            Err(error) if is_used && is_closed(&error) => {
                self.open = None;
                self.try_once(request).await
            }
            other => other,
        }
    }

    async fn try_once(&mut self, request: &[u8]) -> io::Result<Reply> {
        let replied = timeout(REPLY_TIMEOUT, self.exchange(request)).await;
        let reply = replied.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
        let is_last = match &reply {
            Ok(reply) => reply.header("connection") == "close",
            Err(_) => true,
        };
        if is_last {
            self.open = None;
        }
        reply
    }

    async fn exchange(&mut self, request: &[u8]) -> io::Result<Reply> {
        if self.open.is_none() {
            let stream = TcpStream::connect(&self.address).await?;
            stream.set_nodelay(true)?;
            let (read, write) = stream.into_split();
            let read = BufReader::new(read);
            self.open = Some(Open { read, write });
        }
        let open = self.open.as_mut().expect("the connection was just opened");
        let has_body = !request.starts_with(b"HEAD ");
        // Concurrently: a server may reject a long body before it has arrived.
        let (sent, reply) = tokio::join!(
            open.write.write_all(request),
            read_reply(&mut open.read, has_body)
        );
        let reply = reply?;
        if !open.read.buffer().is_empty() {
            return Err(io::Error::other("unexpected bytes after the response"));
        }
        if sent.is_err() {
            self.open = None;
        }
        Ok(reply)
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}

async fn read_reply(from: &mut BufReader<OwnedReadHalf>, has_body: bool) -> io::Result<Reply> {
    loop {
        let first = read_line(from).await?;
        let status = first.split(' ').nth(1).and_then(|it| it.parse().ok());
        let status: u16 =
            status.ok_or_else(|| io::Error::other(format!("not a status line: {first}")))?;
        let mut head = Vec::new();
        loop {
            let line = read_line(from).await?;
            if line.is_empty() {
                break;
            }
            head.push(line);
        }
        // Interim responses.
        if (100..200).contains(&status) && status != 101 {
            continue;
        }
        let mut reply = Reply {
            status,
            head,
            body: Vec::new(),
        };
        if has_body && ![101, 204, 304].contains(&status) {
            reply.body = read_body(from, &reply).await?;
        }
        return Ok(reply);
    }
}

async fn read_line(from: &mut BufReader<OwnedReadHalf>) -> io::Result<String> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line).await?;
    match line.ends_with(b"\r\n") {
        true => Ok(String::from_utf8_lossy(&line[..line.len() - 2]).into_owned()),
        false => Err(ErrorKind::UnexpectedEof.into()),
    }
}

async fn read_body(from: &mut BufReader<OwnedReadHalf>, reply: &Reply) -> io::Result<Vec<u8>> {
    if let Ok(length) = reply.header("content-length").parse() {
        let mut body = vec![0; length];
        from.read_exact(&mut body).await?;
        return Ok(body);
    }
    let mut body = Vec::new();
    if reply.header("transfer-encoding") != "chunked" {
        from.read_to_end(&mut body).await?;
        return Ok(body);
    }
    loop {
        let length = usize::from_str_radix(&read_line(from).await?, 16);
        let length = length.map_err(io::Error::other)?;
        let mut chunk = vec![0; length];
        from.read_exact(&mut chunk).await?;
        body.extend(chunk);
        read_line(from).await?;
        if length == 0 {
            return Ok(body);
        }
    }
}
