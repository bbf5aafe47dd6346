//! The trait `Sink`, which receives a model's output piece by piece while it is generated.

use llm::reasoning::thought::Thought;
use llm::tool::ToolCallDelta;
use serde_json::Value;

/// Receives the output chunk by chunk.
///
/// **Invariant:** all text chunks in order are exactly the final text. The methods are called
/// between two reads of the model's stream, so they only append to memory: no I/O, no waiting.
pub trait Sink: Send {
    /// Receives the next chunk of text; never empty.
    fn on_text(&mut self, text: &str);

    /// Receives the next chunk of a refusal. Treated as ordinary text by default.
    fn on_refusal(&mut self, text: &str) {
        self.on_text(text);
    }

    /// Receives the logprobs of the tokens in the next chunk, if they were requested.
    fn on_logprobs(&mut self, _logprobs: Vec<Value>) {}

    /// Receives a citation for part of the text so far.
    fn on_annotation(&mut self, _citation: Value) {}

    /// Receives the next chunk of reasoning. Returns `true` if it was shown to a reader, so that
    /// the call may not be retried. Spaces show reasoning only with the finished message, so the
    /// default is `false`.
    fn on_reasoning(&mut self, _text: &str) -> bool {
        false
    }

    /// Receives a complete part of the reasoning, in the form that the API expects back; its text was
    /// already received. Returns `true` as in [`Sink::on_reasoning`].
    fn on_thought(&mut self, _thought: &Thought) -> bool {
        false
    }

    /// Receives the next fragment of a tool call; fragments of several calls may be interleaved.
    /// Returns `true` as in [`Sink::on_reasoning`].
    fn on_tool_call(&mut self, _piece: &ToolCallDelta) -> bool {
        false
    }
}

impl Sink for String {
    fn on_text(&mut self, text: &str) {
        self.push_str(text);
    }
}
