//! What a node knows about the background jobs that it executes.

use std::sync::Arc;

use base::ids::JobId;
use leased_jobs::lease::ActiveLeases;
use tokio::sync::Mutex;

/// What this node knows about its jobs. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct ActiveJobs {
    /// Held while a batch is written.
    pub(super) batch_lock: Arc<Mutex<()>>,
    /// The jobs that have a task on this node.
    pub leases: ActiveLeases<JobId>,
}
