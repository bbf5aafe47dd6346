//! Defines what the director answered, and how the reason is shown to users.

use base::ids::MembershipId;

use crate::runs::store::run;

/// The most speakers that one answer may name.
pub const MAX_SPEAKERS: usize = 4;
/// The longest reason, in characters.
const MAX_REASON_CHARS: usize = 200;

/// What the director answered, and what that has cost.
#[derive(Clone, Debug)]
pub struct DirectorChoice {
    pub answer: Result<DirectorAnswer, DirectorFailure>,
    pub usage: Option<run::RunUsage>,
}

/// A usable answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectorAnswer {
    /// Known characters, each once, in their order; at least one.
    pub speakers: Vec<MembershipId>,
    /// As the model wrote it; may be empty.
    pub reason: String,
}

/// Why there is no usable answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectorFailure {
    /// There was no answer within the time limit.
    Timeout,
    CallFailed,
    /// The answer names no character that may speak.
    NoUsableName,
}

impl DirectorAnswer {
    /// Returns the reason as users read it: one line of limited length.
    pub fn shown_reason(&self) -> String {
        let words: Vec<&str> = self.reason.split_whitespace().collect();
        let reason: String = words.join(" ").chars().take(MAX_REASON_CHARS).collect();
        match reason.trim_end() {
            "" => "director".to_owned(),
            reason => format!("director: {reason}"),
        }
    }
}

impl DirectorFailure {
    /// Returns the code in the reason and in the log.
    pub fn code(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::CallFailed => "call_failed",
            Self::NoUsableName => "no_usable_name",
        }
    }

    /// Returns the reason of a speaker that another rule chose instead.
    pub fn shown_reason(self, instead: &str) -> String {
        let failure = self.code();
        format!("director failed ({failure}): {instead}")
    }
}
