//! Why memories could not be made, found, imported or exported.

use sea_orm::DbErr;
use tokio::task::JoinError;

use crate::memories::models::memory_models::MemoryModelError;

/// An error of the memories of a space.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error(transparent)]
    Database(#[from] DbErr),
    /// The task that embeds or searches texts panicked.
    #[error("the task ended without a result")]
    TaskEnded(#[from] JoinError),
    #[error(transparent)]
    Model(#[from] MemoryModelError),
    /// The model returned an object without a summary.
    #[error("the answer of the model contains no summary")]
    NoSummary,
    /// Messages were changed again and again while a model summarized them.
    #[error("the messages changed while they were summarized")]
    MessagesChanged,
    /// The node shuts down, or the lease of the task was lost.
    #[error("the task was canceled")]
    Canceled,
    #[error("the file of memories could not be read or written")]
    Io(#[from] std::io::Error),
    /// A prompt does not wait longer.
    #[error("the memories took too long")]
    TimedOut,
}
