//! What can happen in a turn, as the fold is told it.

use serde_json::Value;

use crate::clock::Timestamp;
use crate::responses::fold_calls::CallItem;
use crate::responses::response_document::{ResponseError, ResponseUsage};

/// What can happen.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineEvent {
    /// It was written down, or began; always first.
    Created,
    /// The model is asked.
    Started,
    /// Somebody speaks from here on; their items tell who.
    SpeakerChanged(Value),
    /// The next piece of what is thought; never empty.
    ReasoningDelta(String),
    /// The next piece of what is said; never empty.
    TextDelta(String),
    /// How likely each token was of what is said next; never empty.
    Logprobs(Vec<Value>),
    /// Where something that was said comes from.
    Annotation(Value),
    /// The next piece of why there is no answer; never empty.
    RefusalDelta(String),
    /// A call for the client to run, whole or cut off.
    ClientToolCall(CallItem, Completeness),
    /// A tool of ours begins.
    ToolStarted(CallItem),
    /// It tells how far it is.
    ToolProgress(String),
    /// It has ended: with its output, or with what went wrong.
    ToolFinished(Result<String, String>),
    /// The model is asked again.
    NextIteration,
    /// It is over.
    Finished(ResponseEnd),
}

/// Whether a call lacks its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    Complete,
    Truncated,
}

/// How a response ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseEnd {
    pub outcome: ResponseOutcome,
    pub usage: Option<ResponseUsage>,
    pub at: Timestamp,
}

/// The ways to end.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseOutcome {
    Completed,
    /// For this reason.
    Incomplete(&'static str),
    Failed(ResponseError),
    Cancelled,
}
