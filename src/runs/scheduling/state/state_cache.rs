//! Defines `StateCache`, which keeps in memory the parts of conversations' states that change only
//! together with the conversation's `rev` (its runs, its active round and its newest message), and
//! the active members of spaces, which change only together with the space's `roster_rev`.
//!
//! **Invariant:** an entry is used only for a conversation that the transaction has locked, and
//! only if its row has the `rev` of the entry. Each change of these parts increments `rev` in the
//! same transaction, on whichever node it is made; the two exceptions are a running run, whose
//! heartbeat and wait are updated without it, and hidden conversations, which have no entry. An
//! entry is stored after its transaction has committed, before the step's lock on this node is
//! released.
//!
//! **Invariant:** a step sees each change of a roster that was committed before the step began. On
//! PostgreSQL, a change that commits while the step waits for the lock may be missing, unless it
//! also marks the conversation with `needs_step`. Rosters with a copilot are not kept, because each
//! step of a copilot changes them.

use std::sync::Arc;

use base::ids::{ConversationId, SpaceId};
use moka::sync::Cache;

use crate::conversations::{conversation, message};
use crate::memory_limited_cache::memory_limited_cache;
use crate::rounds::round;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::plan_writer::{WrittenMessage, WrittenPlan};
use crate::runs::store::run;
use crate::spaces::membership::CopilotMode;
use crate::spaces::{membership, space};

/// The approximate memory of all entries.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The approximate memory of an entry without the text of its message.
const ENTRY_BYTES: usize = 4 * 1024;
/// The approximate memory of all rosters.
const MAX_ROSTER_BYTES: u64 = 16 * 1024 * 1024;
/// The approximate memory of a member without its persona and settings.
const MEMBER_BYTES: usize = 2 * 1024;

/// The cache. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct StateCache {
    entries: Cache<ConversationId, Arc<CachedState>>,
    rosters: Cache<SpaceId, Roster>,
}

/// The active members of a space, in roster order.
#[derive(Clone)]
struct Roster {
    rev: i64,
    members: Arc<[membership::Model]>,
}

/// What is kept of a state.
#[derive(Debug)]
pub struct CachedState {
    rev: i64,
    /// With the heartbeat and the wait that it had at the last step.
    pub running: Option<run::Model>,
    pub queued: Option<run::Model>,
    pub round: Option<round::Model>,
    pub tail: Option<message::Model>,
}

impl Default for StateCache {
    /// Creates an empty cache.
    fn default() -> Self {
        Self {
            entries: memory_limited_cache(MAX_BYTES, |_, entry: &Arc<CachedState>| {
                ENTRY_BYTES + entry.tail.as_ref().map_or(0, |it| it.content.len())
            }),
            rosters: memory_limited_cache(MAX_ROSTER_BYTES, |_, roster: &Roster| {
                MEMBER_BYTES + roster.members.iter().map(n_bytes).sum::<usize>()
            }),
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
        let is_tail =
            |it: &WrittenMessage| Some(&it.row) == tail || it.is_new && !it.row.is_scheduled();
        let is_tail_current = written.messages.iter().all(is_tail);
        if row.is_hidden || state.space.is_hidden || !is_tail_current {
            return self.remove(row.id);
        }
        let entry = CachedState {
            rev: row.rev,
            running: state.running.clone(),
            queued: state.queued.clone(),
            round: state.round.clone(),
            tail: tail.cloned(),
        };
        self.entries.insert(row.id, Arc::new(entry));
    }

    /// Returns the active members of a space if they are known.
    pub fn find_roster(&self, space: &space::Model) -> Option<Arc<[membership::Model]>> {
        let found = self.rosters.get(&space.id)?;
        (found.rev == space.roster_rev).then_some(found.members)
    }

    /// Keeps the active members of a space, which were loaded after the row of the space.
    pub fn store_roster(&self, space: &space::Model, members: &Arc<[membership::Model]>) {
        if has_copilot(members) {
            return self.rosters.invalidate(&space.id);
        }
        let roster = Roster {
            rev: space.roster_rev,
            members: members.clone(),
        };
        self.rosters.insert(space.id, roster);
    }

    /// Forgets a conversation, for example after a step that failed.
    pub fn remove(&self, conversation: ConversationId) {
        self.entries.invalidate(&conversation);
    }
}

/// Returns the approximate memory of a member.
fn n_bytes(member: &membership::Model) -> usize {
    let persona = member.persona.as_ref().map_or(0, String::len);
    MEMBER_BYTES + persona + member.settings.to_string().len()
}

/// Returns whether the copilot of one of these members is on.
pub fn has_copilot(members: &[membership::Model]) -> bool {
    members
        .iter()
        .any(|it| it.copilot_mode == CopilotMode::Full)
}
