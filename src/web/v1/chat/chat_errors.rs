//! Converts errors of the engine to errors of a chat completion: paths of input items become paths
//! of messages, and the failure of a model becomes an HTTP error.

use responses_api::failure_codes;
use responses_api::response::ResponseError;

use crate::web::v1::error::V1Error;

/// Seconds after which a request that failed temporarily may be repeated.
const RETRY_AFTER: u64 = 1;

/// Returns the error with the path of the chat message instead of the path of the input item, also in its
/// message. `message_positions` has the position of the message of each item.
pub fn in_messages(mut error: V1Error, message_positions: &[usize]) -> V1Error {
    let Some(param) = &error.param else {
        return error;
    };
    let renamed = match param.as_str() {
        "input" => "messages".to_owned(),
        "text.format" => "response_format".to_owned(),
        "top_logprobs" => "logprobs".to_owned(),
        param => message_path(param, message_positions).unwrap_or_else(|| param.to_owned()),
    };
    let (old, new) = (format!("'{param}'"), format!("'{renamed}'"));
    error.message = error.message.replacen(&old, &new, 1);
    error.for_param(renamed)
}

/// Converts the path of a field of an item, as `input[3].call_id`.
fn message_path(param: &str, message_positions: &[usize]) -> Option<String> {
    let (item, field) = param.strip_prefix("input[")?.split_once(']')?;
    let message = message_positions.get(item.parse::<usize>().ok()?)?;
    let field = match field {
        ".call_id" => ".tool_call_id".to_owned(),
        field if field.ends_with(".image_url") => format!("{field}.url"),
        field => field.to_owned(),
    };
    Some(format!("messages[{message}]{field}"))
}

/// 500: the task ended without a result.
pub fn no_result() -> V1Error {
    tracing::error!("chat completion ended without a result");
    V1Error::new(500, "internal", "Internal server error.")
}

impl V1Error {
    /// Returns the error for a model that failed before its first output.
    pub fn from_failure(error: &ResponseError) -> Self {
        let (code, status) = failure_codes::with_status(&error.code);
        Self {
            retry_after: matches!(status, 429 | 503).then_some(RETRY_AFTER),
            ..Self::new(status, code, error.message.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use responses_api::response::ResponseError;

    use super::in_messages;
    use crate::web::v1::error::V1Error;

    #[test]
    fn a_path_of_an_item_becomes_the_path_of_its_message() {
        for (param, expected) in [
            ("input[2].call_id", "messages[1].tool_call_id"),
            (
                "input[0].content[1].image_url",
                "messages[0].content[1].image_url.url",
            ),
            ("input", "messages"),
            ("input[9].call_id", "input[9].call_id"),
            ("text.format", "response_format"),
            ("model", "model"),
        ] {
            let error = in_messages(V1Error::wrong_value(param, "x"), &[0, 1, 1]);

            assert_eq!(error.param.as_deref(), Some(expected));
            assert!(error.message.contains(&format!("'{expected}'")), "{error}");
        }
    }

    #[test]
    fn a_failure_of_a_model_has_a_status_by_its_code() {
        for (code, status, retry_after) in [
            ("rate_limit_exceeded", 429, Some(1)),
            ("upstream_error", 502, None),
            ("upstream_timeout", 502, None),
            ("instance_lost", 503, Some(1)),
            ("server_error", 500, None),
            ("context_length_exceeded", 400, None),
        ] {
            let error = V1Error::from_failure(&ResponseError {
                code: code.to_owned(),
                message: "It failed.".to_owned(),
            });

            let found = (error.status, error.code, error.retry_after);
            assert_eq!(found, (status, code, retry_after));
        }
    }
}
