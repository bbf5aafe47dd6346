//! Sends many requests at once and checks every response: it is a success or an error of the one
//! shape, and reveals nothing internal.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::untrusted_input::http_connection::{HttpConnection, Reply};

/// The number of concurrent connections.
const CONNECTIONS: usize = 8;

/// Words of the implementation, which no response may contain.
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

/// One request, with a description for the failure message.
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
    /// The number of requests sent.
    pub fn n(&self) -> usize {
        self.by_status.values().sum()
    }

    /// Prints what was sent, and fails with all violations.
    pub fn finish(self, name: &str) {
        eprintln!("{name}: {self}");
        let shown: Vec<_> = self.wrong.iter().take(40).cloned().collect();
        assert!(
            shown.is_empty(),
            "{} of {} got a wrong response:\n{}",
            self.wrong.len(),
            self.n(),
            shown.join("\n")
        );
    }

    fn record(&mut self, what: &str, reply: &Reply) {
        *self.by_status.entry(reply.status).or_default() += 1;
        if let Some(problem) = problem_with(reply) {
            let body: String = String::from_utf8_lossy(&reply.body)
                .chars()
                .take(300)
                .collect();
            self.wrong
                .push(format!("{what}: {} {problem}: {body}", reply.status));
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

/// Sends all requests and checks every response.
pub async fn send(base: &str, attacks: Vec<Attack>) -> Tally {
    let attacks = Arc::new(attacks);
    let next = Arc::new(AtomicUsize::new(0));
    let tally = Arc::new(Mutex::new(Tally::default()));
    let mut tasks = Vec::new();
    for _ in 0..CONNECTIONS {
        let (attacks, next, tally) = (attacks.clone(), next.clone(), tally.clone());
        let mut connection = HttpConnection::connect(base);
        tasks.push(tokio::spawn(async move {
            while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                match connection.send(&attack.bytes).await {
                    Ok(reply) => tally.lock().record(&attack.what, &reply),
                    Err(error) => {
                        let wrong = format!("{}: no response: {error}", attack.what);
                        tally.lock().wrong.push(wrong);
                    }
                }
            }
        }));
    }
    for task in tasks {
        task.await.expect("a connection task panicked");
    }
    let tally = tally.lock();
    tally.clone()
}

/// What is wrong with a response to any request.
pub fn problem_with(reply: &Reply) -> Option<String> {
    if !reply.header("x-injected").is_empty() {
        return Some("the request injected a header".to_owned());
    }
    if reply.status < 400 {
        return None;
    }
    let error = &reply.json()["error"];
    let word = |key: &str| error[key].as_str().unwrap_or_default();
    if word("type").is_empty() || word("code").is_empty() || word("message").is_empty() {
        return Some("has no uniform error body".to_owned());
    }
    if reply.status >= 500 {
        return Some("is a server error".to_owned());
    }
    let text = [word("message"), word("param")].concat();
    if text.chars().count() > 1_000 {
        return Some("repeats the request".to_owned());
    }
    let internal = INTERNAL_TEXTS.iter().find(|it| text.contains(**it))?;
    Some(format!("contains {internal}"))
}
