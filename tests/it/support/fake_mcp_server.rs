//! A fake MCP server that records every request.

use std::sync::Arc;

use actix_web::web::Data;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The setting that lets members use tool servers on this machine.
pub const ALLOW_LOOPBACK: &[(&str, &str)] = &[("TROUPE_ALLOWED_PRIVATE_HOSTS", "127.0.0.1")];

/// How the fake server behaves.
#[derive(Clone, Debug, Default)]
pub struct ServerBehavior {
    pub tools: Vec<Value>,
    /// Results of calls are sent as event streams, between other events.
    pub streams: bool,
    /// Every request gets this status.
    pub status: Option<u16>,
    /// Every response has this body.
    pub body: Option<String>,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct ReceivedCall {
    pub method: String,
    pub params: Value,
    pub headers: Vec<(String, String)>,
}

impl ReceivedCall {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|it| it.0 == name);
        found.map(|it| it.1.as_str())
    }
}

#[derive(Default)]
struct State {
    behavior: Mutex<ServerBehavior>,
    received: Mutex<Vec<ReceivedCall>>,
}

/// Stops when it is dropped.
pub struct FakeMcpServer {
    pub url: String,
    state: Data<State>,
    task: JoinHandle<std::io::Result<()>>,
}

/// Returns the definition of a tool.
pub fn tool(name: &str, is_read_only: bool) -> Value {
    json!({
        "name": name, "description": format!("The tool {name}."),
        "inputSchema": { "type": "object", "properties": { "q": { "type": "string" } } },
        "annotations": { "readOnlyHint": is_read_only },
    })
}

impl FakeMcpServer {
    /// Starts a server with these tools.
    pub async fn start(tools: Vec<Value>) -> FakeMcpServer {
        let state = Data::from(Arc::new(State::default()));
        state.behavior.lock().tools = tools;
        let own = state.clone();
        let server = HttpServer::new(move || {
            App::new()
                .app_data(own.clone())
                .default_service(web::to(handle))
        });
        let server = server.workers(1).disable_signals();
        let server = server.bind("127.0.0.1:0").expect("there is a free port");
        let url = format!("http://{}/mcp", server.addrs()[0]);
        FakeMcpServer {
            url,
            state,
            task: tokio::spawn(server.run()),
        }
    }

    /// Changes the behavior for later requests.
    pub fn set_behavior(&self, change: impl FnOnce(&mut ServerBehavior)) {
        change(&mut self.state.behavior.lock());
    }

    /// Returns all requests so far.
    pub fn received(&self) -> Vec<ReceivedCall> {
        self.state.received.lock().clone()
    }

    /// Returns the methods of all requests.
    pub fn methods(&self) -> Vec<String> {
        self.received().into_iter().map(|it| it.method).collect()
    }

    /// Returns the parameters of all tool calls.
    pub fn calls(&self) -> Vec<Value> {
        let received = self.received().into_iter();
        let calls = received.filter(|it| it.method == "tools/call");
        calls.map(|it| it.params).collect()
    }
}

impl Drop for FakeMcpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn handle(state: Data<State>, request: HttpRequest, body: web::Bytes) -> HttpResponse {
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| {
        let value = value.to_str().unwrap_or_default();
        (name.as_str().to_owned(), value.to_owned())
    });
    let method = message["method"]
        .as_str()
        .unwrap_or(request.method().as_str());
    state.received.lock().push(ReceivedCall {
        method: method.to_owned(),
        params: message["params"].clone(),
        headers: headers.collect(),
    });
    let behavior = state.behavior.lock().clone();
    if let Some(status) = behavior.status {
        let status = status.try_into().expect("a valid HTTP status");
        return HttpResponse::build(status).finish();
    }
    if let Some(body) = behavior.body {
        return HttpResponse::Ok()
            .content_type("application/json")
            .body(body);
    }
    let result = match method {
        "initialize" => {
            let initialized = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "test", "version": "1" } });
            let initialized =
                json!({ "jsonrpc": "2.0", "id": message["id"], "result": initialized });
            return HttpResponse::Ok()
                .insert_header(("mcp-session-id", "session-1"))
                .json(initialized);
        }
        "tools/list" => page(&behavior.tools, &message["params"]["cursor"]),
        "tools/call" => called(&message["params"]),
        _ => return HttpResponse::Accepted().finish(),
    };
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    match behavior.streams {
        true => HttpResponse::Ok()
            .content_type("text/event-stream")
            .body(streamed(&answer)),
        false => HttpResponse::Ok().json(answer),
    }
}

/// Returns a page of two tools.
fn page(tools: &[Value], cursor: &Value) -> Value {
    let from: usize = cursor
        .as_str()
        .map_or(0, |it| it.parse().expect("a cursor of this server"));
    let to = (from + 2).min(tools.len());
    let mut page = json!({ "tools": tools[from..to] });
    if to < tools.len() {
        page["nextCursor"] = json!(to.to_string());
    }
    page
}

fn called(params: &Value) -> Value {
    let name = params["name"].as_str().unwrap_or_default();
    let text = format!("{name} got {}", params["arguments"]);
    json!({
        "content": [{ "type": "text", "text": text }], "isError": name.starts_with("fail"),
    })
}

fn streamed(answer: &Value) -> String {
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {} });
    format!(": hello\n\nevent: message\ndata: {progress}\n\nevent: message\ndata: {answer}\n\n")
}
