//! Combines the choices of a chat completion, which are generated independently: the complete answer, and
//! what a stream sends after the chunks of all choices. No I/O.
//!
//! **Invariant:** a choice that failed is never reported as complete: an answer leaves it out, and a
//! stream that has sent a part of it ends with its error.

use serde_json::json;

use crate::failure_codes;
use crate::fold::chat_fold::ChatFold;
use crate::fold::chat_objects::{ChatCompletion, CompletionHeader};
use crate::response::{ResponseError, ResponseUsage};

/// Returns the complete answer, without the choices that failed.
///
/// # Errors
/// Returns the failure of the first choice if all of them failed.
pub fn completion(
    header: &CompletionHeader,
    folds: Vec<ChatFold>,
) -> Result<ChatCompletion, ResponseError> {
    let usage = usage(&folds);
    let (mut choices, mut failure) = (Vec::new(), None);
    for fold in folds {
        match fold.into_choice() {
            Ok(choice) => choices.push(choice),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match failure {
        Some(error) if choices.is_empty() => Err(error),
        _ => Ok(header.completion(choices, usage)),
    }
}

/// Returns the chunk with the usage of all choices, if the client requests it.
///
/// # Errors
/// Returns a failure if all choices failed, or if one failed after its first chunk.
pub fn usage_chunk(
    header: &CompletionHeader,
    folds: &[ChatFold],
) -> Result<Option<String>, ResponseError> {
    let all_failed = folds.iter().all(|it| it.failure().is_some());
    let mut reported = folds.iter().filter(|it| all_failed || it.has_output());
    if let Some(error) = reported.find_map(ChatFold::failure) {
        return Err(error);
    }
    let chunk = header.usage_chunk(usage(folds));
    let encode = || serde_json::to_string(&chunk).expect("a chunk is an object with text keys");
    Ok(header.include_usage.then(encode))
}

/// Returns the data that ends a stream after a failure.
pub fn error_chunk(error: &ResponseError) -> String {
    let (code, status) = failure_codes::with_status(&error.code);
    let object = failure_codes::error_object(status, code, &error.message, None);
    json!({ "error": object }).to_string()
}

/// Returns the usage of all choices. Their prompts are the same, so it is counted once.
fn usage(folds: &[ChatFold]) -> Option<ResponseUsage> {
    let usages = folds.iter().filter_map(|it| it.state().usage);
    usages.reduce(|one, other| {
        let (longest, other) = match one.input_tokens >= other.input_tokens {
            true => (one, other),
            false => (other, one),
        };
        ResponseUsage {
            output_tokens: longest.output_tokens.saturating_add(other.output_tokens),
            reasoning_tokens: longest
                .reasoning_tokens
                .saturating_add(other.reasoning_tokens),
            ..longest
        }
    })
}

#[cfg(test)]
#[path = "chat_choices_tests.rs"]
mod tests;
