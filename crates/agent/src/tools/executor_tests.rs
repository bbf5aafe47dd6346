//! Tests of the executor: concurrency, order of the updates, and isolation of failing and slow calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base::ids::UserId;
use llm::tool::Tool;
use serde_json::json;
use tokio::sync::Barrier;
use tokio::time::{Instant, sleep};

use super::{ToolExecutor, ToolJob};
use crate::permits::fair_permits::PermitOwner;
use crate::tools::ordered_output::ToolUpdate;
use crate::tools::tool::{ServerTool, ToolArguments, ToolResult};

/// Follows the instruction in its arguments and counts how many calls run concurrently.
#[derive(Default)]
struct ScriptedTool {
    server: Option<&'static str>,
    n_running: AtomicUsize,
    n_max_running: AtomicUsize,
}

#[async_trait]
impl ServerTool for ScriptedTool {
    fn declaration(&self) -> Tool {
        Tool {
            name: "puppet".to_owned(),
            description: None,
            parameters: json!({}),
            strict: None,
        }
    }

    fn server(&self) -> Option<String> {
        self.server.map(str::to_owned)
    }

    async fn run(&self, arguments: &ToolArguments, progress: &(dyn Fn(&str) + Sync)) -> ToolResult {
        let n_running = self.n_running.fetch_add(1, Ordering::SeqCst) + 1;
        self.n_max_running.fetch_max(n_running, Ordering::SeqCst);
        progress("begun");
        sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap_or(0))).await;
        self.n_running.fetch_sub(1, Ordering::SeqCst);
        match arguments["end"].as_str() {
            Some("panic") => panic!("requested by the test"),
            Some(error) => Err(error.to_owned()),
            None => Ok(arguments["ms"].to_string()),
        }
    }
}

const ANN: PermitOwner = PermitOwner::User(UserId(1));
const BEN: PermitOwner = PermitOwner::User(UserId(2));

fn job(tool: &Arc<ScriptedTool>, ms: u64, end: Option<&str>) -> ToolJob {
    let arguments = json!({ "ms": ms, "end": end });
    ToolJob {
        tool: tool.clone(),
        arguments: arguments.as_object().unwrap().clone(),
    }
}

#[tokio::test(start_paused = true)]
async fn calls_run_concurrently_and_are_reported_in_order() {
    let tool = Arc::<ScriptedTool>::default();
    let mut updates = Vec::new();
    let began = Instant::now();

    let jobs = vec![job(&tool, 5_000, None), job(&tool, 10, None)];
    let outcomes = ToolExecutor::default()
        .run(ANN, jobs, |at, it| updates.push((at, it)))
        .await;

    assert_eq!(outcomes, [Ok("5000".to_owned()), Ok("10".to_owned())]);
    assert!(began.elapsed() < Duration::from_millis(5_100));
    let slots: Vec<usize> = updates.iter().map(|it| it.0).collect();
    assert_eq!(slots, [0, 0, 0, 1, 1, 1]);
    assert_eq!(updates[5].1, ToolUpdate::Finished(Ok("10".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_failing_call_gets_an_error_and_the_others_an_output() {
    let tool = Arc::<ScriptedTool>::default();
    let jobs = vec![
        job(&tool, 1, Some("no")),
        job(&tool, 2, Some("panic")),
        job(&tool, 3_600_000, None),
        job(&tool, 4, None),
    ];

    let outcomes = ToolExecutor::default().run(ANN, jobs, |_, _| {}).await;

    assert_eq!(
        outcomes,
        [
            Err("no".to_owned()),
            Err("The tool crashed.".to_owned()),
            Err("The tool did not finish within 30 seconds.".to_owned()),
            Ok("4".to_owned()),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_pool_limits_concurrent_calls_and_all_finish() {
    let tool = Arc::<ScriptedTool>::default();
    let executor = ToolExecutor::new(2, Duration::from_secs(1));
    let barrier = Arc::new(Barrier::new(10));

    let batches = (0..10).map(|_| {
        let (tool, executor, barrier) = (tool.clone(), executor.clone(), barrier.clone());
        tokio::spawn(async move {
            barrier.wait().await;
            let jobs = (0..3).map(|_| job(&tool, 20, None)).collect();
            executor.run(ANN, jobs, |_, _| {}).await
        })
    });
    let outcomes = futures::future::join_all(batches).await;

    for outcome in outcomes {
        let outcome = outcome.unwrap();
        assert!(outcome.len() == 3 && outcome.iter().all(Result::is_ok));
    }
    assert_eq!(tool.n_max_running.load(Ordering::SeqCst), 2);
}

/// Runs calls of one owner that take longer than the test, each in a batch of its own.
fn start_slow_calls(
    executor: &ToolExecutor,
    tool: &Arc<ScriptedTool>,
    owner: PermitOwner,
    n: usize,
) {
    for _ in 0..n {
        let (tool, executor) = (tool.clone(), executor.clone());
        tokio::spawn(async move {
            let jobs = vec![job(&tool, 3_600_000, None)];
            executor.run(owner, jobs, |_, _| {}).await
        });
    }
}

#[tokio::test(start_paused = true)]
async fn slow_tools_of_one_owner_do_not_delay_those_of_another() {
    let executor = ToolExecutor::new(8, Duration::from_secs(60));
    let (slow, fast) = (
        Arc::<ScriptedTool>::default(),
        Arc::<ScriptedTool>::default(),
    );
    start_slow_calls(&executor, &slow, ANN, 20);
    sleep(Duration::from_secs(1)).await;
    let began = Instant::now();

    let jobs = vec![job(&fast, 10, None), job(&fast, 10, None)];
    let outcomes = executor.run(BEN, jobs, |_, _| {}).await;

    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(slow.n_running.load(Ordering::SeqCst), 6);
    assert!(began.elapsed() < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_delays_only_its_own_calls() {
    let executor = ToolExecutor::new(8, Duration::from_secs(60));
    let slow = Arc::new(ScriptedTool {
        server: Some("https://slow.example"),
        ..ScriptedTool::default()
    });
    let other = Arc::new(ScriptedTool {
        server: Some("https://other.example"),
        ..ScriptedTool::default()
    });
    for owner in 1..5 {
        start_slow_calls(&executor, &slow, PermitOwner::User(UserId(owner)), 5);
    }
    sleep(Duration::from_secs(1)).await;
    let began = Instant::now();

    let outcomes = executor
        .run(ANN, vec![job(&other, 10, None)], |_, _| {})
        .await;

    assert_eq!(outcomes, [Ok("10".to_owned())]);
    assert_eq!(slow.n_running.load(Ordering::SeqCst), 2);
    assert!(began.elapsed() < Duration::from_millis(100));
}
