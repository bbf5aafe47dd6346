//! The types of what is recorded during the run: by the database, by the clients, by the fault
//! injectors.
//!
//! Instants are microseconds after 1970; all processes run on one machine and share its clock.

use std::collections::BTreeMap;
use std::time::SystemTime;

/// An instant.
pub type Micros = i64;

/// Now.
pub fn now() -> Micros {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.expect("this is after 1970").as_micros() as Micros
}

/// One change of a run, as a trigger saw it. `n` orders what happened in one conversation, since
/// every change is made under its lock; what one transaction did shares `tx`.
#[derive(Clone, Debug, Default)]
pub struct Move {
    pub n: i64,
    pub at: Micros,
    pub tx: i64,
    pub conversation: i64,
    pub run: String,
    /// Empty for a run that was made.
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
    /// Milliseconds from the last heartbeat to this change, when there was one.
    pub silence: i64,
    /// The code of the error, empty for none.
    pub error: String,
    /// The request to cancel asked to keep the partial text.
    pub kept: bool,
    /// Who speaks.
    pub seat: i64,
    /// That is a person, for whom a copilot speaks.
    pub by_copilot: bool,
}

/// One writing of a message, as a trigger saw it.
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
    /// The message of which it is a clone, 0 for none.
    pub origin: i64,
    pub seat: i64,
}

/// One more text of a message, as a trigger saw it.
#[derive(Clone, Debug, Default)]
pub struct Version {
    pub n: i64,
    pub tx: i64,
    pub conversation: i64,
    pub message: i64,
    /// 0 is the text that the message had before it had several.
    pub position: i64,
    /// Empty for none.
    pub run: String,
    pub content: String,
}

/// One change of a copilot, as a trigger saw it.
#[derive(Clone, Debug, Default)]
pub struct SeatMove {
    pub n: i64,
    pub tx: i64,
    pub seat: i64,
    /// How many texts it may still write; 0: it is off.
    pub steps: i64,
}

/// A message that a client wanted to post, and its outcome.
#[derive(Clone, Debug, Default)]
pub struct Post {
    pub client: usize,
    pub conversation: i64,
    pub key: String,
    pub content: String,
    /// Whether it must get an answer.
    pub asks: bool,
    pub tries: Vec<PostAttempt>,
}

/// One request.
#[derive(Clone, Debug, Default)]
pub struct PostAttempt {
    pub node: usize,
    pub at: Micros,
    pub answered_at: Micros,
    /// 0: no answer came.
    pub status: u16,
    /// The code of the error.
    pub code: String,
    pub message: i64,
    pub seq: i64,
}

impl Post {
    /// The first answer that promised that it is stored.
    pub fn acknowledged(&self) -> Option<&PostAttempt> {
        self.tries
            .iter()
            .find(|it| (200..300).contains(&it.status) && it.message != 0)
    }

    /// Every request was answered, each time with a refusal that stores nothing.
    pub fn refused(&self) -> bool {
        let is_refusal = |it: &PostAttempt| (400..500).contains(&it.status);
        !self.tries.is_empty() && self.tries.iter().all(is_refusal)
    }
}

/// A look for an acknowledged message through another node.
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
    /// The run that is to write it, empty for none.
    pub run: String,
    /// Where it is to be found.
    pub conversation: i64,
}

/// A client whose connection stayed open and that never sent another frame.
#[derive(Clone, Debug, Default)]
pub struct SilentClient {
    pub node: usize,
    pub silent_at: Micros,
    /// When the server hung up; 0: it did not.
    pub closed_at: Micros,
    /// Whether others saw the user as present after the connection was gone.
    pub is_shown: bool,
}

/// A stop that was acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    pub conversation: i64,
    pub asked_at: Micros,
    pub at: Micros,
}

/// What a tab heard about one conversation.
#[derive(Clone, Debug)]
pub struct Note {
    pub at: Micros,
    pub heard: ReceivedEvent,
}

#[derive(Clone, Debug)]
pub enum ReceivedEvent {
    /// A new connection, to this node.
    Connected(usize),
    Snapshot {
        asked_at: Micros,
        after: Option<i64>,
        rev: i64,
        reset: bool,
        /// Id and `rev` of each message in it.
        messages: Vec<(i64, i64)>,
        /// The run that is being written, and its text.
        stream: Option<(String, String)>,
    },
    Durable {
        rev: i64,
        kind: String,
        /// Of the whole frame.
        digest: u64,
        /// The run that this event ends, if it does.
        ends: Option<String>,
        /// Id and `rev` of the message that it contains, if any.
        message: Option<(i64, i64)>,
    },
    /// A text for this seat alone.
    Candidate(i64),
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

/// All that one tab heard about one conversation, and what it shows in the end.
#[derive(Clone, Debug, Default)]
pub struct ClientLog {
    pub client: usize,
    pub conversation: i64,
    /// As whom.
    pub seat: i64,
    pub notes: Vec<Note>,
    pub lines: Vec<Line>,
    /// Id and `rev` of each message that is shown.
    pub revs: Vec<(i64, i64)>,
    /// The snapshot came after many events, or after a reset: it shows the newest ones.
    pub is_late: bool,
    pub complaints: Vec<String>,
}

/// A fault, and whether the nodes were ready again afterwards.
#[derive(Clone, Debug, Default)]
pub struct Fault {
    pub kind: String,
    /// Which node it hit; none: something that all of them stand on.
    pub node: Option<usize>,
    /// The name under which that node held its runs.
    pub worker: String,
    pub at: Micros,
    /// When whatever was hit went on, or was started again.
    pub until: Micros,
    pub healed: bool,
}

/// All timelines at one instant: how many messages each has, and the greatest `seq` among them, both
/// counted from the fork point.
#[derive(Clone, Debug, Default)]
pub struct DatabaseSample {
    pub counts: Vec<(i64, i64, i64)>,
}

/// The rules of one conversation.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub space: i64,
    pub debounce_ms: i64,
    pub max_auto: i64,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub moves: Vec<Move>,
    pub writings: Vec<Writing>,
    pub versions: Vec<Version>,
    pub seats: Vec<SeatMove>,
    pub posts: Vec<Post>,
    pub wishes: Vec<PromisedText>,
    /// How many candidates were asked for.
    pub n_candidates: usize,
    pub ghosts: Vec<SilentClient>,
    pub read_backs: Vec<ReadBack>,
    pub stops: Vec<Stop>,
    pub ears: Vec<ClientLog>,
    pub faults: Vec<Fault>,
    pub looks: Vec<DatabaseSample>,
    pub rules: BTreeMap<i64, Rules>,
    /// What the database shows of each conversation in the end.
    pub timelines: BTreeMap<i64, Vec<Line>>,
    /// Each conversation's `rev` and `last_seq` in the end.
    pub heads: BTreeMap<i64, (i64, i64)>,
    /// Messages that show a text which is none of theirs.
    pub strangers: Vec<i64>,
    /// Requests that reached the model.
    pub n_calls: usize,
    /// How many of them were answered badly.
    pub n_spoilt: usize,
    /// What the model said whole.
    pub said: Vec<String>,
    /// How many tabs there are, and which of their timelines were behind ten seconds after all
    /// rested, without having come back.
    pub n_tabs: usize,
    pub behind: Vec<String>,
    /// Places in the code that panicked without a fail point.
    pub panics: Vec<String>,
    pub stale_ms: i64,
    pub heartbeat_ms: i64,
    pub run_timeout_ms: i64,
}
