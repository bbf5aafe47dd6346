//! Defines the lease types of the runs that this node executes, and creates the lease of a claimed
//! run.

use base::ids::{ConversationId, RunId};
use leased_jobs::lease::{ActiveLeases, CancelHandle, Lease};
use tokio_util::sync::CancellationToken;

use crate::runs::store::run;

/// The lease of a run that this node executes; exists until the executor has finished.
pub type RunLease = Lease<RunId, ConversationId>;

/// The runs of this node.
pub type ActiveRuns = ActiveLeases<RunId, ConversationId>;

/// Returns the lease of a run that this node has claimed; the run ends when `releasing` fires.
pub fn of_run(run: &run::Model, releasing: &CancellationToken) -> RunLease {
    let cancel = CancelHandle::child_of(releasing);
    Lease::new(run.id, run.lease, cancel, run.conversation_id)
}
