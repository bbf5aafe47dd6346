//! Why a response is not begun, shown or changed. Doors put it into their words.

use crate::responses::approvals::Unanswered;
use crate::responses::open_calls::Misfit;
use sea_orm::DbErr;

/// A refusal; nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
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
    /// Which field names it.
    #[error("{0} names an item that is not there")]
    UnknownItem(String),
    #[error("calls and outputs do not fit together: {0:?}")]
    Calls(Misfit),
    /// Which field names it.
    #[error("{0} names a tool that is not here")]
    NoSuchTool(String),
    #[error("{n_tokens} tokens do not fit into {window}")]
    TooLong { n_tokens: i64, window: i64 },
    /// In bytes, all items together.
    #[error("what it goes on from is larger than {0} bytes")]
    TooMuch(i64),
    /// Which field asks for it.
    #[error("the model's API has no words for {0}")]
    CannotKeep(&'static str),
    #[error("every place is taken")]
    Full,
    #[error("this person's places are taken")]
    ShareTaken,
    #[error("only background responses can be cancelled")]
    NotCancellable,
    #[error("this response has no stream to show")]
    StreamNotAvailable,
    #[error("the space is archived")]
    SpaceArchived,
    #[error("the space has used up its tokens")]
    TokenLimit,
    #[error("nobody in the space can speak")]
    NoSpeaker,
    /// Which field holds it.
    #[error("{0} was not sealed here, or not for this person")]
    Unsealed(String),
    #[error("the model says that it is too long")]
    TooLongForModel,
    /// For people.
    #[error("the model failed: {0}")]
    Upstream(String),
    #[error("approvals do not fit: {0:?}")]
    Approvals(Unanswered),
    /// By its label.
    #[error("the address of the server {0} may not be called")]
    ServerAddress(String),
    #[error("the model cannot be asked")]
    Unusable,
    #[error(transparent)]
    Database(#[from] DbErr),
}
