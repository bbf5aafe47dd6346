//! Implements `AgentHost` for responses: emits tool calls as events, limits the number of calls,
//! sums the usage, and waits until all events of an iteration are stored before the next one
//! begins.

use std::collections::HashSet;
use std::sync::Arc;

use agent::agent_host::{AgentEvent, AgentHost, DispatchedCalls, MAX_SERVER_CALLS};
use agent::outcome::{CallEnd, GenerationFailure, ModelOutput};
use agent::sink::Sink;
use agent::tools::registry::ToolRegistry;
use agent::tools::tool::ServerTool;
use async_trait::async_trait;
use llm::request::Request;
use llm::tool::ToolCall;
use responses_api::fold::engine_event::{Completeness, EngineEvent};
use responses_api::item::ItemBody;
use responses_api::response::ResponseUsage;
use tokio_util::sync::CancellationToken;

use crate::responses::execution::response_sink::ResponseSink;
use crate::responses::execution::speaker_call::SpeakerCall;
use crate::responses::execution::tool_config::{MEMORY_TOOL, ToolConfig};
use crate::responses::execution::tool_dispatch::CallBudget;
use crate::responses::execution::{tool_dispatch, usage};
use crate::responses::telemetry::ended_call::CallCounts;

/// The agent host of one response; all of its speakers share it.
pub struct ResponseHost<'a> {
    /// The usage of all model calls.
    pub usage: Option<ResponseUsage>,
    /// The calls of models and tools, for the log.
    pub counts: CallCounts,
    sink: ResponseSink<'a>,
    tools: &'a ToolConfig,
    registry: &'a ToolRegistry,
    /// The memory tool of the current speaker.
    memory: Option<Arc<dyn ServerTool>>,
    cancel: &'a CancellationToken,
    known_call_ids: HashSet<String>,
    call_budget: CallBudget,
}

impl<'a> ResponseHost<'a> {
    /// Creates the host of a new response.
    pub fn new(
        sink: ResponseSink<'a>,
        tools: &'a ToolConfig,
        registry: &'a ToolRegistry,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self {
            usage: None,
            counts: CallCounts::default(),
            sink,
            tools,
            registry,
            memory: None,
            cancel,
            known_call_ids: HashSet::new(),
            call_budget: CallBudget {
                n_total: tools.max_calls.unwrap_or(u32::MAX),
                n_server: (MAX_SERVER_CALLS as u32).saturating_sub(tools.n_earlier_server_calls),
            },
        }
    }

    /// Begins the calls of a speaker. Records the ids of the tool calls in its first request, so that
    /// no later call gets one of them.
    pub fn begin_speaker(&mut self, call: &SpeakerCall) {
        let calls = call.request.messages.iter().flat_map(|it| &it.calls);
        self.known_call_ids.extend(calls.map(|it| it.id.clone()));
        self.memory.clone_from(&call.memory);
    }
}

#[async_trait]
impl AgentHost for ResponseHost<'_> {
    type Item = ItemBody;

    fn sink(&mut self) -> &mut dyn Sink {
        &mut self.sink
    }

    fn emit(&mut self, event: AgentEvent<'_, ItemBody>) {
        let queue = self.sink.queue;
        match event {
            AgentEvent::CallsTruncated(calls) => {
                for call in tool_dispatch::truncated_calls(calls, self.tools) {
                    queue.push(EngineEvent::ClientToolCall(call, Completeness::Truncated));
                }
            }
            AgentEvent::Tool(item, update) => {
                queue.push_tool_update(item, update);
            }
            AgentEvent::ClientCall(item) => queue.push(EngineEvent::ClientToolCall(
                item.clone(),
                Completeness::Complete,
            )),
            AgentEvent::CallEnded(..) => {}
        }
    }

    async fn record_call(&mut self, request: &Request, output: &ModelOutput) {
        self.counts.n_model_calls += 1;
        let is_answer = matches!(output.end, CallEnd::Answered(_));
        let usage = usage::count(output, request, is_answer).await;
        self.usage = ResponseUsage::sum([self.usage, usage]);
        self.sink.queue.push(EngineEvent::ModelCallEnded(usage));
    }

    async fn authorize(&mut self, calls: Vec<ToolCall>) -> DispatchedCalls<ItemBody> {
        let n_calls = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        self.counts.n_tool_calls = self.counts.n_tool_calls.saturating_add(n_calls);
        let (known, budget) = (&mut self.known_call_ids, &mut self.call_budget);
        tool_dispatch::dispatch(calls, self.tools, known, budget)
    }

    fn find_tool(&self, name: &str) -> Option<Arc<dyn ServerTool>> {
        match name {
            MEMORY_TOOL => self.memory.clone(),
            name => self.registry.find(name).cloned(),
        }
    }

    async fn checkpoint(&mut self, request: &mut Request) -> Result<(), GenerationFailure> {
        let queue = self.sink.queue;
        queue.push(EngineEvent::NextIteration);
        tokio::select! {
            () = self.cancel.cancelled() => {}
            () = queue.flush() => {}
        }
        self.tools.clear_tool_choice(request);
        Ok(())
    }
}

#[cfg(test)]
#[path = "response_loop_tests.rs"]
mod tests;
