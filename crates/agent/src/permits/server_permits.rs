//! Limits the calls of each tool server at the same time on this node, so that a slow server delays
//! only its own calls.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::permits::fair_permits::FairPermits;

/// The limits of all servers that are called now. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct ServerPermits {
    limit: usize,
    by_server: Arc<Mutex<HashMap<String, FairPermits>>>,
}

impl ServerPermits {
    /// Creates limits of `limit` calls for each server.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            by_server: Arc::default(),
        }
    }

    /// Returns the permits of a server.
    pub fn of(&self, server: String) -> FairPermits {
        let mut by_server = self.by_server.lock();
        if let Some(known) = by_server.get(&server) {
            return known.clone();
        }
        // Clients choose the servers, so their number over time is unlimited.
        by_server.retain(|_, it| it.is_used());
        let new = FairPermits::new(self.limit);
        by_server.insert(server, new.clone());
        new
    }
}

#[cfg(test)]
mod tests {
    use super::ServerPermits;

    #[test]
    fn servers_that_are_not_called_are_forgotten() {
        let servers = ServerPermits::new(1);
        let used = servers.of("used".to_owned());
        for it in 0..100 {
            servers.of(it.to_string());
        }

        let known: Vec<String> = servers.by_server.lock().keys().cloned().collect();

        assert_eq!(known.len(), 2, "{known:?}");
        assert!(known.contains(&"used".to_owned()));
        drop(used);
    }
}
