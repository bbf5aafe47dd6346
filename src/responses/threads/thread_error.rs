//! Defines the error of operations on assistants and threads.

use sea_orm::DbErr;

/// Why an operation on a thread was refused; nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    #[error("the assistant, thread or message does not exist")]
    NotFound,
    /// The id of the run.
    #[error("the run {0} of the thread has not ended")]
    ActiveRun(String),
    #[error(transparent)]
    Database(#[from] DbErr),
}
