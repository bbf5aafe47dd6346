//! Sends HTTP requests byte by byte, for requests that no HTTP client would send.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::http_response::code;
use crate::support::poll::DEADLINE;

/// A response, read completely.
#[derive(Debug)]
pub struct RawResponse {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl RawResponse {
    /// Returns a header, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(it, _)| it == name);
        found.map_or("", |(_, value)| value)
    }

    /// Returns the status and code of an error and checks its format.
    pub fn error(&self) -> (u16, String) {
        let body: Value = serde_json::from_str(&self.body)
            .unwrap_or_else(|_| panic!("not JSON: {} {:?}", self.status, self.body));
        (self.status, code(&body))
    }
}

/// Sends these bytes over a new connection and reads one response.
pub async fn exchange(base: &str, request: impl AsRef<[u8]>) -> RawResponse {
    let host = base.strip_prefix("http://").expect("an http:// URL");
    let mut stream = TcpStream::connect(host).await.expect("the server listens");
    // The server may respond and close before it has received everything.
    let _ = stream.write_all(request.as_ref()).await;
    let answer = timeout(DEADLINE, read(&mut stream)).await;
    answer.expect("the server answers in time")
}

/// Returns a request with these headers, and with a `Host` if one is given.
pub fn request(line: &str, host: Option<&str>, headers: &[(&str, &str)]) -> String {
    let host = host.map(|it| ("Host", it));
    let headers = host.into_iter().chain(headers.iter().copied());
    let headers: String = headers
        .map(|(name, it)| format!("{name}: {it}\r\n"))
        .collect();
    format!("{line}\r\n{headers}\r\n")
}

/// The headers of a WebSocket upgrade request.
pub const UPGRADE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

async fn read(stream: &mut TcpStream) -> RawResponse {
    let mut bytes = Vec::new();
    let head_to = loop {
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break at;
        }
        let n = stream.read_buf(&mut bytes).await.unwrap_or(0);
        assert!(n > 0, "cut off: {:?}", String::from_utf8_lossy(&bytes));
    };
    let head = String::from_utf8_lossy(&bytes[..head_to]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|it| it.split(' ').nth(1));
    let headers: Vec<(String, String)> = lines
        .filter_map(|it| it.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut answer = RawResponse {
        status: status.and_then(|it| it.parse().ok()).expect("a status"),
        headers,
        body: String::new(),
    };
    let length = answer.header("content-length").parse().unwrap_or(0);
    while bytes.len() < head_to + 4 + length {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            break;
        }
    }
    answer.body = String::from_utf8_lossy(&bytes[head_to + 4..]).into_owned();
    answer
}
