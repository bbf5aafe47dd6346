//! Records every SQL statement of this process from the log of the SQLite driver. Needs a process
//! that runs one test only, because the log does not separate tests.

#![allow(clippy::print_stdout)] // shows the output of the child process

use std::env;
use std::fmt::Debug;
use std::process::Command;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt};

/// Set only in the child process that records the statements.
const ALONE: &str = "TROUPE_TEST_ALONE";

/// The statements so far.
#[derive(Clone, Default)]
pub struct Statements(Arc<Mutex<Vec<String>>>);

impl Statements {
    /// Runs a test again in a child process. Returns `Some` with its statements in the child, and
    /// `None` in the parent when the child has passed. `name` is the full name of the test.
    pub fn alone(name: &str) -> Option<Self> {
        if env::var_os(ALONE).is_some() {
            return Some(Self::listen());
        }
        let own = env::current_exe().expect("the path of the test binary");
        let alone = Command::new(own)
            .args(["--exact", name, "--nocapture"])
            .env(ALONE, "1")
            .output()
            .expect("the test binary can be started again");
        let output = String::from_utf8_lossy(&alone.stdout);
        println!("{output}");
        let errors = String::from_utf8_lossy(&alone.stderr);
        assert!(alone.status.success(), "{errors}");
        assert!(
            output.contains("1 passed"),
            "the test was not found by its name"
        );
        None
    }

    /// Records every statement from now on.
    pub fn listen() -> Self {
        let statements = Self::default();
        let only = Targets::new().with_target("sqlx::query", Level::DEBUG);
        let layer = statements.clone().with_filter(only);
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))
            .expect("no other subscriber is set in this process");
        statements
    }

    /// Returns the statements since the last call.
    pub fn take_statements(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

impl<S: Subscriber> Layer<S> for Statements {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut sql = Sql::default();
        event.record(&mut sql);
        // The driver logs a summary, and the full statement only if it is longer.
        let whole = if sql.statement.trim().is_empty() {
            sql.summary
        } else {
            sql.statement.trim().to_owned()
        };
        self.0.lock().push(whole);
    }
}

#[derive(Default)]
struct Sql {
    summary: String,
    statement: String,
}

impl Visit for Sql {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "summary" => self.summary = value.to_owned(),
            "db.statement" => self.statement = value.to_owned(),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}
