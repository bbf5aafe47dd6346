//! Lists of tools, asked for once in a while.
//!
//! **Invariant:** a list is never shown to another person, nor to the same one with another key. A
//! server that did not answer is asked again the next time.

use crate::ids::UserId;
use crate::llm::egress::Egress;
use crate::tools::mcp::listed::Listed;
use crate::tools::mcp::message::McpError;
use crate::tools::mcp::server::Server;
use crate::tools::mcp::session::Session;
use moka::sync::Cache;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// So long is a list good.
const GOOD_FOR: Duration = Duration::from_secs(5 * 60);

/// So long may a server take to tell its list.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most lists.
const MOST: u64 = 256;

/// The lists that this node knows. Cloning gives another handle on the same ones.
#[derive(Clone)]
pub struct Lists {
    egress: Egress,
    known: Cache<[u8; 32], Arc<Vec<Listed>>>,
}

impl Lists {
    /// Without a list yet.
    pub fn new(egress: Egress) -> Self {
        let known = Cache::builder().max_capacity(MOST).time_to_live(GOOD_FOR);
        Self {
            egress,
            known: known.build(),
        }
    }

    /// The way out.
    pub fn egress(&self) -> &Egress {
        &self.egress
    }

    /// The tools of a server, as `owner` sees them.
    ///
    /// # Errors
    /// The server does not tell.
    pub async fn of(&self, owner: UserId, server: &Server) -> Result<Arc<Vec<Listed>>, McpError> {
        let mark = server.mark(owner);
        if let Some(known) = self.known.get(&mark) {
            return Ok(known);
        }
        let asked = timeout(PATIENCE, self.ask(server)).await;
        let list = Arc::new(asked.map_err(|_| McpError::Late)??);
        self.known.insert(mark, list.clone());
        Ok(list)
    }

    async fn ask(&self, server: &Server) -> Result<Vec<Listed>, McpError> {
        let session = Session::open(&self.egress, server).await?;
        let tools = session.tools().await;
        session.close().await;
        tools
    }
}
