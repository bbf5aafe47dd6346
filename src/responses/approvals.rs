//! Calls of tools elsewhere that somebody must agree to: whoever goes on answers all that is pending.
//! Pure.

use crate::responses::open_calls::is_broken;
use crate::responses::refusal::Refusal;
use serde_json::Value;

/// A call that somebody has agreed to, exactly as it was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    /// The id of the item that asked.
    pub request: String,
    pub label: String,
    pub name: String,
    pub arguments: String,
}

/// Why requests and answers do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// These requests have no answer.
    Missing(Vec<String>),
    /// This field names a request that is not pending.
    Unknown(String),
}

/// What `input` agrees to, of all that is pending after `prior`.
///
/// # Errors
/// Not all of it is answered, or something that is not pending.
pub fn check(prior: &[Value], input: &[Value]) -> Result<Vec<Approved>, Refusal> {
    let mut pending: Vec<&Value> = Vec::new();
    for item in prior {
        match kind(item) {
            "mcp_approval_request" if !is_broken(item) => pending.push(item),
            "mcp_approval_response" | "mcp_call" => pending.retain(|it| it["id"] != *asked(item)),
            _ => {}
        }
    }
    let mut approved = Vec::new();
    for (at, item) in input.iter().enumerate() {
        match kind(item) {
            "mcp_approval_request" if !is_broken(item) => pending.push(item),
            "mcp_approval_response" => {
                let found = pending.iter().position(|it| it["id"] == *asked(item));
                let param = || format!("input[{at}].approval_request_id");
                let found =
                    found.ok_or_else(|| Refusal::Approvals(Unanswered::Unknown(param())))?;
                let request = pending.remove(found);
                if item["approve"] == true {
                    approved.push(granted(request));
                }
            }
            // Whoever hands all in again hands in what came of it.
            "mcp_call" => approved.retain(|it| asked(item) != it.request.as_str()),
            _ => {}
        }
    }
    match pending.is_empty() {
        true => Ok(approved),
        false => {
            let ids = pending.iter().map(|it| word(it, "id"));
            Err(Refusal::Approvals(Unanswered::Missing(ids.collect())))
        }
    }
}

/// Why a request was refused, if it was, by whoever answered it among these items.
pub fn refusal<'a>(request: &Value, mut items: impl Iterator<Item = &'a Value>) -> Option<String> {
    let answer = items.find(|it| {
        let is_answer = kind(it) == "mcp_approval_response";
        is_answer && *asked(it) == request["id"]
    })?;
    if answer["approve"] == true {
        return None;
    }
    let reason = answer["reason"].as_str().filter(|it| !it.is_empty());
    Some(match reason {
        Some(reason) => format!("The user did not allow this call: {reason}"),
        None => "The user did not allow this call.".to_owned(),
    })
}

fn kind(item: &Value) -> &str {
    item["type"].as_str().unwrap_or_default()
}

fn asked(item: &Value) -> &Value {
    &item["approval_request_id"]
}

fn word(item: &Value, name: &str) -> String {
    item[name].as_str().unwrap_or_default().to_owned()
}

fn granted(request: &Value) -> Approved {
    Approved {
        request: word(request, "id"),
        label: word(request, "server_label"),
        name: word(request, "name"),
        arguments: word(request, "arguments"),
    }
}

#[cfg(test)]
mod tests {
    use super::Unanswered;
    use super::check;
    use super::refusal;
    use crate::responses::refusal::Refusal;
    use serde_json::Value;
    use serde_json::json;

    fn request(id: &str) -> Value {
        json!({ "type": "mcp_approval_request", "id": id, "server_label": "s", "name": "n", "arguments": "{}" })
    }

    fn response(id: &str, approve: bool) -> Value {
        json!({ "type": "mcp_approval_response", "approval_request_id": id, "approve": approve, "reason": "no" })
    }

    fn unanswered(prior: &[Value], input: &[Value]) -> Unanswered {
        match check(prior, input) {
            Err(Refusal::Approvals(unanswered)) => unanswered,
            other => panic!("{other:?}"),
        }
    }

    // R63
    #[test]
    fn all_that_is_pending_is_answered_and_nothing_else() {
        let pending = [request("a"), request("b")];

        let approved = check(&pending, &[response("b", true), response("a", false)]).unwrap();
        assert_eq!(approved.len(), 1);
        assert_eq!(approved[0].request, "b");
        let missing = Unanswered::Missing(vec!["b".to_owned()]);
        assert_eq!(unanswered(&pending, &[response("a", true)]), missing);
        let unknown = Unanswered::Unknown("input[0].approval_request_id".to_owned());
        assert_eq!(unanswered(&pending, &[response("c", true)]), unknown);
        let again = [request("a"), response("a", true)];
        assert_eq!(unanswered(&again, &[response("a", true)]), unknown);
    }

    #[test]
    fn what_was_run_is_not_run_again() {
        let done = json!({ "type": "mcp_call", "approval_request_id": "a" });
        let all = [request("a"), response("a", true), done];

        assert_eq!(check(&[], &all).unwrap(), []);
        assert_eq!(check(&all, &[]).unwrap(), []);
    }

    #[test]
    fn a_refusal_says_why() {
        let answers = [response("a", false), response("b", true)];

        let told = refusal(&request("a"), answers.iter());
        assert_eq!(
            told.as_deref(),
            Some("The user did not allow this call: no")
        );
        assert_eq!(refusal(&request("b"), answers.iter()), None);
        assert_eq!(refusal(&request("c"), answers.iter()), None);
    }
}
