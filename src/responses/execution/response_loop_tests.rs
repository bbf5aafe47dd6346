//! Tests of the response loop with slow, failing and panicking tools.

use std::sync::Arc;
use std::time::Duration;

use agent::call_limits::CallLimits;
use agent::tools::executor::ToolExecutor;
use agent::tools::registry::ToolRegistry;
use agent::tools::tool::{ServerTool, ToolArguments, ToolResult};
use agent::tools::tool_runtime::ToolRuntime;
use agent::trim::ReplyTrimmer;
use async_trait::async_trait;
use base::clock::{Clock, Timestamp};
use base::ids::UserId;
use futures::{StreamExt, stream};
use leased_jobs::lease::{CancelHandle, CancelReason};
use llm::delta::{Delta, FinishReason};
use llm::error::LlmError;
use llm::provider::{Capability, DeltaStream, Provider};
use llm::request::Request;
use llm::tool::{Tool, ToolCallDelta};
use parking_lot::Mutex;
use responses_api::fold::response_fold::Fold;
use responses_api::response::ResponseHeader;
use responses_api::status::ResponseStatus;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::responses::execution::end_log::EndLog;
use crate::responses::execution::mcp::plan::McpPlan;
use crate::responses::execution::response_task;
use crate::responses::execution::response_task::{ResponseOutput, ResponseTask, TaskOutcome};
use crate::responses::execution::speaker_call::SpeakerCall;
use crate::responses::execution::tool_config::{DeclaredTool, ToolConfig, ToolKind};
use crate::responses::provider_calls::ProviderCalls;
use crate::responses::telemetry::call_metrics::CallMetrics;

/// Calls these tools in the first iteration and answers with a text in the second. Without any
/// tools it cancels the response and ends its answer.
struct ScriptedModel {
    calls: Vec<&'static str>,
    stop: CancelHandle,
    requests: Mutex<Vec<Request>>,
}

#[async_trait]
impl Provider for ScriptedModel {
    async fn stream(&self, request: &Request) -> Result<DeltaStream, LlmError> {
        let mut requests = self.requests.lock();
        let is_first = requests.is_empty();
        requests.push(request.clone());
        if self.calls.is_empty() {
            self.stop.cancel(CancelReason::Requested);
        }
        let call = |(index, name): (usize, &&str)| {
            Delta::ToolCall(ToolCallDelta {
                index,
                id: Some(format!("call_{index}")),
                name: Some(format!("troupe_{name}")),
                arguments: "{}".to_owned(),
            })
        };
        let mut deltas: Vec<Delta> = match is_first {
            true => self.calls.iter().enumerate().map(call).collect(),
            false => vec![Delta::Text("Done.".to_owned())],
        };
        deltas.push(Delta::End(FinishReason::Stop));
        Ok(stream::iter(deltas).map(Ok).boxed())
    }

    fn kind(&self) -> &'static str {
        "test"
    }

    fn has_capability(&self, _: Capability) -> bool {
        true
    }
}

/// Waits the given number of milliseconds; its name decides how it ends.
struct TestTool(&'static str, u64);

#[async_trait]
impl ServerTool for TestTool {
    fn declaration(&self) -> Tool {
        Tool {
            name: format!("troupe_{}", self.0),
            description: None,
            parameters: json!({}),
            strict: None,
        }
    }

    async fn run(&self, _: &ToolArguments, progress: &(dyn Fn(&str) + Sync)) -> ToolResult {
        progress("on it");
        sleep(Duration::from_millis(self.1)).await;
        match self.0 {
            "fails" => Err("no".to_owned()),
            "panics" => panic!("the test tool panics"),
            name => Ok(name.to_owned()),
        }
    }
}

const TEST_TOOLS: [(&str, u64); 4] = [("slow", 5_000), ("fast", 1), ("fails", 10), ("panics", 10)];

struct FinishedTask {
    document: Value,
    requests: Vec<Request>,
}

impl FinishedTask {
    fn types(&self) -> Vec<&str> {
        let items = self.document["output"].as_array().unwrap().iter();
        items.map(|it| it["type"].as_str().unwrap()).collect()
    }

    fn tool_results(&self) -> Vec<&str> {
        let messages = self.requests[1].messages.iter();
        let answers = messages.filter(|it| it.answers.is_some());
        answers.map(|it| it.content.as_str()).collect()
    }
}

async fn run_task(calls: &[&'static str], total: Duration, stop: CancelHandle) -> FinishedTask {
    let model = Arc::new(ScriptedModel {
        calls: calls.to_vec(),
        stop: stop.clone(),
        requests: Mutex::default(),
    });
    let test_tools =
        TEST_TOOLS.map(|(name, ms)| (name, Arc::new(TestTool(name, ms)) as Arc<dyn ServerTool>));
    let declared = test_tools.iter().map(|it| DeclaredTool {
        namespaced: None,
        kind: ToolKind::Server,
        tool: it.1.declaration(),
    });
    let header = ResponseHeader {
        id: "resp_1".to_owned(),
        created_at: Timestamp(0),
        echo: Map::new(),
    };
    let turn = ResponseTask {
        call: SpeakerCall {
            provider: model.clone(),
            provider_name: String::new(),
            request: Request::default(),
            calls: Arc::new(ProviderCalls::new(1, 0)),
            trim: ReplyTrimmer::verbatim(),
            speaker_metadata: None,
            memory: None,
        },
        speakers: None,
        tools: ToolConfig {
            tools: declared.collect(),
            ..ToolConfig::default()
        },
        mcp_plan: McpPlan::default(),
        tool_runtime: ToolRuntime {
            registry: ToolRegistry::new(test_tools),
            executor: ToolExecutor::default(),
        },
        limits: CallLimits {
            total,
            ..CallLimits::default()
        },
        sealer: None,
        cancel: stop,
        clock: Clock::system(),
        output: ResponseOutput {
            fold: Fold::new(header, ResponseStatus::InProgress).into(),
            recorder: None,
            sender: None,
            is_reader_dropped: false,
            permits: Vec::new(),
            is_background: false,
            end_log: EndLog::new("resp_1", UserId(1), &CallMetrics::default(), Timestamp(0)),
            log_written: Default::default(),
        },
    };
    let TaskOutcome::Finished(fold) = response_task::run(turn).await else {
        panic!("the response did not end");
    };
    let requests = model.requests.lock().clone();
    let document = serde_json::to_value(fold.response()).unwrap();
    FinishedTask { document, requests }
}

const LONG: Duration = Duration::from_secs(600);

#[tokio::test(start_paused = true)]
async fn tools_run_concurrently_and_are_reported_in_order() {
    let began = Instant::now();

    let finished = run_task(&["slow", "fast"], LONG, CancelHandle::default()).await;

    assert!(began.elapsed() < Duration::from_millis(5_500));
    assert_eq!(finished.types(), ["troupe:slow", "troupe:fast", "message"]);
    assert_eq!(finished.tool_results(), ["slow", "fast"]);
}

#[tokio::test(start_paused = true)]
async fn a_failing_tool_does_not_prevent_the_answer() {
    for (calls, results) in [
        (["fails", "fast"], ["Error: no", "fast"]),
        (["fast", "fails"], ["fast", "Error: no"]),
        (["panics", "fast"], ["Error: The tool crashed.", "fast"]),
    ] {
        let finished = run_task(&calls, LONG, CancelHandle::default()).await;

        assert_eq!(finished.document["status"], "completed");
        assert_eq!(finished.tool_results(), results);
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_ends_at_its_deadline_or_on_cancel_while_tools_run() {
    let late = run_task(
        &["fast", "slow"],
        Duration::from_secs(3),
        CancelHandle::default(),
    )
    .await;

    assert_eq!(late.document["incomplete_details"]["reason"], "run_timeout");
    let statuses = late.document["output"].as_array().unwrap().iter();
    let statuses: Vec<&str> = statuses.map(|it| it["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["completed", "incomplete"]);
    assert_eq!(late.requests.len(), 1);

    let stop = CancelHandle::default();
    let asking = async {
        sleep(Duration::from_secs(1)).await;
        stop.cancel(CancelReason::Requested);
    };
    let (canceled, ()) = futures::join!(run_task(&["slow"], LONG, stop.clone()), asking);

    assert_eq!(canceled.document["status"], "cancelled");
    assert_eq!(canceled.types(), ["troupe:slow"]);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_cancelled_while_its_answer_ends_is_cancelled() {
    let finished = run_task(&[], LONG, CancelHandle::default()).await;

    assert_eq!(finished.document["status"], "cancelled");
}
