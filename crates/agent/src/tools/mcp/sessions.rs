//! The MCP sessions of one response or run, opened on first use and closed together, and
//! `RemoteTool`, which calls a tool in such a session.

use std::sync::Arc;

use async_trait::async_trait;
use base::shutdown::Shutdown;
use llm::tool::Tool;
use outbound_http::client::OutboundClient;
use tokio::sync::OnceCell;

use crate::tools::mcp::message::McpError;
use crate::tools::mcp::remote_server::McpServer;
use crate::tools::mcp::result_text;
use crate::tools::mcp::session::McpSession;
use crate::tools::tool::{ServerTool, ToolArguments, ToolResult};

/// The servers of one response or run, and the sessions with them. Dropping it closes all sessions.
pub struct McpSessions {
    client: OutboundClient,
    shutdown: Shutdown,
    servers: Vec<(McpServer, OnceCell<McpSession>)>,
}

impl McpSessions {
    /// Creates the set without open sessions.
    pub fn new(client: OutboundClient, shutdown: Shutdown, servers: Vec<McpServer>) -> Self {
        let servers = servers.into_iter().map(|it| (it, OnceCell::new()));
        Self {
            client,
            shutdown,
            servers: servers.collect(),
        }
    }

    /// Returns the server with this label.
    pub fn find_server(&self, label: &str) -> Option<&McpServer> {
        let found = self.servers.iter().find(|it| it.0.label == label);
        found.map(|it| &it.0)
    }

    async fn session_for(&self, label: &str) -> Result<&McpSession, McpError> {
        let found = self.servers.iter().find(|it| it.0.label == label);
        let (server, session) = found.ok_or(McpError::Unreachable)?;
        let open = || McpSession::open(&self.client, server);
        session.get_or_try_init(open).await
    }
}

impl Drop for McpSessions {
    fn drop(&mut self) {
        for (_, session) in std::mem::take(&mut self.servers) {
            if let Some(session) = session.into_inner() {
                self.shutdown.spawn(async move { session.close().await });
            }
        }
    }
}

/// A tool of an MCP server, callable like a built-in tool.
pub struct RemoteTool {
    pub sessions: Arc<McpSessions>,
    pub label: String,
    /// The tool's name at its server.
    pub name: String,
    pub declaration: Tool,
}

#[async_trait]
impl ServerTool for RemoteTool {
    fn declaration(&self) -> Tool {
        self.declaration.clone()
    }

    fn server(&self) -> Option<String> {
        let server = self.sessions.find_server(&self.label)?;
        Some(server.url.origin().ascii_serialization())
    }

    async fn run(&self, arguments: &ToolArguments, _: &(dyn Fn(&str) + Sync)) -> ToolResult {
        let session = self.sessions.session_for(&self.label).await;
        let session = session.map_err(|it| it.to_string())?;
        let result = session.call_tool(&self.name, arguments).await;
        result_text::result_text(&result.map_err(|it| it.to_string())?)
    }
}
