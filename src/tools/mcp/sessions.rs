//! The sessions of one turn: each opened when it is first needed, and all ended with the turn.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use crate::llm::outbound_client::OutboundClient;
use crate::llm::tool::Tool;
use crate::shutdown::Shutdown;
use crate::tools::mcp::content;
use crate::tools::mcp::message::McpError;
use crate::tools::mcp::server::McpServer;
use crate::tools::mcp::session::McpSession;
use crate::tools::tool::{ServerTool, ToolArguments, ToolResult};

/// The servers of a turn, and the sessions with them. Dropping it says goodbye to all.
pub struct McpSessions {
    client: OutboundClient,
    shutdown: Shutdown,
    servers: Vec<(McpServer, OnceCell<McpSession>)>,
}

impl McpSessions {
    /// With nobody yet.
    pub fn new(client: OutboundClient, shutdown: Shutdown, servers: Vec<McpServer>) -> Self {
        let servers = servers.into_iter().map(|it| (it, OnceCell::new()));
        Self {
            client: client,
            shutdown,
            servers: servers.collect(),
        }
    }

    /// The server of this label.
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

/// A tool of a server, which can be called like one of ours.
pub struct RemoteTool {
    pub sessions: Arc<McpSessions>,
    pub label: String,
    /// As its server calls it.
    pub name: String,
    pub declaration: Tool,
}

#[async_trait]
impl ServerTool for RemoteTool {
    fn declaration(&self) -> Tool {
        self.declaration.clone()
    }

    async fn run(&self, arguments: &ToolArguments, _: &(dyn Fn(&str) + Sync)) -> ToolResult {
        let session = self.sessions.session_for(&self.label).await;
        let session = session.map_err(|it| it.to_string())?;
        let result = session.call_tool(&self.name, arguments).await;
        content::result_text(&result.map_err(|it| it.to_string())?)
    }
}
