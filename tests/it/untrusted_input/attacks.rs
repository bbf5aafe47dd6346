//! Sends many requests at once and checks every response: it is a success or an error of the one
//! shape, and reveals nothing internal.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::untrusted_input::http_connection::{HttpConnection, Reply};

/// The number of concurrent connections.
const LINES: usize = 8;

/// Words that only our insides know.
const INTERNAL_TEXTS: [&str; 12] = [
    "sqlx",
    "sea_orm",
    "SQLSTATE",
    "no such table",
    "no such column",
    "syntax error at",
    "unrecognized token",
    "constraint failed",
    "violates",
    "panicked",
    ".rs:",
    "actix",
];

/// One request, and what it is, for the one who reads of its failure.
pub struct Attack {
    pub what: String,
    pub bytes: Vec<u8>,
}

/// The result of an attack.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub by_status: BTreeMap<u16, usize>,
    pub wrong: Vec<String>,
}

impl Tally {
    /// How many were sent.
    pub fn n(&self) -> usize {
        self.by_status.values().sum()
    }

    /// Prints what was sent, and fails with all violations.
    pub fn finish(self, name: &str) {
        eprintln!("{name}: {self}");
        let shown: Vec<_> = self.wrong.iter().take(40).cloned().collect();
        assert!(
            shown.is_empty(),
            "{} of {} were answered wrongly:\n{}",
            self.wrong.len(),
            self.n(),
            shown.join("\n")
        );
    }

    fn record(&mut self, what: &str, reply: &Reply) {
        *self.by_status.entry(reply.status).or_default() += 1;
        if let Some(complaint) = problem_with(reply) {
            let body: String = String::from_utf8_lossy(&reply.body)
                .chars()
                .take(300)
                .collect();
            self.wrong
                .push(format!("{what}: {} {complaint}: {body}", reply.status));
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests", self.n())?;
        self.by_status
            .iter()
            .try_for_each(|(status, n)| write!(f, ", {n} × {status}"))
    }
}

/// Sends all of them and looks at every answer.
pub async fn send(base: &str, attacks: Vec<Attack>) -> Tally {
    let attacks = Arc::new(attacks);
    let next = Arc::new(AtomicUsize::new(0));
    let tally = Arc::new(Mutex::new(Tally::default()));
    let mut lines = Vec::new();
    for _ in 0..LINES {
        let (attacks, next, tally) = (attacks.clone(), next.clone(), tally.clone());
        let mut line = HttpConnection::connect(base);
        lines.push(tokio::spawn(async move {
            while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                match line.send(&attack.bytes).await {
                    Ok(reply) => tally.lock().record(&attack.what, &reply),
                    Err(error) => {
                        let wrong = format!("{}: no answer: {error}", attack.what);
                        tally.lock().wrong.push(wrong);
                    }
                }
            }
        }));
    }
    for line in lines {
        line.await.expect("a line does not panic");
    }
    let tally = tally.lock();
    tally.clone()
}

/// What is wrong with an answer, whatever was asked.
pub fn problem_with(reply: &Reply) -> Option<String> {
    if !reply.header("x-injected").is_empty() {
        return Some("a header came from the request".to_owned());
    }
    if reply.status < 400 {
        return None;
    }
    let error = &reply.json()["error"];
    let word = |key: &str| error[key].as_str().unwrap_or_default();
    if word("type").is_empty() || word("code").is_empty() || word("message").is_empty() {
        return Some("is not in the shape of an error".to_owned());
    }
    if reply.status >= 500 {
        return Some("is our fault".to_owned());
    }
    let told = [word("message"), word("param")].concat();
    if told.chars().count() > 1_000 {
        return Some("gives the question back".to_owned());
    }
    let inside = INTERNAL_TEXTS.iter().find(|it| told.contains(**it))?;
    Some(format!("tells of {inside}"))
}
