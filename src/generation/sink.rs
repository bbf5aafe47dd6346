//! Where the text of a turn goes while it is being written.

/// Takes the text piece by piece.
///
/// **Invariant:** all pieces in order are the final text, exactly. `delta` is called between two
/// reads of the model's answer, so it only appends to memory: no I/O, no waiting.
pub trait Sink: Send {
    /// The next piece; never empty.
    fn delta(&mut self, text: &str);
}

impl Sink for String {
    fn delta(&mut self, text: &str) {
        self.push_str(text);
    }
}
