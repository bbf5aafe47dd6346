//! The error of the run engine's operations.

use sea_orm::DbErr;

use crate::characters::quota::{QuotaError, QuotaExceeded};
use crate::runs::command::CommandError;

/// Why an operation of the engine failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The scheduler refused the command.
    #[error(transparent)]
    Rejected(#[from] CommandError),
    /// A run that the plan changes is no longer in the expected state: another step was faster.
    #[error("the run is no longer ours")]
    Conflict,
    /// The text exceeds the storage quota of the space's owner.
    #[error(transparent)]
    StorageFull(#[from] QuotaExceeded),
    /// The user has another branch job that is running.
    #[error("another branch is being created for this user")]
    JobRunning,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbErr),
}

impl From<QuotaError> for EngineError {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Exceeded(full) => Self::StorageFull(full),
            QuotaError::Db(error) => Self::Database(error),
        }
    }
}
