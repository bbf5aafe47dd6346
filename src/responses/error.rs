//! Defines the error type of the response engine, which `web/v1/error.rs` translates for clients.

use leased_jobs::concurrency_limit::LimitReached;
use responses_api::pending_tool_calls::ToolOutputError;
use responses_api::request::error::WrongReference;
use sea_orm::DbErr;
use tavern::macros::environment::InvalidMacro;
use tokio::task::JoinError;

use crate::responses::execution::mcp::approvals::ApprovalError;

/// An error of the response engine; nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum ResponseEngineError {
    #[error("the response does not exist")]
    NotFound,
    #[error("the model {0} does not exist")]
    ModelNotFound(String),
    #[error("the previous response {0} does not exist")]
    PreviousNotFound(String),
    #[error("the previous response {0} has not ended")]
    PreviousInProgress(String),
    #[error("the previous response {0} has failed")]
    PreviousNotUsable(String),
    #[error("the conversation {0} does not exist")]
    ConversationNotFound(String),
    #[error("another response of this conversation has not ended")]
    ConversationLocked,
    #[error("{} refers to an item that does not exist", .0.param)]
    UnknownItem(WrongReference),
    #[error("tool calls and outputs do not match: {0:?}")]
    InvalidToolOutputs(ToolOutputError),
    #[error("{} refers to a tool that does not exist", .0.param)]
    UnknownTool(WrongReference),
    #[error("{n_tokens} tokens exceed the context window of {window}")]
    PromptTooLong { n_tokens: i64, window: i64 },
    #[error(transparent)]
    InvalidMacro(InvalidMacro),
    /// The limit in bytes, for all items together.
    #[error("the history is larger than {0} bytes")]
    HistoryTooLarge(i64),
    /// The field that requests it.
    #[error("the model does not support {0}")]
    UnsupportedParameter(&'static str),
    #[error("the limit of concurrent responses is reached")]
    ServerBusy,
    #[error("no further call of the provider may wait")]
    ProviderBusy,
    #[error("the user's limit of concurrent responses is reached")]
    UserLimitReached,
    #[error("the idempotency key is in use")]
    IdempotencyKeyInUse,
    #[error("only background responses can be canceled")]
    NotCancellable,
    #[error("this response has no event log")]
    StreamNotAvailable,
    #[error("the space is archived")]
    SpaceArchived,
    #[error("the space has used up its token limit")]
    TokenLimitReached,
    #[error("no character of the space can speak")]
    NoSpeaker,
    /// The field that contains it.
    #[error("{0} was not encrypted by this server for this user")]
    UndecryptableItem(String),
    #[error("the model rejected the prompt as too long")]
    TooLongForModel,
    /// The message is shown to users.
    #[error("the model failed: {0}")]
    Upstream(String),
    #[error("approval requests and responses do not match: {0:?}")]
    InvalidApprovals(ApprovalError),
    /// The label of the server.
    #[error("the address of the server {0} is not allowed")]
    ForbiddenServerAddress(String),
    #[error("the model is unavailable")]
    ModelUnavailable,
    #[error(transparent)]
    Database(#[from] DbErr),
    /// The operation's task panicked. Its panic is not repeated here: it may contain a text.
    #[error("the task ended without a result")]
    TaskEnded(#[from] JoinError),
}

impl From<LimitReached> for ResponseEngineError {
    fn from(limit: LimitReached) -> Self {
        match limit {
            LimitReached::Global => Self::ServerBusy,
            LimitReached::PerOwner => Self::UserLimitReached,
        }
    }
}
