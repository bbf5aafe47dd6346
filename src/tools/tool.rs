//! Something that a model may call and that runs here.

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::llm::tool::Tool;

/// The arguments of a call: a JSON object.
pub type ToolArguments = Map<String, Value>;

/// What came of a call: a text for the model, or a sentence that says what went wrong.
pub type ToolResult = Result<String, String>;

/// A tool.
///
/// Implementations neither limit their time nor watch for a cancel: the executor drops them.
#[async_trait]
pub trait ServerTool: Send + Sync {
    /// As a model is told of it; its name is the one that it is called by.
    fn declaration(&self) -> Tool;

    /// Runs it once. What it does not know among the arguments, it leaves alone.
    async fn run(&self, arguments: &ToolArguments, progress: &(dyn Fn(&str) + Sync)) -> ToolResult;
}
