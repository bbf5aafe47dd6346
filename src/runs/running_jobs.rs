//! The background jobs that this node executes, so that no job gets a second task.

use std::sync::Arc;

use base::ids::JobId;
use dashmap::DashSet;
use tokio::sync::Mutex;

/// The jobs of a node. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct RunningJobs {
    /// Held while a batch is written.
    pub(super) batch_lock: Arc<Mutex<()>>,
    /// The jobs that have a task on this node.
    pub(super) running: Arc<DashSet<JobId>>,
}
