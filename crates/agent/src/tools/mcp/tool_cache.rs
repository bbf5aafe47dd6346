//! Returns the tools of an MCP server as one user sees them: fetches the list from the server, and
//! caches it for five minutes per user, URL and credentials.
//!
//! **Invariant:** a cached list is used only for the same user with the same credentials. Errors
//! are not cached.

use std::sync::Arc;
use std::time::Duration;

use base::ids::UserId;
use moka::sync::Cache;
use outbound_http::client::OutboundClient;
use tokio::time::timeout;

use crate::tools::mcp::message::McpError;
use crate::tools::mcp::remote_server::McpServer;
use crate::tools::mcp::session::McpSession;
use crate::tools::mcp::tool_info::McpTool;

/// How long a list is cached.
const TIME_TO_LIVE: Duration = Duration::from_secs(5 * 60);

/// Time limit for fetching a list.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of cached lists.
const MAX_LISTS: u64 = 256;

/// Cached tool lists of this node. Cheap to clone; clones share the cache.
#[derive(Clone)]
pub struct McpToolCache {
    egress: OutboundClient,
    cache: Cache<[u8; 32], Arc<Vec<McpTool>>>,
}

impl McpToolCache {
    /// Creates an empty cache.
    pub fn new(egress: OutboundClient) -> Self {
        let known = Cache::builder()
            .max_capacity(MAX_LISTS)
            .time_to_live(TIME_TO_LIVE);
        Self {
            egress,
            cache: known.build(),
        }
    }

    /// Returns the client that fetches the lists.
    pub fn egress(&self) -> &OutboundClient {
        &self.egress
    }

    /// Returns the tools of a server as `owner` sees them.
    ///
    /// # Errors
    /// Returns `TimedOut` when fetching takes too long, and any error of the session.
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
