//! Tracks whether writes reach the disk, for `/readyz`, and refuses writes after the file was found
//! damaged. All database access updates it.
//!
//! **Invariant:** after a failed write the state is `Failing` until a write probe succeeds; after
//! damage of the file was found it is `Damaged` until the process ends, and nothing more is
//! written.

use std::sync::Arc;

use parking_lot::Mutex;
use sea_orm::{DbErr, RuntimeErr};
use tokio::sync::Notify;

use crate::db::backend;
use crate::db::backend::StorageFailure;

/// Whether writes reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteState {
    /// The last write or write probe succeeded.
    Working,
    /// The last write failed, for this reason.
    Failing(&'static str),
    /// A page of the database file cannot be read: nothing is written until the restart.
    Damaged,
}

/// The reason when the error of a failed COMMIT contains none.
pub(super) const COMMIT_FAILED: &str = "A COMMIT failed.";
/// The reason when SQLite could not roll back because it had already done so.
pub(super) const ROLLED_BACK: &str = "The database rolled a transaction back by itself.";
/// The message of errors while the file is damaged.
pub const DAMAGED_MESSAGE: &str =
    "The database file is damaged. Stop the server and restore a backup.";

/// The current write state. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub struct WriteHealth {
    shared: Arc<SharedHealth>,
}

#[derive(Debug)]
struct SharedHealth {
    state: Mutex<WriteState>,
    failure_started: Notify,
}

impl Default for WriteHealth {
    fn default() -> Self {
        let shared = SharedHealth {
            state: Mutex::new(WriteState::Working),
            failure_started: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }
}

impl WriteHealth {
    /// Returns the current state.
    pub fn state(&self) -> WriteState {
        *self.shared.state.lock()
    }

    /// Returns once a write has failed and no probe has succeeded since.
    pub(super) async fn wait_until_failing(&self) {
        loop {
            let notified = self.shared.failure_started.notified();
            if matches!(self.state(), WriteState::Failing(_)) {
                return;
            }
            notified.await;
        }
    }

    /// Refuses a write while the file is damaged.
    ///
    /// # Errors
    /// Returns `Conn` if it is; the request then gets a 503 response.
    pub(super) fn require_writable(&self) -> Result<(), DbErr> {
        if self.state() == WriteState::Damaged {
            return Err(DbErr::Conn(RuntimeErr::Internal(
                DAMAGED_MESSAGE.to_owned(),
            )));
        }
        Ok(())
    }

    /// Records file damage reported by the error of a read.
    pub(super) fn observe_read(&self, error: &(dyn std::error::Error + 'static)) {
        if backend::storage_failure(error) == Some(StorageFailure::Damaged) {
            self.set_state(WriteState::Damaged, error);
        }
    }

    /// Records what an error inside a writing transaction reports about the disk and the file.
    pub(super) fn observe_write(&self, error: &(dyn std::error::Error + 'static)) {
        match backend::storage_failure(error) {
            Some(StorageFailure::Damaged) => self.set_state(WriteState::Damaged, error),
            Some(failure) => self.set_state(WriteState::Failing(failure.reason()), error),
            None => {}
        }
    }

    /// Records a failed COMMIT or ROLLBACK; `reason` is used if the error contains none.
    pub(super) fn observe_transaction_end(&self, error: &DbErr, reason: &'static str) {
        self.observe_write(error);
        // A lost connection is not a failure of the disk, and a transaction rolled back because of
        // another one is no failure.
        if backend::storage_failure(error).is_none() && !backend::is_transient(error) {
            self.set_state(WriteState::Failing(reason), error);
        }
    }

    /// Records that a write probe succeeded.
    pub(super) fn record_recovery(&self) {
        let mut state = self.shared.state.lock();
        if matches!(*state, WriteState::Failing(_)) {
            *state = WriteState::Working;
            drop(state);
            tracing::info!("writes succeed again: the write probe was stored");
        }
    }

    /// Sets the state; logs only the first failure of several.
    fn set_state(&self, next: WriteState, error: &dyn std::error::Error) {
        let mut state = self.shared.state.lock();
        let before = *state;
        if before == WriteState::Damaged {
            return;
        }
        *state = next;
        drop(state);
        match next {
            WriteState::Damaged => tracing::error!(
                %error,
                "the database file is damaged, nothing more is written until the restart: {error}"
            ),
            WriteState::Failing(reason) if before == WriteState::Working => tracing::error!(
                %error,
                reason,
                "a write failed, the server is not ready until a write probe succeeds: {error}"
            ),
            _ => {}
        }
        self.shared.failure_started.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::{DbErr, RuntimeErr};

    use super::{COMMIT_FAILED, WriteHealth, WriteState};

    fn unknown() -> DbErr {
        DbErr::Exec(RuntimeErr::Internal("no code".to_owned()))
    }

    #[test]
    fn a_failed_commit_lasts_until_a_probe_succeeds() {
        let health = WriteHealth::default();

        health.observe_transaction_end(&unknown(), COMMIT_FAILED);

        assert_eq!(health.state(), WriteState::Failing(COMMIT_FAILED));
        health.record_recovery();
        assert_eq!(health.state(), WriteState::Working);
    }

    #[test]
    fn damage_lasts_and_refuses_every_write() {
        let health = WriteHealth::default();

        health.set_state(WriteState::Damaged, &unknown());
        health.record_recovery();
        health.observe_transaction_end(&unknown(), COMMIT_FAILED);

        assert_eq!(health.state(), WriteState::Damaged);
        assert!(health.require_writable().is_err());
    }

    #[test]
    fn an_application_error_is_no_storage_failure() {
        let health = WriteHealth::default();

        health.observe_write(&unknown());
        health.observe_read(&unknown());

        assert_eq!(health.state(), WriteState::Working);
    }
}
