//! Holds the leases of the background jobs that this node executes, and the lock under which it
//! writes their batches.

use std::sync::Arc;

use base::ids::JobId;
use leased_jobs::lease::ActiveLeases;
use tokio::sync::Mutex;

/// The jobs that this node executes. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct ActiveJobs {
    /// Held while a batch is written.
    pub(super) batch_lock: Arc<Mutex<()>>,
    /// The jobs that have a task on this node.
    pub leases: ActiveLeases<JobId>,
}
