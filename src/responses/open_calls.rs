//! The calls that wait for a client: whoever goes on must bring exactly their outputs. Pure.

use crate::responses::refusal::Refusal;
use serde_json::Value;

/// The prefix of receipts of our own tools, which hold their outputs themselves.
pub const RECEIPT: &str = "troupe:";

/// The kinds of calls that a client answers, and of what answers them.
const CALLS: [(&str, &str); 3] = [
    ("function_call", "function_call_output"),
    ("custom_tool_call", "custom_tool_call_output"),
    ("local_shell_call", "local_shell_call_output"),
];

/// Why calls and outputs do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// These calls have no output.
    Missing(Vec<String>),
    /// This field names a call that is not there.
    Unknown(String),
    /// This field names a call that was answered before.
    Doubled(String),
}

/// Whether an item is a call that a client answers.
pub fn is_call(item: &Value) -> bool {
    CALLS.iter().any(|it| item["type"] == it.0)
}

/// Whether an item is what came of a call.
pub fn is_output(item: &Value) -> bool {
    CALLS.iter().any(|it| item["type"] == it.1)
}

/// Whether an item was cut off before it was whole.
pub fn is_broken(item: &Value) -> bool {
    item["status"] == "incomplete" || item["status"] == "in_progress"
}

/// The id that a call and its output share.
pub fn call_id(item: &Value) -> &str {
    item["call_id"].as_str().unwrap_or_default()
}

/// Whether `input` answers all that is open after `prior`, and nothing else.
///
/// # Errors
/// The first misfit.
pub fn check(prior: &[Value], input: &[Value]) -> Result<(), Refusal> {
    let mut calls = Calls::default();
    for item in prior {
        // What was noted in a conversation may be anything: it was nobody's answer then.
        let _ = calls.take(item);
    }
    for (at, item) in input.iter().enumerate() {
        let param = || format!("input[{at}].call_id");
        calls.take(item).map_err(|it| match it {
            Wrong::Unknown => Refusal::Calls(Misfit::Unknown(param())),
            Wrong::Doubled => Refusal::Calls(Misfit::Doubled(param())),
        })?;
    }
    match calls.open.is_empty() {
        true => Ok(()),
        false => Err(Refusal::Calls(Misfit::Missing(calls.open))),
    }
}

#[derive(Default)]
struct Calls {
    open: Vec<String>,
    answered: Vec<String>,
}

enum Wrong {
    Unknown,
    Doubled,
}

impl Calls {
    fn take(&mut self, item: &Value) -> Result<(), Wrong> {
        let id = call_id(item);
        let is_open = self.open.iter().any(|it| it == id);
        if is_call(item) && !is_broken(item) && !is_open {
            self.open.push(id.to_owned());
            self.answered.retain(|it| it != id);
        }
        if is_output(item) {
            if !is_open {
                let was_answered = self.answered.iter().any(|it| it == id);
                return Err(if was_answered {
                    Wrong::Doubled
                } else {
                    Wrong::Unknown
                });
            }
            self.open.retain(|it| it != id);
            self.answered.push(id.to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Misfit;
    use super::check;
    use crate::responses::refusal::Refusal;
    use serde_json::Value;
    use serde_json::json;

    fn call(id: &str) -> Value {
        json!({ "type": "function_call", "status": "completed", "call_id": id })
    }

    fn output(id: &str) -> Value {
        json!({ "type": "function_call_output", "status": "completed", "call_id": id })
    }

    fn misfit(prior: &[Value], input: &[Value]) -> Option<Misfit> {
        match check(prior, input) {
            Ok(()) => None,
            Err(Refusal::Calls(misfit)) => Some(misfit),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn exactly_the_outputs_of_open_calls_are_taken_in_any_order() {
        let open = [call("a"), call("b")];

        assert_eq!(misfit(&open, &[output("b"), output("a")]), None);
        assert_eq!(
            misfit(&open, &[output("b")]),
            Some(Misfit::Missing(vec!["a".to_owned()]))
        );
        assert_eq!(
            misfit(&open, &[output("b"), output("c")]),
            Some(Misfit::Unknown("input[1].call_id".to_owned()))
        );
        assert_eq!(
            misfit(&open, &[output("a"), output("b"), output("a")]),
            Some(Misfit::Doubled("input[2].call_id".to_owned()))
        );
        assert_eq!(
            misfit(&[call("a"), output("a")], &[output("a")]),
            Some(Misfit::Doubled("input[0].call_id".to_owned()))
        );
    }

    #[test]
    fn what_was_cut_off_is_not_open_and_an_id_may_come_again() {
        let cut = json!({ "type": "function_call", "status": "incomplete", "call_id": "a" });

        assert_eq!(misfit(&[cut], &[]), None);
        let twice = [call("a"), output("a"), call("a"), output("a")];
        assert_eq!(misfit(&[], &twice), None);
        assert_eq!(
            misfit(&[], &[call("a")]),
            Some(Misfit::Missing(vec!["a".to_owned()]))
        );
    }
}
