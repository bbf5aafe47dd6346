//! Why memories could not be made or found.

use sea_orm::DbErr;
use tokio::task::JoinError;

/// An error of the memories of a space.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error(transparent)]
    Database(#[from] DbErr),
    /// The task that embeds or searches texts panicked.
    #[error("the task ended without a result")]
    TaskEnded(#[from] JoinError),
}
