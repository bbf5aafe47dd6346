//! Runs the calls of one round: at once, within bounds, and whatever one does, the others go on.
//!
//! **Invariant:** a call ends with an output or an error, never without: a panic and a tool that takes
//! too long are errors. Permits of the node's pool are held while a tool runs, and no longer.

use crate::tools::gate::Gate;
use crate::tools::gate::Told;
use crate::tools::tool::Arguments;
use crate::tools::tool::Outcome;
use crate::tools::tool::ServerTool;
use futures::FutureExt;
use futures::StreamExt;
use futures::stream;
use parking_lot::Mutex;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Calls of one response that run at the same time.
const MAX_AT_ONCE: usize = 8;

/// Calls of all responses of this node that run at the same time.
pub const MAX_OF_NODE: usize = 256;

/// So long may one call take.
const MAX_TIME: Duration = Duration::from_secs(30);

/// The longest output, in bytes; what is longer is cut, visibly.
const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// One call.
pub struct Job {
    pub tool: Arc<dyn ServerTool>,
    pub arguments: Arguments,
}

/// How calls are run. Cloning gives another handle on the same pool.
#[derive(Clone)]
pub struct Executor {
    pool: Arc<Semaphore>,
    max_time: Duration,
}

impl Default for Executor {
    fn default() -> Self {
        Self::new(MAX_OF_NODE, MAX_TIME)
    }
}

impl Executor {
    /// With room for so many calls, each of which may take so long.
    pub fn new(n_calls: usize, max_time: Duration) -> Self {
        Self {
            pool: Arc::new(Semaphore::new(n_calls)),
            max_time,
        }
    }

    /// Runs all, and gives what came of each, in their order. `tell` is told of them in that order,
    /// each from its beginning to its end before the next. Dropping this ends what still runs.
    pub async fn run(&self, jobs: Vec<Job>, tell: impl FnMut(usize, Told) + Send) -> Vec<Outcome> {
        let (gate, first) = Gate::new(jobs.len());
        let board = Mutex::new(Board { gate, tell });
        board.lock().tell_all(first);
        let board = &board;
        let running = jobs.into_iter().enumerate().map(|(at, job)| async move {
            let progress = |message: &str| {
                let mut board = board.lock();
                let told = board.gate.moves(at, message);
                board.tell_all(told);
            };
            let outcome = self.run_one(&job, &progress).await;
            let mut board = board.lock();
            let told = board.gate.ends(at, outcome.clone());
            board.tell_all(told);
            (at, outcome)
        });
        let running = stream::iter(running).buffer_unordered(MAX_AT_ONCE);
        let mut outcomes: Vec<(usize, Outcome)> = running.collect().await;
        outcomes.sort_by_key(|it| it.0);
        outcomes.into_iter().map(|it| it.1).collect()
    }

    async fn run_one(&self, job: &Job, progress: &(dyn Fn(&str) + Sync)) -> Outcome {
        // Never closed: an error would only let one more run.
        let _permit = self.pool.acquire().await.ok();
        let running = AssertUnwindSafe(job.tool.run(&job.arguments, progress)).catch_unwind();
        match timeout(self.max_time, running).await {
            Ok(Ok(outcome)) => outcome.map(cut).map_err(cut),
            Ok(Err(_)) => {
                tracing::error!(tool = job.tool.declaration().name, "a tool has panicked");
                Err("The tool broke down.".to_owned())
            }
            Err(_) => {
                let seconds = self.max_time.as_secs();
                Err(format!("The tool took longer than {seconds} seconds."))
            }
        }
    }
}

struct Board<T> {
    gate: Gate,
    tell: T,
}

impl<T: FnMut(usize, Told)> Board<T> {
    fn tell_all(&mut self, told: Vec<(usize, Told)>) {
        for (at, told) in told {
            (self.tell)(at, told);
        }
    }
}

fn cut(text: String) -> String {
    let text = text.replace('\0', ""); // no database takes it
    if text.len() <= MAX_OUTPUT_BYTES {
        return text;
    }
    let kept = &text[..text.floor_char_boundary(MAX_OUTPUT_BYTES)];
    format!("{kept}\n[The output was cut here.]")
}

#[cfg(test)]
#[path = "executor_tests.rs"]
mod tests;
