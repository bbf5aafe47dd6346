//! Defines `StateCache`, which keeps in memory the parts of conversations' states that change only
//! together with the conversation's `rev`: its runs, its active round and its newest message.
//!
//! **Invariant:** an entry is used only for a conversation that the transaction has locked, and
//! only if its row has the `rev` of the entry. Each change of these parts increments `rev` in the
//! same transaction, on whichever node it is made; the two exceptions are a running run, whose
//! heartbeat and wait are updated without it and which is therefore loaded each time, and hidden
//! conversations, which have no entry. An entry is stored after its transaction has committed,
//! before the step's lock on this node is released.

use std::sync::Arc;

use base::ids::ConversationId;
use moka::sync::Cache;

use crate::conversations::{conversation, message};
use crate::rounds::active_round::ActiveRound;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::plan_writer::WrittenPlan;
use crate::runs::store::run;

/// The approximate memory of all entries.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The approximate memory of an entry without the text of its message.
const ENTRY_BYTES: usize = 4 * 1024;

/// The cache. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct StateCache {
    entries: Cache<ConversationId, Arc<CachedState>>,
}

/// What is kept of a state.
#[derive(Debug)]
pub struct CachedState {
    rev: i64,
    /// If a run is running, it and the queued one are not kept.
    pub has_running: bool,
    pub queued: Option<run::Model>,
    pub round: Option<ActiveRound>,
    pub tail: Option<message::Model>,
}

impl Default for StateCache {
    /// Creates an empty cache.
    fn default() -> Self {
        let weight = |_: &ConversationId, entry: &Arc<CachedState>| {
            let text = entry.tail.as_ref().map_or(0, |it| it.content.len());
            u32::try_from(ENTRY_BYTES + text).unwrap_or(u32::MAX)
        };
        let entries = Cache::builder().max_capacity(MAX_BYTES).weigher(weight);
        Self {
            entries: entries.build(),
        }
    }
}

impl StateCache {
    /// Returns what is known of a locked conversation.
    pub fn find(&self, locked: &conversation::Model) -> Option<Arc<CachedState>> {
        let found = self.entries.get(&locked.id)?;
        (found.rev == locked.rev).then_some(found)
    }

    /// Keeps the state after a committed step. A step that changed an existing message is not kept,
    /// because the message may be the newest one.
    pub fn store(&self, state: &ScheduleState, written: &WrittenPlan) {
        let row = &state.conversation;
        let tail = state.tail.as_ref();
        let is_tail_current = written.messages.iter().all(|it| Some(&it.row) == tail);
        if row.is_hidden || state.space.is_hidden || !is_tail_current {
            return self.remove(row.id);
        }
        let has_running = state.running.is_some();
        let entry = CachedState {
            rev: row.rev,
            has_running,
            queued: state.queued.clone().filter(|_| !has_running),
            round: state.round.clone(),
            tail: tail.cloned(),
        };
        self.entries.insert(row.id, Arc::new(entry));
    }

    /// Forgets a conversation, for example after a step that failed.
    pub fn remove(&self, conversation: ConversationId) {
        self.entries.invalidate(&conversation);
    }
}
