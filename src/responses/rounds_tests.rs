//! Rounds with tools of a test's own: what is slow, fails or breaks down never spoils the others.

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::generation::call_limits::CallLimits;
use crate::generation::trim::ReplyTrimmer;
use crate::llm::delta::Delta;
use crate::llm::delta::FinishReason;
use crate::llm::error::LlmError;
use crate::llm::provider::Capability;
use crate::llm::provider::DeltaStream;
use crate::llm::provider::Provider;
use crate::llm::request::Request;
use crate::llm::tool::Tool;
use crate::llm::tool::ToolCallDelta;
use crate::responses::document::Header;
use crate::responses::fold::Fold;
use crate::responses::remote::Errand;
use crate::responses::response::Status;
use crate::responses::speech::Call;
use crate::responses::stop::Stop;
use crate::responses::stop::Why;
use crate::responses::toolbox::Declared;
use crate::responses::toolbox::Kind;
use crate::responses::toolbox::Toolbox;
use crate::responses::turn;
use crate::responses::turn::Left;
use crate::responses::turn::Stage;
use crate::responses::turn::Turn;
use crate::tools::executor::ToolExecutor;
use crate::tools::registry::ToolRegistry;
use crate::tools::tool::ServerTool;
use crate::tools::tool::ToolArguments;
use crate::tools::tool::ToolResult;
use crate::tools::tool_runtime::ToolRuntime;
use async_trait::async_trait;
use futures::StreamExt;
use futures::stream;
use parking_lot::Mutex;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio::time::sleep;

/// Calls these tools in the first round, and speaks in the second.
struct Model {
    calls: Vec<&'static str>,
    asked: Mutex<Vec<Request>>,
}

#[async_trait]
impl Provider for Model {
    async fn stream(&self, request: &Request) -> Result<DeltaStream, LlmError> {
        let mut asked = self.asked.lock();
        let is_first = asked.is_empty();
        asked.push(request.clone());
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

/// Waits so many milliseconds, and ends as its name says.
struct Puppet(&'static str, u64);

#[async_trait]
impl ServerTool for Puppet {
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
            "panics" => panic!("as told"),
            name => Ok(name.to_owned()),
        }
    }
}

const PUPPETS: [(&str, u64); 4] = [("slow", 5_000), ("fast", 1), ("fails", 10), ("panics", 10)];

struct Played {
    document: Value,
    asked: Vec<Request>,
}

impl Played {
    fn types(&self) -> Vec<&str> {
        let items = self.document["output"].as_array().unwrap().iter();
        items.map(|it| it["type"].as_str().unwrap()).collect()
    }

    fn told_back(&self) -> Vec<&str> {
        let messages = self.asked[1].messages.iter();
        let answers = messages.filter(|it| it.answers.is_some());
        answers.map(|it| it.content.as_str()).collect()
    }
}

async fn play(calls: &[&'static str], total: Duration, stop: Stop) -> Played {
    let model = Arc::new(Model {
        calls: calls.to_vec(),
        asked: Mutex::default(),
    });
    let puppets =
        PUPPETS.map(|(name, ms)| (name, Arc::new(Puppet(name, ms)) as Arc<dyn ServerTool>));
    let declared = puppets.iter().map(|it| Declared {
        kind: Kind::Server,
        tool: it.1.declaration(),
    });
    let header = Header {
        id: "resp_1".to_owned(),
        created_at: Timestamp(0),
        echo: Map::new(),
    };
    let turn = Turn {
        call: Call {
            provider: model.clone(),
            request: Request::default(),
            permits: Arc::new(Semaphore::new(1)),
            trim: ReplyTrimmer::verbatim(),
            speaks: None,
        },
        cast: None,
        toolbox: Toolbox {
            tools: declared.collect(),
            ..Toolbox::default()
        },
        errand: Errand::default(),
        workshop: ToolRuntime {
            registry: ToolRegistry::new(puppets),
            executor: ToolExecutor::default(),
        },
        watches: CallLimits {
            total,
            ..CallLimits::default()
        },
        stop,
        clock: Clock::system(),
        stage: Stage {
            fold: Fold::new(header, Status::InProgress),
            recorder: None,
            reader: None,
            was_let_go: false,
            is_background: false,
            was_told: false,
        },
    };
    let Left::Ended(document) = turn::take(turn).await else {
        panic!("it did not end");
    };
    let asked = model.asked.lock().clone();
    Played { document, asked }
}

const LONG: Duration = Duration::from_secs(600);

// R55
#[tokio::test(start_paused = true)]
async fn a_slow_tool_and_a_fast_one_run_together_and_are_told_in_order() {
    let began = Instant::now();

    let played = play(&["slow", "fast"], LONG, Stop::default()).await;

    assert!(began.elapsed() < Duration::from_millis(5_500));
    assert_eq!(played.types(), ["troupe:slow", "troupe:fast", "message"]);
    assert_eq!(played.told_back(), ["slow", "fast"]);
}

// R56
#[tokio::test(start_paused = true)]
async fn whichever_fails_or_breaks_down_the_answer_comes() {
    for (calls, told) in [
        (["fails", "fast"], ["Error: no", "fast"]),
        (["fast", "fails"], ["fast", "Error: no"]),
        (["panics", "fast"], ["Error: The tool broke down.", "fast"]),
    ] {
        let played = play(&calls, LONG, Stop::default()).await;

        assert_eq!(played.document["status"], "completed");
        assert_eq!(played.told_back(), told);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_at_its_deadline_or_when_asked_while_tools_run() {
    let late = play(&["fast", "slow"], Duration::from_secs(3), Stop::default()).await;

    assert_eq!(late.document["incomplete_details"]["reason"], "run_timeout");
    let statuses = late.document["output"].as_array().unwrap().iter();
    let statuses: Vec<&str> = statuses.map(|it| it["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["completed", "incomplete"]);
    assert_eq!(late.asked.len(), 1);

    let stop = Stop::default();
    let asking = async {
        sleep(Duration::from_secs(1)).await;
        stop.end(Why::Asked);
    };
    let (asked, ()) = futures::join!(play(&["slow"], LONG, stop.clone()), asking);

    assert_eq!(asked.document["status"], "cancelled");
    assert_eq!(asked.types(), ["troupe:slow"]);
}
