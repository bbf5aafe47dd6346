//! Skips the turns of people whose time is over. Every node does this; concurrent attempts are safe,
//! because the scheduler checks the deadline under the conversation's lock.
//!
//! **Invariant:** a notification only shortens the wait: without one, deadlines that began elsewhere are
//! found by the poll.

use std::time::Duration;

use base::clock::Timestamp;

use crate::rounds::round;
use crate::runs::error::EngineError;
use crate::runs::scheduling::command::Command;
use crate::runs::scheduling::scheduler;
use crate::runs::services::RunServices;

/// How often deadlines are read, to find those of other nodes and those whose notification was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How many turns are skipped before the deadlines are read again.
const BATCH: u64 = 100;

/// Skips turns at their deadlines until the node stops.
pub async fn run(context: RunServices) {
    let stopping = context.shutdown.stopping.clone();
    while !stopping.is_cancelled() {
        // Registered before the deadlines are read, so that none is missed in between.
        let turn_began = context.turn_began.notified();
        let next = match skip_passed(&context).await {
            Ok((_, next)) => next,
            Err(error) => {
                tracing::warn!(%error, "failed to skip turns of people; retrying: {error}");
                None
            }
        };
        let deadline = async {
            match next {
                Some(at) => context.clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stopping.cancelled() => {}
            () = turn_began => {}
            () = deadline => {}
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

/// Skips the turns whose deadline has passed. Returns how many, and the next deadline.
///
/// # Errors
/// Returns the database's error when it fails.
pub async fn skip_passed(context: &RunServices) -> Result<(u32, Option<Timestamp>), EngineError> {
    // Deadlines need a synchronized clock.
    if !context.is_clock_synchronized() {
        return Ok((0, None));
    }
    let mut n_skipped = 0;
    for turn in round::list_deadlines(context.db.reader(), BATCH).await? {
        if turn.deadline_at > context.clock.now() {
            return Ok((n_skipped, Some(turn.deadline_at)));
        }
        let command = Command::TurnTimedOut { round: turn.id };
        match scheduler::step(context, turn.conversation_id, command).await {
            Ok(_) => n_skipped += 1,
            Err(error) if error.is_failure() => return Err(error),
            Err(_) => {} // another node was faster, or the person has posted
        }
    }
    Ok((n_skipped, None))
}
