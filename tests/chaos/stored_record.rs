//! The types of what the database stores of messages, runs and rounds, alike for both databases.

use std::collections::BTreeMap;

/// The memberships that see something; empty for everyone.
pub type Audience = Vec<i64>;

/// Returns whether a user with these memberships sees what has this audience.
pub fn sees(memberships: &[i64], audience: &[i64]) -> bool {
    audience.is_empty() || memberships.iter().any(|it| audience.contains(it))
}

/// A message that is not hidden.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredLine {
    /// `(seq, role, content)`.
    pub line: (i64, String, String),
    pub audience: Audience,
}

/// One version of a message; a message without swipes has one.
#[derive(Clone, Debug, Default)]
pub struct StoredText {
    pub conversation: i64,
    pub message: i64,
    pub position: i64,
    pub content: String,
    pub audience: Audience,
    /// The membership that speaks.
    pub author: i64,
    /// The message was cloned into a branch.
    pub is_clone: bool,
    /// The run that wrote it, empty for none.
    pub run: String,
    /// The kind and the final state of that run, empty for none.
    pub kind: String,
    pub end: String,
}

/// A run as it is in the end.
#[derive(Clone, Debug, Default)]
pub struct StoredRun {
    pub run: String,
    pub conversation: i64,
    pub kind: String,
    pub status: String,
    pub audience: Audience,
    /// Why its speaker was chosen, empty if there is none.
    pub chosen_because: String,
    /// Its space has the reply order `director`.
    pub is_directed: bool,
    /// Its speaker is a user, for whom the copilot writes.
    pub by_copilot: bool,
}

/// The slot of a person in a round.
#[derive(Clone, Debug, Default)]
pub struct PersonTurn {
    pub round: String,
    pub conversation: i64,
    pub membership: i64,
    pub status: String,
    /// Empty for none.
    pub skip_reason: String,
    /// The message that filled it, 0 for none.
    pub message: i64,
}

/// One insert or update of a round, recorded by a trigger.
#[derive(Clone, Debug, Default)]
pub struct RoundChange {
    /// On PostgreSQL it orders the changes together with those of runs and messages.
    pub n: i64,
    /// In microseconds since 1970.
    pub at: i64,
    /// 0 on SQLite.
    pub tx: i64,
    pub conversation: i64,
    pub round: String,
    pub status: String,
    pub state: String,
    pub cursor: i64,
    /// In milliseconds, 0 for none.
    pub deadline: i64,
}

/// Everything that is read from both databases in the end.
#[derive(Clone, Debug, Default)]
pub struct StoredState {
    /// The messages of each conversation.
    pub timelines: BTreeMap<i64, Vec<StoredLine>>,
    pub texts: Vec<StoredText>,
    pub runs: Vec<StoredRun>,
    pub turns: Vec<PersonTurn>,
    pub round_changes: Vec<RoundChange>,
}
