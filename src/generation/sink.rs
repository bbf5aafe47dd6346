//! Where the text of a turn goes while it is being written.

use serde_json::Value;

use crate::llm::tool::ToolCallDelta;

/// Takes the text piece by piece.
///
/// **Invariant:** all pieces in order are the final text, exactly. `delta` is called between two
/// reads of the model's answer, so it only appends to memory: no I/O, no waiting.
pub trait Sink: Send {
    /// The next piece; never empty.
    fn on_text(&mut self, text: &str);

    /// The next piece of a text in which the model says why it does not answer; a piece of the text
    /// like any other, except for who tells them apart.
    fn on_refusal(&mut self, text: &str) {
        self.on_text(text);
    }

    /// How likely each token of the next piece was, where that was asked for.
    fn on_logprobs(&mut self, _logprobs: Vec<Value>) {}

    /// Where something in the text so far comes from.
    fn on_annotation(&mut self, _citation: Value) {}

    /// The next piece of what is thought before the text. `true`: somebody was shown it, and nothing
    /// may be tried again. Rooms show it with the finished message, so by default nobody is.
    fn on_reasoning(&mut self, _text: &str) -> bool {
        false
    }

    /// The next piece of a call of a tool; pieces of several calls may come in turns. `true` as in
    /// [`Sink::thought`].
    fn on_tool_call(&mut self, _piece: &ToolCallDelta) -> bool {
        false
    }
}

impl Sink for String {
    fn on_text(&mut self, text: &str) {
        self.push_str(text);
    }
}
