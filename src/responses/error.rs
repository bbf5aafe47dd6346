//! Why a response cannot be created, read or changed. `v1/error.rs` translates this for clients.

use sea_orm::DbErr;

use crate::responses::mcp_approvals::ApprovalError;
use crate::responses::pending_tool_calls::ToolOutputError;

/// An error of the response engine; nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum ResponseEngineError {
    #[error("there is no response with this id")]
    NotFound,
    #[error("the model {0} is not there")]
    ModelNotFound(String),
    #[error("the previous response {0} is not there")]
    PreviousNotFound(String),
    #[error("the previous response is not over")]
    PreviousInProgress,
    #[error("the previous response has failed")]
    PreviousNotUsable,
    #[error("there is no conversation with this id")]
    ConversationNotFound,
    #[error("another response of this conversation is not over")]
    ConversationLocked,
    /// The field that refers to it.
    #[error("{0} names an item that is not there")]
    UnknownItem(String),
    #[error("calls and outputs do not fit together: {0:?}")]
    InvalidToolOutputs(ToolOutputError),
    /// The field that names it.
    #[error("{0} names a tool that is not here")]
    UnknownTool(String),
    #[error("{n_tokens} tokens do not fit into {window}")]
    PromptTooLong { n_tokens: i64, window: i64 },
    /// The limit in bytes, for all items together.
    #[error("what it goes on from is larger than {0} bytes")]
    HistoryTooLarge(i64),
    /// The field that requests it.
    #[error("the model's API has no words for {0}")]
    UnsupportedParameter(&'static str),
    #[error("every place is taken")]
    ServerBusy,
    #[error("this person's places are taken")]
    UserLimitReached,
    #[error("only background responses can be cancelled")]
    NotCancellable,
    #[error("this response has no stream to show")]
    StreamNotAvailable,
    #[error("the space is archived")]
    SpaceArchived,
    #[error("the space has used up its tokens")]
    TokenLimitReached,
    #[error("nobody in the space can speak")]
    NoSpeaker,
    /// The field that contains it.
    #[error("{0} was not sealed here, or not for this person")]
    UndecryptableItem(String),
    #[error("the model says that it is too long")]
    TooLongForModel,
    /// The message is shown to users.
    #[error("the model failed: {0}")]
    Upstream(String),
    #[error("approvals do not fit: {0:?}")]
    InvalidApprovals(ApprovalError),
    /// The label of the server.
    #[error("the address of the server {0} may not be called")]
    ForbiddenServerAddress(String),
    #[error("the model cannot be asked")]
    ModelUnavailable,
    #[error(transparent)]
    Database(#[from] DbErr),
}
