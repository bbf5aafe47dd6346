//! Why a verb of the engine changed nothing.

use sea_orm::DbErr;

use crate::characters::quota::{QuotaError, QuotaExceeded};
use crate::runs::command::CommandError;

/// What a caller of the engine must tell apart.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The rules say no.
    #[error(transparent)]
    Rejected(#[from] CommandError),
    /// A run that the plan moves is no longer where it was: somebody else was faster.
    #[error("the run is no longer ours")]
    Conflict,
    /// The text that it would store does not fit the quota of the space's owner.
    #[error(transparent)]
    StorageFull(#[from] QuotaExceeded),
    /// The person has another branch job that runs.
    #[error("another branch is being made for this person")]
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
