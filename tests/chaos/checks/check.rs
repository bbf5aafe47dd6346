//! The outcome of one check: its name, its rule, and the violations.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use crate::record::{Evidence, Move, Writing};

/// The number of violations that are printed for each rule.
const SHOWN: usize = 4;

/// How often a rule was checked, and its violations.
#[derive(Debug, Default)]
pub struct Check {
    /// The number of the invariant.
    pub id: &'static str,
    pub rule: &'static str,
    /// How many cases were checked.
    pub n: usize,
    pub broken: Vec<String>,
}

impl Check {
    /// Returns a check without cases.
    pub fn of(id: &'static str, rule: &'static str) -> Check {
        Check {
            id,
            rule,
            ..Check::default()
        }
    }

    /// Adds a case.
    pub fn expect(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        self.n += 1;
        if !holds {
            self.broken.push(otherwise());
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, n, n_broken) = (self.id, self.n, self.broken.len());
        writeln!(
            f,
            "  {id:4} checked {n:7} times, violated {n_broken:3}: {}",
            self.rule
        )?;
        for violation in self.broken.iter().take(SHOWN) {
            writeln!(f, "         {violation}")?;
        }
        Ok(())
    }
}

/// A claim with the cutoff that its transaction wrote.
pub struct Claim<'a> {
    pub step: &'a Move,
    /// -1 if none was written.
    pub cutoff: i64,
}

/// Returns every claim of a run.
pub fn claims(evidence: &Evidence) -> Vec<Claim<'_>> {
    let mut cutoffs: HashMap<(i64, &str), i64> = HashMap::new();
    for step in evidence.moves.iter().filter(|it| it.became == "running") {
        cutoffs.insert((step.tx, &step.run), step.cutoff);
    }
    let is_claim = |it: &&Move| it.was == "queued" && it.became == "running";
    let claims = evidence.moves.iter().filter(is_claim);
    claims
        .map(|step| Claim {
            step,
            cutoff: cutoffs[&(step.tx, step.run.as_str())],
        })
        .collect()
}

/// A text that a run wrote: a message or a swipe.
pub struct RunText<'a> {
    pub run: &'a str,
    pub tx: i64,
    pub message: i64,
    pub content: &'a str,
}

/// The texts of runs, each once: without the clones of a branch, which keep the run of the origin,
/// and without the original text of a message, which is stored again as its first swipe.
pub fn texts_of_runs(evidence: &Evidence) -> Vec<RunText<'_>> {
    let homes: HashMap<&str, i64> = evidence
        .moves
        .iter()
        .map(|it| (it.run.as_str(), it.conversation))
        .collect();
    let at_home = |run: &str, conversation: i64| {
        !run.is_empty() && homes.get(run).is_none_or(|it| *it == conversation)
    };
    let messages = evidence.writings.iter().filter(|it| it.is_new);
    let messages = messages.filter(|it| at_home(&it.run, it.conversation));
    let versions = evidence.versions.iter().filter(|it| it.position > 0);
    let versions = versions.filter(|it| at_home(&it.run, it.conversation));
    let messages = messages.map(|it| RunText {
        run: &it.run,
        tx: it.tx,
        message: it.message,
        content: &it.content,
    });
    let versions = versions.map(|it| RunText {
        run: &it.run,
        tx: it.tx,
        message: it.message,
        content: &it.content,
    });
    messages.chain(versions).collect()
}

/// The runs whose text begins with an older one, so that it is not what the model sent.
pub fn continues(evidence: &Evidence) -> HashSet<&str> {
    let all = evidence.moves.iter().filter(|it| it.kind == "continue");
    all.map(|it| it.run.as_str()).collect()
}

/// The messages of users, without clones.
pub fn of_people(evidence: &Evidence) -> impl Iterator<Item = &Writing> {
    let is_user_text =
        |it: &&Writing| it.is_new && it.role == "user" && it.run.is_empty() && it.origin == 0;
    evidence.writings.iter().filter(is_user_text)
}

/// The transitions of each run, in order.
pub fn by_run(evidence: &Evidence) -> BTreeMap<&str, Vec<&Move>> {
    let mut runs: BTreeMap<&str, Vec<&Move>> = BTreeMap::new();
    for step in &evidence.moves {
        runs.entry(&step.run).or_default().push(step);
    }
    runs
}

/// Whether a state is final.
pub fn is_final(state: &str) -> bool {
    ["succeeded", "failed", "canceled", "skipped"].contains(&state)
}

#[cfg(test)]
pub mod example {
    //! A small record without violations, which tests change.

    use crate::record::{
        ClientLog, DatabaseSample, Evidence, Fault, Line, Move, Note, Post, PostAttempt, ReadBack,
        ReceivedEvent, Rules, Writing,
    };
    use crate::stored_record::{StoredLine, StoredState};

    /// A transition of the run `r1` of conversation 1.
    pub fn step(n: i64, tx: i64, was: &str, became: &str) -> Move {
        let claimed = ["running", "succeeded", "failed", "canceled"].contains(&became);
        Move {
            n,
            at: n * 1_000_000,
            tx,
            conversation: 1,
            run: "r1".to_owned(),
            was: was.to_owned(),
            became: became.to_owned(),
            lease_was: i64::from(was == "running"),
            lease: i64::from(claimed),
            node: if claimed { "node-a" } else { "" }.to_owned(),
            kind: "user_turn".to_owned(),
            reason: "user_message".to_owned(),
            round: "round1".to_owned(),
            slot: 0,
            cutoff: -1,
            run_after: 2_100,
            ..Move::default()
        }
    }

    /// A message in conversation 1.
    pub fn writing(n: i64, tx: i64, seq: i64, role: &str, content: &str) -> Writing {
        Writing {
            n,
            at: n * 1_000_000,
            tx,
            conversation: 1,
            message: 10 + seq,
            seq,
            rev: seq * 3 - 2,
            is_new: true,
            role: role.to_owned(),
            content: content.to_owned(),
            created: n * 1_000,
            ..Writing::default()
        }
    }

    /// A user posts; a run is planned, claimed, and succeeds.
    pub fn good() -> Evidence {
        let mut user_message = writing(2, 1, 1, "user", "c0-1 hello");
        user_message.key = "c0-1".to_owned();
        let mut answer = writing(6, 3, 2, "assistant", "reply1 yes");
        answer.run = "r1".to_owned();
        let mut seen = step(5, 2, "running", "running");
        seen.cutoff = 1;
        let mut end = step(7, 3, "running", "succeeded");
        end.cutoff = 1;
        let rules = Rules {
            debounce_ms: 100,
            max_auto: 2,
            ..Rules::default()
        };
        Evidence {
            moves: vec![
                step(3, 1, "", "queued"),
                step(4, 2, "queued", "running"),
                seen,
                end,
            ],
            writings: vec![user_message, answer],
            posts: vec![Post {
                conversation: 1,
                key: "c0-1".to_owned(),
                content: "c0-1 hello".to_owned(),
                expects_reply: true,
                tries: vec![PostAttempt {
                    status: 201,
                    message: 11,
                    seq: 1,
                    ..PostAttempt::default()
                }],
                ..Post::default()
            }],
            sent_texts: vec!["reply1 yes".to_owned()],
            rules: [(1, rules)].into(),
            heads: [(1, (4, 2))].into(),
            stored: StoredState {
                timelines: [(
                    1,
                    vec![
                        line(1, "user", "c0-1 hello"),
                        line(2, "assistant", "reply1 yes"),
                    ],
                )]
                .into(),
                ..StoredState::default()
            },
            n_calls: 1,
            stale_ms: 1_500,
            heartbeat_ms: 250,
            run_timeout_ms: 8_000,
            ..Evidence::default()
        }
    }

    /// The good record, received by two tabs.
    pub fn received() -> Evidence {
        let mut evidence = good();
        let snapshot = ReceivedEvent::Snapshot {
            asked_at: 0,
            after: Some(0),
            rev: 4,
            reset: false,
            messages: vec![(11, 1), (12, 4)],
            stream: None,
        };
        let durable = ReceivedEvent::Durable {
            rev: 1,
            kind: "message_created".to_owned(),
            is_reduced: false,
            digest: 7,
            ends: None,
            message: Some((11, 1)),
        };
        let note = |event| Note { at: 0, event };
        let shown: Vec<Line> = evidence.stored.timelines[&1]
            .iter()
            .map(|it| it.line.clone())
            .collect();
        let client_log = |client| ClientLog {
            client,
            conversation: 1,
            membership: 3,
            notes: vec![note(durable.clone()), note(snapshot.clone())],
            lines: shown.clone(),
            ..ClientLog::default()
        };
        evidence.client_logs = vec![client_log(0), client_log(1)];
        evidence.samples = vec![DatabaseSample {
            counts: vec![(1, 2, 2)],
        }];
        evidence.read_backs = vec![ReadBack {
            found: true,
            ..ReadBack::default()
        }];
        evidence
    }

    fn line(seq: i64, role: &str, content: &str) -> StoredLine {
        StoredLine {
            line: (seq, role.to_owned(), content.to_owned()),
            ..StoredLine::default()
        }
    }

    /// A fault of node-a, from one second to another.
    pub fn fault(kind: &str, from: i64, to: i64) -> Fault {
        Fault {
            kind: kind.to_owned(),
            node: Some(0),
            worker: "node-a".to_owned(),
            at: from * 1_000_000,
            until: to * 1_000_000,
            healed: true,
        }
    }
}
