//! Defines the error types of the run engine's operations and of reading a conversation.

use sea_orm::DbErr;
use tokio::task::JoinError;

use crate::characters::quota::{QuotaError, QuotaExceeded};
use crate::runs::scheduling::command::CommandError;

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
    /// The operation's task panicked. Its panic is not repeated here: it may contain a text.
    #[error("the task ended without a result")]
    TaskEnded(#[from] JoinError),
}

impl EngineError {
    /// Returns whether the server failed, rather than refused the operation.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Database(_) | Self::TaskEnded(_))
    }
}

/// Why a conversation could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ConversationReadError {
    #[error(transparent)]
    Database(#[from] DbErr),
    /// The task that renders the texts, or builds the prompt, panicked.
    #[error("the task ended without a result")]
    TaskEnded(#[from] JoinError),
    #[error("a message could not be serialized: {0}")]
    Json(#[from] serde_json::Error),
}

impl From<QuotaError> for EngineError {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Exceeded(full) => Self::StorageFull(full),
            QuotaError::Db(error) => Self::Database(error),
        }
    }
}
