//! One session with an MCP server: opens it, lists and calls its tools, and closes it.
//!
//! Each message is a separate POST. The response is a JSON document, or an event stream that
//! contains the response among other messages. Those are ignored, because a client without
//! capabilities receives no requests that it must answer.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use llm::stream::sse::{SseDecoder, SseFrame};
use outbound_http::client::OutboundClient;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::tools::mcp::message;
use crate::tools::mcp::message::McpError;
use crate::tools::mcp::remote_server::McpServer;
use crate::tools::mcp::tool_info::McpTool;

/// The version that we request, and the versions that we support.
const VERSION: &str = "2025-06-18";
const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Maximum size of a response, including all other messages of its stream, in bytes.
const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;

/// Maximum size of a tool list, in pages and in tools.
const MAX_PAGES: usize = 16;
const MAX_TOOLS: usize = 512;

/// Maximum size of all tool descriptions and schemas of a server together, in bytes.
const MAX_LIST_BYTES: usize = 1024 * 1024;

/// Time limit of the request that ends a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// An open session.
pub struct McpSession {
    client: OutboundClient,
    url: Url,
    /// Credentials, and the session id if the server has assigned one.
    headers: HeaderMap,
    next_id: AtomicI64,
}

impl McpSession {
    /// Opens a session with the `initialize` handshake.
    ///
    /// # Errors
    /// Returns `Unreachable` or `Forbidden` when the server cannot be called, and `InvalidResponse`
    /// when it does not follow the protocol.
    pub async fn open(client: &OutboundClient, server: &McpServer) -> Result<Self, McpError> {
        let mut session = Self {
            client: client.clone(),
            url: server.url_with_query(),
            headers: server.credentials.to_headers(),
            next_id: AtomicI64::new(1),
        };
        let hello = json!({
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": { "name": "troupe", "version": env!("CARGO_PKG_VERSION") },
        });
        let (id, body) = session.request("initialize", &hello);
        let response = session.send(&body).await?;
        let name = response.headers().get(&SESSION).cloned();
        let result = read_response(response, id).await?;
        let version = result["protocolVersion"].as_str().unwrap_or_default();
        if !VERSIONS.contains(&version) {
            return Err(McpError::InvalidResponse);
        }
        let version = HeaderValue::from_str(version).map_err(|_| McpError::InvalidResponse)?;
        session.headers.insert(PROTOCOL, version);
        if let Some(mut name) = name {
            name.set_sensitive(true);
            session.headers.insert(SESSION, name);
        }
        let ready = message::notification("notifications/initialized");
        session.send(&ready).await?;
        Ok(session)
    }

    /// Returns all tools of the server.
    ///
    /// # Errors
    /// Returns `TooLarge` when the list exceeds a limit, and any error of the requests.
    pub async fn list_tools(&self) -> Result<Vec<McpTool>, McpError> {
        let (mut all, mut n_bytes) = (Vec::new(), 0);
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let page = self.send_request("tools/list", &params).await?;
            let tools = page["tools"].as_array().ok_or(McpError::InvalidResponse)?;
            let text = page["tools"].to_string();
            n_bytes += text.len();
            if n_bytes > MAX_LIST_BYTES || all.len() + tools.len() > MAX_TOOLS {
                return Err(McpError::TooLarge);
            }
            // Databases reject U+0000, and no valid tool contains it.
            if text.contains("\\u0000") {
                return Err(McpError::InvalidResponse);
            }
            all.extend(tools.iter().filter_map(McpTool::parse));
            match page["nextCursor"].as_str() {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok(all),
            }
        }
        Err(McpError::TooLarge)
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// Returns an error when the server rejects the call. A tool that fails is not an error here:
    /// its result is marked as one.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Value, McpError> {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send_request("tools/call", &params).await
    }

    /// Ends the session, if the server has assigned a session id.
    pub async fn close(&self) {
        if !self.headers.contains_key(&SESSION) {
            return;
        }
        if let Ok(delete) = self.client.delete(self.url.clone()) {
            // A server that misses this request discards the session after its own timeout.
            let _ = timeout(CLOSE_TIMEOUT, delete.headers(self.headers.clone()).send()).await;
        }
    }

    async fn send_request(&self, method: &str, params: &Value) -> Result<Value, McpError> {
        let (id, body) = self.request(method, params);
        read_response(self.send(&body).await?, id).await
    }

    fn request(&self, method: &str, params: &Value) -> (i64, Value) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        (id, message::request(id, method, params))
    }

    /// Sends a message and returns the response if its status is a success.
    async fn send(&self, body: &Value) -> Result<Response, McpError> {
        let post = self.client.post(self.url.clone());
        let post = post.map_err(|_| McpError::Forbidden)?;
        let response = post
            .headers(self.headers.clone())
            .header(ACCEPT, "application/json, text/event-stream")
            .header(ACCEPT_ENCODING, "identity")
            .json(body)
            .send()
            .await
            .map_err(|_| McpError::Unreachable)?;
        match response.status() {
            status if status.is_success() => Ok(response),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(McpError::Unauthorized),
            status => Err(McpError::Status(status.as_u16())),
        }
    }
}

/// Reads the response to request `id`.
async fn read_response(response: Response, id: i64) -> Result<Value, McpError> {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    match kind.to_ascii_lowercase().as_str() {
        "application/json" => read_whole(response, id).await,
        "text/event-stream" => read_stream(response, id).await,
        _ => Err(McpError::InvalidResponse),
    }
}

async fn read_whole(mut response: Response, id: i64) -> Result<Value, McpError> {
    let mut body = Vec::new();
    while let Some(chunk) = chunk(&mut response).await? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(McpError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    let reply = serde_json::from_slice(&body).map_err(|_| McpError::InvalidResponse)?;
    message::find_response(&reply, id).unwrap_or(Err(McpError::InvalidResponse))
}

async fn read_stream(mut response: Response, id: i64) -> Result<Value, McpError> {
    let (mut decoder, mut n_bytes) = (SseDecoder::default(), 0);
    while let Some(chunk) = chunk(&mut response).await? {
        n_bytes += chunk.len();
        if n_bytes > MAX_ANSWER_BYTES {
            return Err(McpError::TooLarge);
        }
        for frame in decoder.feed(&chunk) {
            if let Some(answer) = parse_frame(&frame, id) {
                return answer;
            }
        }
    }
    let last = decoder.finish();
    let answer = last.as_ref().and_then(|it| parse_frame(it, id));
    answer.unwrap_or(Err(McpError::InvalidResponse))
}

fn parse_frame(frame: &SseFrame, id: i64) -> Option<Result<Value, McpError>> {
    match frame {
        SseFrame::Comment => None,
        SseFrame::Oversized => Some(Err(McpError::TooLarge)),
        SseFrame::Event { data, .. } => {
            let reply: Value = serde_json::from_str(data).ok()?;
            message::find_response(&reply, id)
        }
    }
}

async fn chunk(response: &mut Response) -> Result<Option<bytes::Bytes>, McpError> {
    response.chunk().await.map_err(|_| McpError::Unreachable)
}
