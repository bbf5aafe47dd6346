//! The types of the records of a chaos run, from the database, the clients and the fault injectors.
//!
//! Instants are microseconds since 1970; all processes run on one machine and share its clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use crate::stored_record::{Audience, StoredState};

/// An instant or a duration.
pub type Micros = i64;

/// Returns the current time.
pub fn now() -> Micros {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.expect("the clock is after 1970").as_micros() as Micros
}

/// One change of a run, recorded by a trigger. `n` orders the changes of one conversation, because
/// each is made under its lock; the changes of one transaction share `tx`.
#[derive(Clone, Debug, Default)]
pub struct Move {
    pub n: i64,
    pub at: Micros,
    pub tx: i64,
    pub conversation: i64,
    pub run: String,
    /// Empty for a new run.
    pub was: String,
    pub became: String,
    pub lease_was: i64,
    pub lease: i64,
    pub node: String,
    pub kind: String,
    pub reason: String,
    /// Empty for none.
    pub round: String,
    pub slot: i64,
    /// -1 for none.
    pub cutoff: i64,
    /// In milliseconds.
    pub run_after: i64,
    /// In milliseconds, 0 for none.
    pub burst: i64,
    /// Milliseconds from the last heartbeat, if any, to this change.
    pub silence: i64,
    /// The error code, empty for none.
    pub error: String,
    /// The cancellation requested to keep the partial text.
    pub kept: bool,
    /// The membership that speaks.
    pub membership: i64,
    /// The membership is that of a user, for whom the copilot writes.
    pub by_copilot: bool,
    pub audience: Audience,
}

/// One insert or update of a message, recorded by a trigger.
#[derive(Clone, Debug, Default)]
pub struct Writing {
    pub n: i64,
    pub at: Micros,
    pub tx: i64,
    pub conversation: i64,
    pub message: i64,
    pub seq: i64,
    pub rev: i64,
    pub is_new: bool,
    pub role: String,
    pub hidden: bool,
    /// Empty for none.
    pub run: String,
    /// Empty for none.
    pub key: String,
    pub content: String,
    /// In milliseconds.
    pub created: i64,
    /// The message that it was cloned from, 0 for none.
    pub origin: i64,
    pub membership: i64,
    pub audience: Audience,
    /// No character is in its audience.
    pub is_for_people: bool,
}

/// A new swipe of a message, recorded by a trigger.
#[derive(Clone, Debug, Default)]
pub struct Version {
    pub n: i64,
    pub tx: i64,
    pub conversation: i64,
    pub message: i64,
    /// 0 is the text that the message had before its first swipe.
    pub position: i64,
    /// Empty for none.
    pub run: String,
    pub content: String,
}

/// One change of a copilot, recorded by a trigger.
#[derive(Clone, Debug, Default)]
pub struct CopilotChange {
    pub n: i64,
    pub tx: i64,
    pub membership: i64,
    /// How many texts it may still write; 0 if it is off.
    pub steps: i64,
}

/// A message that a client wanted to post, and its outcome.
#[derive(Clone, Debug, Default)]
pub struct Post {
    pub client: usize,
    pub conversation: i64,
    pub key: String,
    pub content: String,
    /// Its audience with its author; empty for everyone.
    pub audience: Audience,
    /// The memberships that it mentions.
    pub mentions: Vec<i64>,
    /// Whether it must get a reply.
    pub expects_reply: bool,
    pub tries: Vec<PostAttempt>,
}

/// One request.
#[derive(Clone, Debug, Default)]
pub struct PostAttempt {
    pub node: usize,
    pub at: Micros,
    pub answered_at: Micros,
    /// 0 if there was no response.
    pub status: u16,
    /// The error code.
    pub code: String,
    pub message: i64,
    pub seq: i64,
}

impl Post {
    /// The first response that confirmed that it is stored.
    pub fn acknowledged(&self) -> Option<&PostAttempt> {
        self.tries
            .iter()
            .find(|it| (200..300).contains(&it.status) && it.message != 0)
    }

    /// Every request had a response, and all of them rejected the message.
    pub fn refused(&self) -> bool {
        let is_refusal = |it: &PostAttempt| (400..500).contains(&it.status);
        !self.tries.is_empty() && self.tries.iter().all(is_refusal)
    }
}

/// A read of an acknowledged message through another node.
#[derive(Clone, Debug, Default)]
pub struct ReadBack {
    pub conversation: i64,
    pub message: i64,
    pub node: usize,
    pub found: bool,
}

/// A swipe or a branch that a user requested and the server accepted.
#[derive(Clone, Debug, Default)]
pub struct PromisedText {
    pub what: &'static str,
    /// The run that will write it, empty for none.
    pub run: String,
    /// The conversation of the text.
    pub conversation: i64,
}

/// A client that stopped sending frames but kept its connection open.
#[derive(Clone, Debug, Default)]
pub struct SilentClient {
    pub node: usize,
    pub silent_at: Micros,
    /// When the server closed the connection; 0 if it did not.
    pub closed_at: Micros,
    /// Whether others saw the user as present after the connection was closed.
    pub is_shown: bool,
}

/// An acknowledged stop.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    pub conversation: i64,
    pub asked_at: Micros,
    pub at: Micros,
}

/// A request to skip a turn that was not rejected.
#[derive(Clone, Debug, Default)]
pub struct Skip {
    pub conversation: i64,
    pub asked_at: Micros,
    /// `None` without a response: a node may still skip the turn later.
    pub answered_at: Option<Micros>,
}

/// An event of one conversation that a tab received.
#[derive(Clone, Debug)]
pub struct Note {
    pub at: Micros,
    pub event: ReceivedEvent,
}

#[derive(Clone, Debug)]
pub enum ReceivedEvent {
    /// A new connection to this node.
    Connected(usize),
    Snapshot {
        asked_at: Micros,
        after: Option<i64>,
        rev: i64,
        reset: bool,
        /// Id and `rev` of each message in it.
        messages: Vec<(i64, i64)>,
        /// The streaming run, and its text.
        stream: Option<(String, String)>,
    },
    Durable {
        rev: i64,
        kind: String,
        /// Parts are left out, because the tab's user is not in an audience.
        is_reduced: bool,
        /// The hash of the whole frame.
        digest: u64,
        /// The run that this event ends, if it does.
        ends: Option<String>,
        /// Id and `rev` of the message that it contains, if any.
        message: Option<(i64, i64)>,
    },
    /// A suggestion for this membership only.
    Candidate(i64),
    /// It is the turn of this membership.
    Turn(i64),
    TypingStart(String),
    Chunk {
        run: String,
        offset: usize,
        delta: String,
    },
    Reset(String, String),
    Complete(String),
    TypingStop(String),
    Resync,
}

/// `(seq, role, content)`.
pub type Line = (i64, String, String);

/// All events of one conversation that a tab received, and what it shows in the end.
#[derive(Clone, Debug, Default)]
pub struct ClientLog {
    pub client: usize,
    pub conversation: i64,
    /// The membership of the tab's user.
    pub membership: i64,
    pub notes: Vec<Note>,
    pub lines: Vec<Line>,
    /// Id and `rev` of each shown message.
    pub revs: Vec<(i64, i64)>,
    /// The snapshot followed many events or a reset: the tab shows only the newest messages.
    pub is_late: bool,
    pub complaints: Vec<String>,
}

/// What one user received, in frames and in responses.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    pub client: usize,
    pub memberships: Vec<i64>,
    /// The keys of whispers and replies.
    pub keys: BTreeSet<String>,
    /// The ids of messages.
    pub messages: BTreeSet<i64>,
}

/// A request to the model that got a right response.
#[derive(Clone, Debug, Default)]
pub struct ModelCall {
    /// The key of the reply, or the reason for which a speaker was chosen.
    pub key: String,
    /// The keys of the whispers in the request.
    pub whispers: BTreeSet<String>,
}

/// A fault, and whether the nodes were ready again afterwards.
#[derive(Clone, Debug, Default)]
pub struct Fault {
    pub kind: String,
    /// The affected node, `None` for a shared service.
    pub node: Option<usize>,
    /// The worker name of that node.
    pub worker: String,
    pub at: Micros,
    /// When the affected process continued or was started again.
    pub until: Micros,
    pub healed: bool,
}

/// All timelines at one instant: how many messages each has, and the greatest `seq` among them, both
/// counted from the fork point.
#[derive(Clone, Debug, Default)]
pub struct DatabaseSample {
    pub counts: Vec<(i64, i64, i64)>,
}

/// A posted sentence about a person, and its memories at the end of the run.
#[derive(Clone, Debug, Default)]
pub struct StoredFact {
    pub key: String,
    /// Whether a node confirmed that its message is stored.
    pub is_acknowledged: bool,
    /// Whether its message is neither hidden nor edited.
    pub is_shown: bool,
    pub n_memories: usize,
    /// How many of them the model made; the others are the unchanged message.
    pub n_extracted: usize,
}

/// The settings of one conversation.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub space: i64,
    pub debounce_ms: i64,
    pub max_auto: i64,
    pub humans_take_turns: bool,
}

/// All records of a chaos run.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub moves: Vec<Move>,
    pub writings: Vec<Writing>,
    pub versions: Vec<Version>,
    pub copilot_changes: Vec<CopilotChange>,
    pub posts: Vec<Post>,
    pub promises: Vec<PromisedText>,
    /// How many candidates were requested.
    pub n_candidates: usize,
    pub silent_clients: Vec<SilentClient>,
    pub read_backs: Vec<ReadBack>,
    pub stops: Vec<Stop>,
    pub skips: Vec<Skip>,
    pub client_logs: Vec<ClientLog>,
    pub faults: Vec<Fault>,
    pub samples: Vec<DatabaseSample>,
    pub rules: BTreeMap<i64, Rules>,
    /// What is stored in the end.
    pub stored: StoredState,
    pub readers: Vec<Reader>,
    pub calls: Vec<ModelCall>,
    /// Requests to choose a speaker that reached the model.
    pub n_choices: usize,
    /// Each conversation's `rev` and `last_seq` in the end.
    pub heads: BTreeMap<i64, (i64, i64)>,
    /// Messages whose text equals none of their swipes.
    pub wrong_texts: Vec<i64>,
    /// The sentences about people that were posted.
    pub stored_facts: Vec<StoredFact>,
    /// Requests that reached the model, except those of the memory and of the director.
    pub n_calls: usize,
    /// How many of them got a faulty response.
    pub n_faulty: usize,
    /// The texts that the model has sent completely.
    pub sent_texts: Vec<String>,
    /// The number of tabs, and which of their timelines were behind ten seconds after the last run,
    /// before the tabs connected again.
    pub n_tabs: usize,
    pub behind: Vec<String>,
    /// Places in the code that panicked without a fail point.
    pub panics: Vec<String>,
    pub stale_ms: i64,
    pub heartbeat_ms: i64,
    pub run_timeout_ms: i64,
}
