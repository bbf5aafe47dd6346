//! Lists of tools, asked for once in a while.
//!
//! **Invariant:** a list is never shown to another person, nor to the same one with another key. A
//! server that did not answer is asked again the next time.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use tokio::time::timeout;

use crate::ids::UserId;
use crate::llm::outbound_client::OutboundClient;
use crate::tools::mcp::message::McpError;
use crate::tools::mcp::server::McpServer;
use crate::tools::mcp::session::McpSession;
use crate::tools::mcp::tool_info::McpTool;

/// So long is a list good.
const TIME_TO_LIVE: Duration = Duration::from_secs(5 * 60);

/// So long may a server take to tell its list.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// The most lists.
const MAX_LISTS: u64 = 256;

/// The lists that this node knows. Cloning gives another handle on the same ones.
#[derive(Clone)]
pub struct McpToolCache {
    egress: OutboundClient,
    cache: Cache<[u8; 32], Arc<Vec<McpTool>>>,
}

impl McpToolCache {
    /// Without a list yet.
    pub fn new(egress: OutboundClient) -> Self {
        let known = Cache::builder()
            .max_capacity(MAX_LISTS)
            .time_to_live(TIME_TO_LIVE);
        Self {
            egress,
            cache: known.build(),
        }
    }

    /// The way out.
    pub fn egress(&self) -> &OutboundClient {
        &self.egress
    }

    /// The tools of a server, as `owner` sees them.
    ///
    /// # Errors
    /// The server does not tell.
    pub async fn tools_of(
        &self,
        owner: UserId,
        server: &McpServer,
    ) -> Result<Arc<Vec<McpTool>>, McpError> {
        let key = server.cache_key(owner);
        if let Some(known) = self.cache.get(&key) {
            return Ok(known);
        }
        let listing = timeout(LIST_TIMEOUT, self.fetch(server)).await;
        let list = Arc::new(listing.map_err(|_| McpError::TimedOut)??);
        self.cache.insert(key, list.clone());
        Ok(list)
    }

    async fn fetch(&self, server: &McpServer) -> Result<Vec<McpTool>, McpError> {
        let session = McpSession::open(&self.egress, server).await?;
        let tools = session.list_tools().await;
        session.close().await;
        tools
    }
}
