//! Why a response is not begun, shown or changed. Doors put it into their words.

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
    #[error("{n_tokens} tokens do not fit into {window}")]
    TooLong { n_tokens: i64, window: i64 },
    /// In bytes, all items together.
    #[error("what it goes on from is larger than {0} bytes")]
    TooMuch(i64),
    #[error("every place is taken")]
    Full,
    #[error("this person's places are taken")]
    ShareTaken,
    #[error("only background responses can be cancelled")]
    NotCancellable,
    #[error("this response has no stream to show")]
    StreamNotAvailable,
    /// Which field holds it.
    #[error("{0} was not sealed here, or not for this person")]
    Unsealed(String),
    #[error("the model says that it is too long")]
    TooLongForModel,
    /// For people.
    #[error("the model failed: {0}")]
    Upstream(String),
    #[error("the model cannot be asked")]
    Unusable,
    #[error(transparent)]
    Database(#[from] DbErr),
}
