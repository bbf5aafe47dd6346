//! The changes of memories that a run has requested by tool calls. They are written in the
//! transaction that stores its reply, so a failed or canceled run changes nothing.

use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::{MembershipId, MemoryId, SpaceId};
use parking_lot::Mutex;
use sea_orm::{ConnectionTrait, DbErr};

use crate::memories::memory_store::{NewSource, PreparedMemory};
use crate::memories::{memory_deletion, memory_store};

/// The maximum number of changes of one run.
const MAX_CHANGES: usize = 8;

/// One change.
#[derive(Clone, Debug)]
pub enum RequestedChange {
    Remember(Box<PreparedMemory>),
    Forget(MemoryId),
}

/// The changes that a run has requested so far, in order. Cheap to clone; clones share state.
#[derive(Clone, Debug, Default)]
pub struct PendingChanges(Arc<Mutex<Vec<RequestedChange>>>);

impl PendingChanges {
    /// Adds a change.
    ///
    /// # Errors
    /// Returns a sentence for the model if the run has requested too many.
    pub fn add(&self, change: RequestedChange) -> Result<(), String> {
        let mut changes = self.0.lock();
        if changes.len() >= MAX_CHANGES {
            return Err(format!(
                "At most {MAX_CHANGES} changes of memories are allowed in one reply."
            ));
        }
        changes.push(change);
        Ok(())
    }

    /// Returns all changes.
    pub fn list(&self) -> Arc<[RequestedChange]> {
        self.0.lock().iter().cloned().collect()
    }
}

/// Writes the changes that the run of `speaker` requested; `source` is its reply. A memory that was
/// changed in the meantime is deleted only if the speaker may still delete it. Returns the first version of
/// the space's memories that changed ones get.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn apply(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    speaker: MembershipId,
    changes: &[RequestedChange],
    source: &NewSource,
    now: Timestamp,
) -> Result<Option<i64>, DbErr> {
    let (mut remembered, mut forgotten) = (Vec::new(), Vec::new());
    for change in changes.iter().cloned() {
        match change {
            RequestedChange::Remember(memory) => {
                remembered.push(memory.with_source(source.clone()))
            }
            RequestedChange::Forget(id) => forgotten.push(id),
        }
    }
    let deleted = memory_deletion::delete_own(tx, space, speaker, forgotten, now).await?;
    let stored = memory_store::insert(tx, space, remembered, now).await?;
    Ok(deleted.or(stored.version))
}
