//! Translates the errors of operations on runs for clients.

use crate::responses::error::ResponseEngineError;
use crate::responses::thread_runs::run_error::RunOperationError;
use crate::web::v1::error::V1Error;

/// The maximum number of calls that an error message lists.
const MAX_LISTED_CALLS: usize = 20;

impl From<RunOperationError> for V1Error {
    fn from(error: RunOperationError) -> Self {
        let field = |at: usize| format!("tool_outputs[{at}].tool_call_id");
        match error {
            RunOperationError::NotFound => Self::not_found(),
            RunOperationError::Thread(error) => error.into(),
            RunOperationError::NotCancellable => Self::new(
                400,
                "run_not_cancellable",
                "The run has ended, so it cannot be cancelled.",
            ),
            RunOperationError::NotAwaitingTools => Self::new(
                400,
                "run_not_awaiting_tools",
                "The run does not wait for outputs of tools.",
            ),
            RunOperationError::MissingToolOutput(calls) => {
                let calls = calls.iter().take(MAX_LISTED_CALLS).map(String::as_str);
                let calls = calls.collect::<Vec<_>>().join(", ");
                let message = format!("Outputs are missing for these calls: {calls}.");
                Self::invalid("missing_tool_output", "tool_outputs", message)
            }
            RunOperationError::UnknownToolCall(at, call) => {
                let message = format!("No open call has the id {}.", quoted(&call));
                Self::invalid("unknown_tool_call", &field(at), message)
            }
            RunOperationError::DuplicateToolOutput(at, call) => {
                let message = format!("The call {} already has an output.", quoted(&call));
                Self::invalid("duplicate_tool_output", &field(at), message)
            }
            RunOperationError::Refused(refusal) => from_refusal(refusal),
        }
    }
}

fn quoted(id: &str) -> String {
    responses_api::request::error::quoted(id)
}

/// Replaces the name of a field of a response by the name of the field of a run with the same meaning.
fn from_refusal(refusal: ResponseEngineError) -> V1Error {
    let error = V1Error::from(refusal);
    match error.param.as_deref() {
        Some("text.format") => error.for_param("response_format"),
        Some("input") => error.for_param("additional_messages"),
        _ => error,
    }
}
