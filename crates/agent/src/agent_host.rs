//! The trait `AgentHost`, which the caller of an agent loop implements (a conversation run or a
//! response under `/v1`): it receives the output, decides about tool calls, and saves progress.

use std::sync::Arc;

use async_trait::async_trait;
use llm::request::Request;
use llm::tool::ToolCall;

use crate::outcome::{GenerationFailure, ModelOutput};
use crate::sink::Sink;
use crate::tools::ordered_output::ToolUpdate;
use crate::tools::tool::{ServerTool, ToolArguments, ToolResult};

/// The most tool calls of one run or response that this server runs.
pub const MAX_SERVER_CALLS: usize = 32;

/// What an agent loop requires of its caller.
#[async_trait]
pub trait AgentHost: Send {
    /// What the host stores about a tool call that is not rejected.
    type Item: Send + Sync;

    /// Returns the receiver of the model's output.
    fn sink(&mut self) -> &mut dyn Sink;

    /// Receives the tool calls and their progress, in order. Must not block.
    fn emit(&mut self, event: AgentEvent<'_, Self::Item>);

    /// Counts the usage of a model call and combines its output with the earlier ones.
    async fn record_call(&mut self, request: &Request, output: &ModelOutput);

    /// Decides for each tool call of an iteration who runs it, and waits for approvals. A call that
    /// is left out is ignored.
    async fn authorize(&mut self, calls: Vec<ToolCall>) -> DispatchedCalls<Self::Item>;

    /// Returns the tool for a call that this server runs.
    fn find_tool(&self, name: &str) -> Option<Arc<dyn ServerTool>>;

    /// Persists what the next iteration depends on, and sets what its model call may do.
    ///
    /// # Errors
    /// Returns the failure with which the loop ends instead.
    async fn checkpoint(&mut self, request: &mut Request) -> Result<(), GenerationFailure>;
}

/// An event of the tool calls of one iteration.
pub enum AgentEvent<'a, I> {
    /// The answer was cut off; its calls do not run.
    CallsTruncated(Vec<ToolCall>),
    /// An update about a call that this server runs.
    Tool(&'a I, ToolUpdate),
    /// The client must run or approve this call.
    ClientCall(&'a I),
    /// The model receives this result.
    CallEnded(&'a DispatchedCall<I>, &'a ToolResult),
}

/// The tool calls of one iteration, in order.
#[derive(Debug, Default)]
pub struct DispatchedCalls<I> {
    pub calls: Vec<DispatchedCall<I>>,
    /// At least one call was dropped because the budget was used up.
    pub exceeds_budget: bool,
}

/// A call as it is repeated to the model, and who runs it.
#[derive(Debug)]
pub struct DispatchedCall<I> {
    pub call: ToolCall,
    pub disposition: Disposition<I>,
}

/// Who runs a call.
#[derive(Debug)]
pub enum Disposition<I> {
    /// The client runs or approves it; the loop ends.
    Client(I),
    /// This server runs it: its item, the tool's name, the arguments.
    Server(I, String, ToolArguments),
    /// No one runs it, for this reason, which the model sees.
    Rejected(String),
}
