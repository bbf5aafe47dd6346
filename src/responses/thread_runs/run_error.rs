//! Defines the error type of operations on runs, which `web/v1/assistants/run_errors.rs` translates
//! for clients.

use sea_orm::DbErr;

use crate::responses::error::ResponseEngineError;
use crate::responses::threads::thread_error::ThreadError;

/// An error of an operation on a run; nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum RunOperationError {
    #[error("the assistant, thread, run or step does not exist")]
    NotFound,
    #[error(transparent)]
    Thread(#[from] ThreadError),
    #[error("the run has ended")]
    NotCancellable,
    #[error("the run does not wait for outputs of tools")]
    NotAwaitingTools,
    /// The ids of the calls.
    #[error("outputs are missing for these calls: {0:?}")]
    MissingToolOutput(Vec<String>),
    /// The position of the output, and the id of its call.
    #[error("output {0} is for no open call: {1}")]
    UnknownToolCall(usize, String),
    /// The position of the second output, and the id of its call.
    #[error("output {0} is the second one for the call {1}")]
    DuplicateToolOutput(usize, String),
    #[error(transparent)]
    Refused(#[from] ResponseEngineError),
}

impl From<DbErr> for RunOperationError {
    fn from(error: DbErr) -> Self {
        Self::Refused(error.into())
    }
}
