//! Builds JSON-RPC 2.0 requests and notifications for MCP, whatever the method, and finds the
//! response to a request in a message or a batch. Defines `McpError`, the error of MCP calls. No
//! I/O.

use serde_json::{Value, json};

/// Maximum length of a quoted server error, in characters.
const MAX_REASON_CHARS: usize = 300;

/// Why a call failed. Each text is a sentence for users and omits the server's URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    #[error("The server cannot be reached.")]
    Unreachable,
    #[error("The server's address is not allowed.")]
    Forbidden,
    #[error("The server took too long.")]
    TimedOut,
    #[error("The server rejected the credentials.")]
    Unauthorized,
    #[error("The server answered with status {0}.")]
    Status(u16),
    #[error("The server's response is too large.")]
    TooLarge,
    #[error("The server does not follow the protocol.")]
    InvalidResponse,
    #[error("The server says: {0}")]
    Rejected(String),
}

/// Returns a request.
pub fn request(id: i64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Returns a notification, which gets no response.
pub fn notification(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": method })
}

/// Returns the response to request `id` from one message or a batch of messages, or `None` if it is
/// missing.
pub fn find_response(message: &Value, id: i64) -> Option<Result<Value, McpError>> {
    if let Some(several) = message.as_array() {
        return several.iter().find_map(|it| find_response(it, id));
    }
    let is_answer = message.get("method").is_none() && message["id"] == id;
    if !is_answer {
        return None;
    }
    if let Some(error) = message.get("error").filter(|it| !it.is_null()) {
        let reason = error["message"].as_str().unwrap_or("no reason");
        let reason: String = reason.chars().take(MAX_REASON_CHARS).collect();
        return Some(Err(McpError::Rejected(reason.replace('\0', ""))));
    }
    let result = message.get("result").filter(|it| it.is_object()).cloned();
    Some(result.ok_or(McpError::InvalidResponse))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{McpError, find_response};

    #[test]
    fn the_response_is_found_among_other_messages() {
        let result = json!({ "jsonrpc": "2.0", "id": 2, "result": { "n": 1 } });
        let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });

        assert_eq!(find_response(&ping, 2), None);
        assert_eq!(find_response(&result, 3), None);
        assert_eq!(
            find_response(&json!([ping, result]), 2),
            Some(Ok(json!({ "n": 1 })))
        );
    }

    #[test]
    fn an_error_is_truncated_and_any_other_response_is_invalid() {
        let refused = json!({ "id": 1, "error": { "message": "x".repeat(1000) } });

        let Some(Err(McpError::Rejected(reason))) = find_response(&refused, 1) else {
            panic!("expected a rejection");
        };
        assert_eq!(reason.len(), 300);
        assert_eq!(
            find_response(&json!({ "id": 1, "result": 7 }), 1),
            Some(Err(McpError::InvalidResponse))
        );
        assert_eq!(find_response(&json!("x"), 1), None);
    }
}
