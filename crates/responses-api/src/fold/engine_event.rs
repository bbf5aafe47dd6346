//! Defines the events that a response task emits while it runs. The fold converts them to the
//! response object and its stream.

use base::clock::Timestamp;
use serde_json::Value;

use crate::item::{ItemBody, SealedReasoning};
use crate::response::{ResponseError, ResponseUsage};
use crate::status::{ItemStatus, ResponseStatus};

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineEvent {
    /// The response was stored or started; always the first event.
    Created,
    /// The first model call begins.
    Started,
    /// Another speaker begins; the value is the metadata of its items.
    SpeakerChanged(Value),
    /// The next piece of reasoning; never empty.
    ReasoningDelta(String),
    /// The reasoning so far is complete, in the form that the model's API expects back.
    ReasoningSealed(SealedReasoning),
    /// The next piece of text; never empty.
    TextDelta(String),
    /// The logprobs of the next text delta; never empty.
    Logprobs(Vec<Value>),
    /// A citation for part of the text.
    Annotation(Value),
    /// The next piece of a refusal; never empty.
    RefusalDelta(String),
    /// A model call ended, with its usage if that is known.
    ModelCallEnded(Option<ResponseUsage>),
    /// A tool call for the client, complete or cut off.
    ClientToolCall(ItemBody, Completeness),
    /// A server-side tool started.
    ToolStarted(ItemBody),
    /// The running tool reported progress.
    ToolProgress(String),
    /// The tool ended with its output or an error message.
    ToolFinished(Result<String, String>),
    /// The model is called again.
    NextIteration,
    /// The response ended.
    Finished(ResponseEnd),
}

/// Whether a tool call is complete or was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    Complete,
    Truncated,
}

impl Completeness {
    /// Returns the status of the item.
    pub fn status(self) -> ItemStatus {
        match self {
            Self::Complete => ItemStatus::Completed,
            Self::Truncated => ItemStatus::Incomplete,
        }
    }
}

/// How a response ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseEnd {
    pub outcome: ResponseOutcome,
    pub usage: Option<ResponseUsage>,
    pub at: Timestamp,
}

/// The ways a response can end.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseOutcome {
    Completed,
    /// Ended early, for this reason.
    Incomplete(&'static str),
    Failed(ResponseError),
    Cancelled,
}

impl ResponseOutcome {
    /// Returns the final status.
    pub fn status(&self) -> ResponseStatus {
        match self {
            Self::Completed => ResponseStatus::Completed,
            Self::Incomplete(_) => ResponseStatus::Incomplete,
            Self::Failed(_) => ResponseStatus::Failed,
            Self::Cancelled => ResponseStatus::Cancelled,
        }
    }

    /// Returns why a response ended early.
    pub fn incomplete_reason(&self) -> Option<String> {
        match self {
            Self::Incomplete(reason) => Some((*reason).to_owned()),
            Self::Cancelled => Some("cancelled".to_owned()),
            Self::Completed | Self::Failed(_) => None,
        }
    }
}
