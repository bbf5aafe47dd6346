//! Runs the tool calls of one iteration concurrently, with limits on concurrency, time and output.
//!
//! **Invariant:** every call ends with an output or an error: a panic and a timeout become errors
//! and do not affect the other calls. A permit of the node's pool is held only while its tool runs.
//!
//! **Invariant:** neither one owner nor one tool server can use the whole pool: an owner has at most
//! three quarters of it, a server a quarter. Calls beyond these limits wait without a permit of the pool.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::permits::fair_permits::{FairPermits, PermitOwner};
use crate::permits::server_permits::ServerPermits;
use crate::tools::ordered_output::{OrderedOutput, ToolUpdate};
use crate::tools::tool::{ServerTool, ToolArguments, ToolResult};

/// Maximum number of concurrent calls per response.
const MAX_CONCURRENT_CALLS: usize = 8;

/// Maximum number of concurrent calls per node, over all responses.
pub const MAX_CALLS_PER_NODE: usize = 256;

/// Time limit of one call.
const MAX_TIME: Duration = Duration::from_secs(30);

/// Maximum size of an output, in bytes. A longer output is cut and ends with a note.
const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// One tool call to execute.
pub struct ToolJob {
    pub tool: Arc<dyn ServerTool>,
    pub arguments: ToolArguments,
}

/// Executes tool calls within limits. Cheap to clone; clones share one pool of permits.
#[derive(Clone)]
pub struct ToolExecutor {
    pool: FairPermits,
    servers: ServerPermits,
    max_time: Duration,
}

impl Default for ToolExecutor {
    fn default() -> Self {
        Self::new(MAX_CALLS_PER_NODE, MAX_TIME)
    }
}

impl ToolExecutor {
    /// Creates an executor with `n_calls` permits and a time limit for each call.
    pub fn new(n_calls: usize, max_time: Duration) -> Self {
        Self {
            pool: FairPermits::with_reserved_quarter(n_calls),
            servers: ServerPermits::new(n_calls.div_ceil(4)),
            max_time,
        }
    }

    /// Runs all jobs of an owner and returns their results in the order of the jobs. `on_update`
    /// receives the updates in that order too: all updates of one call before the first of the next.
    /// Dropping the future stops the calls that still run.
    pub async fn run(
        &self,
        owner: PermitOwner,
        jobs: Vec<ToolJob>,
        on_update: impl FnMut(usize, ToolUpdate) + Send,
    ) -> Vec<ToolResult> {
        let (output, first) = OrderedOutput::new(jobs.len());
        let state = Mutex::new(BatchState { output, on_update });
        state.lock().emit_all(first);
        let board = &state;
        let running = jobs.into_iter().enumerate().map(|(at, job)| async move {
            let progress = |message: &str| {
                let mut board = board.lock();
                let updates = board.output.push_progress(at, message);
                board.emit_all(updates);
            };
            let outcome = self.run_one(owner, &job, &progress).await;
            let mut board = board.lock();
            let updates = board.output.finish(at, outcome.clone());
            board.emit_all(updates);
            (at, outcome)
        });
        let running = stream::iter(running).buffer_unordered(MAX_CONCURRENT_CALLS);
        let mut results: Vec<(usize, ToolResult)> = running.collect().await;
        results.sort_by_key(|it| it.0);
        results.into_iter().map(|it| it.1).collect()
    }

    async fn run_one(
        &self,
        owner: PermitOwner,
        job: &ToolJob,
        progress: &(dyn Fn(&str) + Sync),
    ) -> ToolResult {
        // The permit of the server is acquired first, so that calls that wait for a slow server hold no
        // permit of the pool.
        let _server_permit = match job.tool.server() {
            Some(server) => Some(self.servers.of(server).acquire(owner).await),
            None => None,
        };
        let _permit = self.pool.acquire(owner).await;
        let running = AssertUnwindSafe(job.tool.run(&job.arguments, progress)).catch_unwind();
        match timeout(self.max_time, running).await {
            Ok(Ok(outcome)) => outcome.map(truncate_output).map_err(truncate_output),
            Ok(Err(_)) => {
                tracing::error!(tool = job.tool.declaration().name, "tool panicked");
                Err("The tool crashed.".to_owned())
            }
            Err(_) => {
                let seconds = self.max_time.as_secs();
                Err(format!("The tool did not finish within {seconds} seconds."))
            }
        }
    }
}

struct BatchState<T> {
    output: OrderedOutput,
    on_update: T,
}

impl<T: FnMut(usize, ToolUpdate)> BatchState<T> {
    fn emit_all(&mut self, updates: Vec<(usize, ToolUpdate)>) {
        for (at, updates) in updates {
            (self.on_update)(at, updates);
        }
    }
}

fn truncate_output(text: String) -> String {
    let text = text.replace('\0', ""); // databases reject U+0000
    if text.len() <= MAX_OUTPUT_BYTES {
        return text;
    }
    let kept = &text[..text.floor_char_boundary(MAX_OUTPUT_BYTES)];
    format!("{kept}\n[The output was cut here.]")
}

#[cfg(test)]
#[path = "executor_tests.rs"]
mod tests;
