//! The sessions of one turn: each opened when it is first needed, and all ended with the turn.

use crate::llm::egress::Egress;
use crate::llm::tool::Tool;
use crate::shutdown::Shutdown;
use crate::tools::mcp::content;
use crate::tools::mcp::message::McpError;
use crate::tools::mcp::server::Server;
use crate::tools::mcp::session::Session;
use crate::tools::tool::Arguments;
use crate::tools::tool::Outcome;
use crate::tools::tool::ServerTool;
use async_trait::async_trait;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The servers of a turn, and the sessions with them. Dropping it says goodbye to all.
pub struct Sessions {
    egress: Egress,
    shutdown: Shutdown,
    servers: Vec<(Server, OnceCell<Session>)>,
}

impl Sessions {
    /// With nobody yet.
    pub fn new(egress: Egress, shutdown: Shutdown, servers: Vec<Server>) -> Self {
        let servers = servers.into_iter().map(|it| (it, OnceCell::new()));
        Self {
            egress,
            shutdown,
            servers: servers.collect(),
        }
    }

    /// The server of this label.
    pub fn server(&self, label: &str) -> Option<&Server> {
        let found = self.servers.iter().find(|it| it.0.label == label);
        found.map(|it| &it.0)
    }

    async fn with(&self, label: &str) -> Result<&Session, McpError> {
        let found = self.servers.iter().find(|it| it.0.label == label);
        let (server, session) = found.ok_or(McpError::Unreachable)?;
        let open = || Session::open(&self.egress, server);
        session.get_or_try_init(open).await
    }
}

impl Drop for Sessions {
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
    pub sessions: Arc<Sessions>,
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

    async fn run(&self, arguments: &Arguments, _: &(dyn Fn(&str) + Sync)) -> Outcome {
        let session = self.sessions.with(&self.label).await;
        let session = session.map_err(|it| it.to_string())?;
        let result = session.call(&self.name, arguments).await;
        content::text(&result.map_err(|it| it.to_string())?)
    }
}
