//! Where the text of a turn goes while it is being written.

use crate::llm::tool::CallPiece;
use serde_json::Value;

/// Takes the text piece by piece.
///
/// **Invariant:** all pieces in order are the final text, exactly. `delta` is called between two
/// reads of the model's answer, so it only appends to memory: no I/O, no waiting.
pub trait Sink: Send {
    /// The next piece; never empty.
    fn delta(&mut self, text: &str);

    /// The next piece of a text in which the model says why it does not answer; a piece of the text
    /// like any other, except for who tells them apart.
    fn refused(&mut self, text: &str) {
        self.delta(text);
    }

    /// How likely each token of the next piece was, where that was asked for.
    fn weighed(&mut self, _logprobs: Vec<Value>) {}

    /// Where something in the text so far comes from.
    fn cited(&mut self, _citation: Value) {}

    /// The next piece of what is thought before the text. `true`: somebody was shown it, and nothing
    /// may be tried again. Rooms show it with the finished message, so by default nobody is.
    fn thought(&mut self, _text: &str) -> bool {
        false
    }

    /// The next piece of a call of a tool; pieces of several calls may come in turns. `true` as in
    /// [`Sink::thought`].
    fn called(&mut self, _piece: &CallPiece) -> bool {
        false
    }
}

impl Sink for String {
    fn delta(&mut self, text: &str) {
        self.push_str(text);
    }
}
