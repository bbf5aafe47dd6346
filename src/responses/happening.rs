//! What can happen in a turn, as the fold is told it.

use crate::clock::Timestamp;
use crate::responses::document::Bill;
use crate::responses::document::Trouble;
use crate::responses::fold_calls::Call;
use serde_json::Value;

/// What can happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// It was written down, or began; always first.
    Created,
    /// The model is asked.
    Began,
    /// Somebody speaks from here on; their items tell who.
    Speaks(Value),
    /// The next piece of what is thought; never empty.
    Thought(String),
    /// The next piece of what is said; never empty.
    Said(String),
    /// How likely each token was of what is said next; never empty.
    Weighed(Vec<Value>),
    /// Where something that was said comes from.
    Cited(Value),
    /// The next piece of why there is no answer; never empty.
    Refused(String),
    /// A call for the client to run, whole or cut off.
    Called(Call, Cut),
    /// A tool of ours begins.
    ToolBegan(Call),
    /// It tells how far it is.
    ToolMoved(String),
    /// It has ended: with its output, or with what went wrong.
    ToolEnded(Result<String, String>),
    /// The model is asked again.
    AskedAgain,
    /// It is over.
    Ended(Ending),
}

/// Whether a call lacks its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Whole,
    Short,
}

/// How a response ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    pub how: How,
    pub usage: Option<Bill>,
    pub at: Timestamp,
}

/// The ways to end.
#[derive(Clone, Debug, PartialEq)]
pub enum How {
    Completed,
    /// For this reason.
    Incomplete(&'static str),
    Failed(Trouble),
    Cancelled,
}
