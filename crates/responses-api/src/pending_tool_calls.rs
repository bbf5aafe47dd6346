//! Checks that the items of a request contain exactly one output for each unanswered call of a
//! client's tool. No I/O.

use serde_json::Value;

use crate::request::error::WrongReference;
use crate::request::items::item_view::{ItemContent, ItemView};

/// Why calls and outputs do not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolOutputError {
    /// These calls have no output.
    Missing(Vec<String>),
    /// This field refers to a call that does not exist.
    Unknown(WrongReference),
    /// This field refers to a call that was already answered.
    Duplicate(WrongReference),
}

/// Checks that `input` answers every call that is pending after `prior`, and no other.
///
/// # Errors
/// Returns the first mismatch.
pub fn check(prior: &[Value], input: &[Value]) -> Result<(), ToolOutputError> {
    let mut calls = PendingCalls::default();
    for item in prior {
        // Items that clients added to a conversation may be inconsistent, so errors are ignored
        // here.
        let _ = calls.apply(item);
    }
    for (at, item) in input.iter().enumerate() {
        let field = |id: String| WrongReference {
            param: format!("input[{at}].call_id"),
            value: id,
        };
        calls.apply(item).map_err(|it| match it {
            Mismatch::Unknown(id) => ToolOutputError::Unknown(field(id)),
            Mismatch::Duplicate(id) => ToolOutputError::Duplicate(field(id)),
        })?;
    }
    match calls.pending.is_empty() {
        true => Ok(()),
        false => Err(ToolOutputError::Missing(calls.pending)),
    }
}

#[derive(Default)]
struct PendingCalls {
    pending: Vec<String>,
    answered: Vec<String>,
}

/// Why an output does not match, with the id of its call.
enum Mismatch {
    Unknown(String),
    Duplicate(String),
}

impl PendingCalls {
    fn apply(&mut self, item: &Value) -> Result<(), Mismatch> {
        let item = ItemView::of(item);
        match &item.content {
            ItemContent::Call(call) if !item.is_incomplete() => self.add(call.call_id),
            ItemContent::Output(output) => return self.answer(output.call_id),
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, id: &str) {
        if !self.is_pending(id) {
            self.pending.push(id.to_owned());
            self.answered.retain(|it| it != id);
        }
    }

    fn answer(&mut self, id: &str) -> Result<(), Mismatch> {
        if self.is_pending(id) {
            self.pending.retain(|it| it != id);
            self.answered.push(id.to_owned());
            return Ok(());
        }
        match self.answered.iter().any(|it| it == id) {
            true => Err(Mismatch::Duplicate(id.to_owned())),
            false => Err(Mismatch::Unknown(id.to_owned())),
        }
    }

    fn is_pending(&self, id: &str) -> bool {
        self.pending.iter().any(|it| it == id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ToolOutputError, check};
    use crate::request::error::WrongReference;

    fn call(id: &str) -> Value {
        json!({ "type": "function_call", "status": "completed", "call_id": id })
    }

    fn output(id: &str) -> Value {
        json!({ "type": "function_call_output", "status": "completed", "call_id": id })
    }

    fn output_error(prior: &[Value], input: &[Value]) -> Option<ToolOutputError> {
        check(prior, input).err()
    }

    fn field(at: usize, id: &str) -> WrongReference {
        WrongReference {
            param: format!("input[{at}].call_id"),
            value: id.to_owned(),
        }
    }

    #[test]
    fn outputs_of_pending_calls_are_accepted_in_any_order() {
        let open = [call("a"), call("b")];

        assert_eq!(output_error(&open, &[output("b"), output("a")]), None);
        assert_eq!(
            output_error(&open, &[output("b")]),
            Some(ToolOutputError::Missing(vec!["a".to_owned()]))
        );
        assert_eq!(
            output_error(&open, &[output("b"), output("c")]),
            Some(ToolOutputError::Unknown(field(1, "c")))
        );
        assert_eq!(
            output_error(&open, &[output("a"), output("b"), output("a")]),
            Some(ToolOutputError::Duplicate(field(2, "a")))
        );
        assert_eq!(
            output_error(&[call("a"), output("a")], &[output("a")]),
            Some(ToolOutputError::Duplicate(field(0, "a")))
        );
    }

    #[test]
    fn an_incomplete_call_is_not_pending_and_an_id_can_be_reused() {
        let cut = json!({ "type": "function_call", "status": "incomplete", "call_id": "a" });

        assert_eq!(output_error(&[cut], &[]), None);
        let twice = [call("a"), output("a"), call("a"), output("a")];
        assert_eq!(output_error(&[], &twice), None);
        assert_eq!(
            output_error(&[], &[call("a")]),
            Some(ToolOutputError::Missing(vec!["a".to_owned()]))
        );
    }
}
