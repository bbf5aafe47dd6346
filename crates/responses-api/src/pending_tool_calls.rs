//! Checks that the items of a request contain exactly one output for each unanswered call of a
//! client's tool, and identifies such calls and outputs. No I/O.

use serde_json::Value;

/// The types of calls that the client answers, each with the type of its output.
const CALL_TYPES: [(&str, &str); 3] = [
    ("function_call", "function_call_output"),
    ("custom_tool_call", "custom_tool_call_output"),
    ("local_shell_call", "local_shell_call_output"),
];

/// Why calls and outputs do not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolOutputError {
    /// These calls have no output.
    Missing(Vec<String>),
    /// This field refers to a call that does not exist.
    Unknown(String),
    /// This field refers to a call that was already answered.
    Duplicate(String),
}

/// Returns whether an item is a call that the client answers.
pub fn is_call(item: &Value) -> bool {
    CALL_TYPES.iter().any(|it| item["type"] == it.0)
}

/// Returns whether an item is the output of such a call.
pub fn is_output(item: &Value) -> bool {
    CALL_TYPES.iter().any(|it| item["type"] == it.1)
}

/// Returns whether an item was cut off.
pub fn is_incomplete(item: &Value) -> bool {
    item["status"] == "incomplete" || item["status"] == "in_progress"
}

/// Returns the id that a call and its output share.
pub fn call_id(item: &Value) -> &str {
    item["call_id"].as_str().unwrap_or_default()
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
        let param = || format!("input[{at}].call_id");
        calls.apply(item).map_err(|it| match it {
            Mismatch::Unknown => ToolOutputError::Unknown(param()),
            Mismatch::Duplicate => ToolOutputError::Duplicate(param()),
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

enum Mismatch {
    Unknown,
    Duplicate,
}

impl PendingCalls {
    fn apply(&mut self, item: &Value) -> Result<(), Mismatch> {
        let id = call_id(item);
        let is_open = self.pending.iter().any(|it| it == id);
        if is_call(item) && !is_incomplete(item) && !is_open {
            self.pending.push(id.to_owned());
            self.answered.retain(|it| it != id);
        }
        if is_output(item) {
            if !is_open {
                let was_answered = self.answered.iter().any(|it| it == id);
                return Err(if was_answered {
                    Mismatch::Duplicate
                } else {
                    Mismatch::Unknown
                });
            }
            self.pending.retain(|it| it != id);
            self.answered.push(id.to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ToolOutputError, check};

    fn call(id: &str) -> Value {
        json!({ "type": "function_call", "status": "completed", "call_id": id })
    }

    fn output(id: &str) -> Value {
        json!({ "type": "function_call_output", "status": "completed", "call_id": id })
    }

    fn output_error(prior: &[Value], input: &[Value]) -> Option<ToolOutputError> {
        check(prior, input).err()
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
            Some(ToolOutputError::Unknown("input[1].call_id".to_owned()))
        );
        assert_eq!(
            output_error(&open, &[output("a"), output("b"), output("a")]),
            Some(ToolOutputError::Duplicate("input[2].call_id".to_owned()))
        );
        assert_eq!(
            output_error(&[call("a"), output("a")], &[output("a")]),
            Some(ToolOutputError::Duplicate("input[0].call_id".to_owned()))
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
