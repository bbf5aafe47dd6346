//! Matches pending approval requests for MCP calls with the answers in a request, and returns the
//! approved calls. A request must answer every pending one. No I/O.

use responses_api::request::error::WrongReference;
use responses_api::request::items::item_view::{ItemContent, ItemView};
use serde_json::Value;

/// A call that the user approved, exactly as it was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedCall {
    /// The id of the approval request item.
    pub request_id: String,
    pub label: String,
    pub name: String,
    pub arguments: String,
}

/// Why approval requests and responses do not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalError {
    /// These requests have no response.
    Missing(Vec<String>),
    /// This field refers to a request that is not pending.
    Unknown(WrongReference),
}

/// Returns the calls that `input` approves, out of all that are pending after `prior`.
///
/// # Errors
/// Returns `Missing` when a pending request has no response, and `Unknown` when a response refers
/// to a request that is not pending.
pub fn check(prior: &[Value], input: &[Value]) -> Result<Vec<ApprovedCall>, ApprovalError> {
    let mut pending: Vec<ApprovedCall> = Vec::new();
    for item in prior {
        let item = ItemView::of(item);
        pending.extend(requested_call(&item));
        pending.retain(|it| answered_request(&item.content) != Some(&it.request_id));
    }
    let mut approved = Vec::new();
    for (at, item) in input.iter().enumerate() {
        let item = ItemView::of(item);
        pending.extend(requested_call(&item));
        match &item.content {
            ItemContent::ApprovalResponse(answer) => {
                let id = answer.approval_request_id;
                let found = pending.iter().position(|it| it.request_id == id);
                let field = || WrongReference {
                    param: format!("input[{at}].approval_request_id"),
                    value: id.to_owned(),
                };
                let found = found.ok_or_else(|| ApprovalError::Unknown(field()))?;
                let call = pending.remove(found);
                if answer.approve {
                    approved.push(call);
                }
            }
            // A client that sends the whole history again also sends the results.
            ItemContent::RemoteCall(call) => {
                approved.retain(|it| call.approval_request_id != Some(&it.request_id));
            }
            _ => {}
        }
    }
    match pending.is_empty() {
        true => Ok(approved),
        false => {
            let ids = pending.into_iter().map(|it| it.request_id);
            Err(ApprovalError::Missing(ids.collect()))
        }
    }
}

/// Returns why the request with this id was rejected, if one of these items rejects it.
pub fn rejection_reason<'a>(
    request_id: &str,
    mut items: impl Iterator<Item = &'a Value>,
) -> Option<String> {
    let answer = items.find_map(|it| match ItemView::of(it).content {
        ItemContent::ApprovalResponse(it) if it.approval_request_id == request_id => Some(it),
        _ => None,
    })?;
    if answer.approve {
        return None;
    }
    Some(match answer.reason.filter(|it| !it.is_empty()) {
        Some(reason) => format!("The user did not allow this call: {reason}"),
        None => "The user did not allow this call.".to_owned(),
    })
}

/// Returns the call of an approval request, unless that was cut off.
fn requested_call(item: &ItemView) -> Option<ApprovedCall> {
    match &item.content {
        ItemContent::ApprovalRequest(call) if !item.is_incomplete() => Some(ApprovedCall {
            request_id: item.id.to_owned(),
            label: call.server_label.to_owned(),
            name: call.name.to_owned(),
            arguments: call.arguments.to_owned(),
        }),
        _ => None,
    }
}

/// Returns the approval request that an item answers or whose call it records.
fn answered_request<'a>(item: &ItemContent<'a>) -> Option<&'a str> {
    match item {
        ItemContent::ApprovalResponse(answer) => Some(answer.approval_request_id),
        ItemContent::RemoteCall(call) => call.approval_request_id,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use responses_api::request::error::WrongReference;
    use serde_json::{Value, json};

    use super::{ApprovalError, check, rejection_reason};

    fn request(id: &str) -> Value {
        json!({ "type": "mcp_approval_request", "id": id, "server_label": "s", "name": "n", "arguments": "{}" })
    }

    fn response(id: &str, approve: bool) -> Value {
        json!({ "type": "mcp_approval_response", "approval_request_id": id, "approve": approve, "reason": "no" })
    }

    fn approval_error(prior: &[Value], input: &[Value]) -> ApprovalError {
        check(prior, input).unwrap_err()
    }

    #[test]
    fn input_answers_exactly_the_pending_requests() {
        let pending = [request("a"), request("b")];

        let approved = check(&pending, &[response("b", true), response("a", false)]).unwrap();
        assert_eq!(approved.len(), 1);
        assert_eq!(approved[0].request_id, "b");
        let missing = ApprovalError::Missing(vec!["b".to_owned()]);
        assert_eq!(approval_error(&pending, &[response("a", true)]), missing);
        let unknown = |id: &str| {
            ApprovalError::Unknown(WrongReference {
                param: "input[0].approval_request_id".to_owned(),
                value: id.to_owned(),
            })
        };
        assert_eq!(
            approval_error(&pending, &[response("c", true)]),
            unknown("c")
        );
        let again = [request("a"), response("a", true)];
        assert_eq!(approval_error(&again, &[response("a", true)]), unknown("a"));
    }

    #[test]
    fn a_finished_call_is_not_run_again() {
        let done = json!({ "type": "mcp_call", "approval_request_id": "a" });
        let all = [request("a"), response("a", true), done];

        assert_eq!(check(&[], &all).unwrap(), []);
        assert_eq!(check(&all, &[]).unwrap(), []);
    }

    #[test]
    fn a_rejection_contains_its_reason() {
        let answers = [response("a", false), response("b", true)];

        let reason = rejection_reason("a", answers.iter());
        assert_eq!(
            reason.as_deref(),
            Some("The user did not allow this call: no")
        );
        assert_eq!(rejection_reason("b", answers.iter()), None);
        assert_eq!(rejection_reason("c", answers.iter()), None);
    }
}
