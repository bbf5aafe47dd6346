//! Builds the row of a run that is to be queued.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, RunId, SpaceId};

use crate::runs::store::run;

/// Returns a new row for [`enqueue`](crate::runs::store::queue::enqueue) that is due immediately. Fields
/// that only a claim or an end sets are empty.
pub fn new_model(
    id: RunId,
    (space, conversation): (SpaceId, ConversationId),
    speaker: Option<MembershipId>,
    kind: run::RunKind,
    reason: run::RunReason,
    now: Timestamp,
) -> run::Model {
    run::Model {
        id,
        conversation_id: conversation,
        run_seq: 0, // assigned when it is queued
        space_id: space,
        round_id: None,
        slot_position: None,
        kind,
        status: run::RunStatus::Queued,
        reason,
        speaker_space_membership_id: speaker,
        audience: None,
        run_after: None,
        burst_started_at: None,
        created_at: now,
        cancel_requested_at: None,
        keep_partial: false,
        started_at: None,
        finished_at: None,
        heartbeat_at: None,
        worker_id: None,
        attempt: 1,
        lease: 0,
        waiting_for: None,
        cutoff_seq: None,
        error: None,
        usage: None,
        debug: run::RunDebug::default(),
        canceled_because: None,
        superseded_by_message_id: None,
    }
}
