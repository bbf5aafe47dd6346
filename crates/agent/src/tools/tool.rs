//! The trait `ServerTool`: a tool that a model can call and this server executes.

use async_trait::async_trait;
use llm::tool::Tool;
use serde_json::{Map, Value};

/// The arguments of a call: a JSON object.
pub type ToolArguments = Map<String, Value>;

/// The result of a call: text for the model, or a sentence that describes the error.
pub type ToolResult = Result<String, String>;

/// A tool that this server executes.
///
/// Implementations need neither a timeout nor a cancellation check: the executor drops their
/// future.
#[async_trait]
pub trait ServerTool: Send + Sync {
    /// Returns the declaration for models; models call the tool by its name.
    fn declaration(&self) -> Tool;

    /// Executes one call. Unknown arguments are ignored.
    async fn run(&self, arguments: &ToolArguments, progress: &(dyn Fn(&str) + Sync)) -> ToolResult;

    /// Returns the remote server that executes the call, or `None` if this process does. The number of
    /// concurrent calls of each remote server is limited.
    fn server(&self) -> Option<String> {
        None
    }

    /// Returns the part of an output that is stored with a message and shown to people: all of
    /// it, unless it must not be stored.
    fn recorded_output(&self, output: &str) -> String {
        output.to_owned()
    }

    /// Returns the part of the arguments that is stored with a message and shown to people: all of them, as
    /// the model wrote them, unless a part must not be stored.
    fn recorded_arguments(&self, arguments: &str) -> String {
        arguments.to_owned()
    }
}
