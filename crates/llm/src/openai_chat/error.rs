//! Converts error responses and failed connections of any provider to an `LlmError` with a sentence
//! for users.
//!
//! **Invariant:** the texts never contain the key, not even a part that the provider quoted, and
//! observe the length limit of [`error`](crate::error).

use std::error::Error;
use std::io;
use std::time::Duration;

use chrono::DateTime;
use outbound_http::address_policy::AddressRejected;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

use crate::error::{LlmError, MAX_MESSAGE_CHARS};
use crate::secret::Secret;

/// Converts a response with an error status.
pub fn from_status(
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    key: Option<&Secret>,
) -> LlmError {
    let body: Option<Value> = serde_json::from_slice(body).ok();
    status_error(status, retry_after(headers), body.as_ref(), key)
}

/// Converts an error that was sent in a stream; `status` is the HTTP status it would have had.
pub fn from_event(status: u16, event: &Value, key: Option<&Secret>) -> LlmError {
    status_error(status, None, Some(event), key)
}

fn status_error(
    status: u16,
    retry_after: Option<Duration>,
    body: Option<&Value>,
    key: Option<&Secret>,
) -> LlmError {
    let detail = body.and_then(detail);
    let what = match status {
        300..=399 => "The provider answered with a redirect, which is not followed",
        401 => "The provider did not accept the API key",
        402 => "The provider requires payment",
        403 => "The provider does not allow this request",
        404 => "The provider does not know this model or address",
        408 | 504 => "The provider timed out",
        413 => "The request is too large for the provider",
        429 => "The provider's rate limit is reached",
        500..=599 => "The provider has an internal error",
        _ => "The provider rejected the request",
    };
    // Messages about a wrong key often quote it.
    let detail = detail.filter(|_| status != 401);
    let message = match detail {
        Some(detail) => sanitize(&format!("{what} ({status}): {detail}"), key),
        None => format!("{what} ({status})."),
    };
    if body.is_some_and(is_context_overflow) {
        return LlmError::ContextOverflow { message };
    }
    LlmError::Status {
        status,
        message,
        retry_after,
    }
}

/// Converts an error object that was sent instead of a response.
pub fn from_object(object: &Value, key: Option<&Secret>) -> LlmError {
    let detail = detail(object).unwrap_or_else(|| "no reason given".to_owned());
    let message = sanitize(&format!("The provider returned an error: {detail}"), key);
    if is_context_overflow(object) {
        return LlmError::ContextOverflow { message };
    }
    LlmError::Upstream { message }
}

/// Converts the error of a request that got no complete response.
pub fn from_transport(error: &reqwest::Error) -> LlmError {
    if error.is_builder() {
        return LlmError::Unusable {
            message: "The request could not be built.".to_owned(),
        };
    }
    if let Some(refused) = find_cause::<AddressRejected>(error) {
        return LlmError::Unusable {
            message: refused.to_string(),
        };
    }
    let reason = if error.is_dns() {
        "its name could not be resolved"
    } else if error.is_timeout() {
        "the connection timed out"
    } else if has_cause(error, is_bad_certificate) {
        "its certificate could not be trusted"
    } else if has_cause(error, |it| it.is::<rustls::Error>()) {
        "no secure connection could be made"
    } else if has_cause(error, is_connection_refused) {
        "it refused the connection"
    } else if error.is_connect() {
        "no connection could be made"
    } else {
        "the connection broke before the response"
    };
    LlmError::Unreachable {
        message: format!("The provider could not be reached: {reason}."),
    }
}

/// Cleans untrusted text for users: one line, without keys, of limited length.
pub fn sanitize(text: &str, key: Option<&Secret>) -> String {
    let key = key.map(Secret::expose).filter(|key| !key.is_empty());
    let text = match key {
        Some(key) => text.replace(key, "[key]"),
        None => text.to_owned(),
    };
    let words: Vec<&str> = text
        .split(|it: char| it.is_whitespace() || it.is_control())
        .filter(|word| !word.is_empty())
        .map(|word| if is_like_api_key(word) { "[key]" } else { word })
        .collect();
    let line = words.join(" ");
    if line.chars().count() <= MAX_MESSAGE_CHARS {
        return line;
    }
    let cut: String = line.chars().take(MAX_MESSAGE_CHARS - 1).collect();
    format!("{}…", cut.trim_end())
}

fn is_like_api_key(word: &str) -> bool {
    word.contains("***")
        || word
            .trim_start_matches(['"', '\'', '`', '('])
            .starts_with("sk-")
}

/// Returns the reason from the fields that the various servers use.
fn detail(body: &Value) -> Option<String> {
    // Gemini wraps the error in a list if the response would have been streamed.
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").filter(|it| !it.is_null()).unwrap_or(body);
    let text = [
        error.get("message"),
        error.get("detail"),
        body.get("message"),
        Some(error),
    ]
    .into_iter()
    .flatten()
    .find_map(Value::as_str);
    let Some(text) = text else {
        return wrong_fields(error);
    };
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the wrong fields that servers based on FastAPI list, without their values.
fn wrong_fields(error: &Value) -> Option<String> {
    let message = &error["message"];
    let lists = [&error["detail"], message, &message["detail"]];
    let list = lists.into_iter().find_map(Value::as_array)?;
    let fields = list.iter().map(|it| {
        let reason = it["msg"].as_str().unwrap_or_default();
        format!("{}: {reason}", it["loc"])
    });
    let fields: Vec<String> = fields.collect();
    (!fields.is_empty()).then(|| fields.join("; "))
}

/// Phrases in the errors of servers for a prompt that is too long, in lower case. Only some servers also send
/// a code.
const OVERFLOW_PHRASES: [&str; 12] = [
    "maximum context length",
    "context length exceeded",
    "context window",
    "context size",
    "exceeds the context",
    "exceed context",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "maximum prompt length",
    "reduce the length of the messages",
    "input token count",
];

fn is_context_overflow(body: &Value) -> bool {
    let error = body.get("error").unwrap_or(body);
    let is_code = |name: &str| {
        let code = error.get(name).and_then(Value::as_str);
        code.is_some_and(|it| matches!(it, "context_length_exceeded" | "exceed_context_size_error"))
    };
    is_code("code") || is_code("type") || detail(body).is_some_and(|it| mentions_overflow(&it))
}

fn mentions_overflow(detail: &str) -> bool {
    let detail = detail.to_lowercase();
    OVERFLOW_PHRASES.iter().any(|it| detail.contains(it))
}

/// Parses `Retry-After` in seconds or as a date. Invalid values are ignored.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = DateTime::parse_from_rfc2822(text).ok()?;
    // Relative to the provider's clock, which may differ from ours.
    let now = headers.get(DATE)?.to_str().ok()?;
    let now = DateTime::parse_from_rfc2822(now).ok()?;
    Some((until - now).to_std().unwrap_or(Duration::ZERO))
}

fn is_bad_certificate(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<rustls::Error>();
    matches!(error, Some(rustls::Error::InvalidCertificate(_)))
}

fn is_connection_refused(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|it| it.kind() == io::ErrorKind::ConnectionRefused)
}

/// Returns the first cause of an error that has this type.
fn find_cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut behind = Some(error);
    while let Some(error) = behind {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        behind = error.source();
    }
    None
}

/// Searches all causes of an error. An error wrapped in an I/O error is not among its sources, and
/// TLS errors are wrapped twice.
fn has_cause(error: &(dyn Error + 'static), test: fn(&(dyn Error + 'static)) -> bool) -> bool {
    let wrapped = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    test(error)
        || wrapped.is_some_and(|it| has_cause(it, test))
        || error.source().is_some_and(|it| has_cause(it, test))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::HeaderMap;
    use serde_json::json;

    use super::{from_object, from_status, retry_after, sanitize};
    use crate::error::{LlmError, MAX_MESSAGE_CHARS};
    use crate::secret::Secret;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    fn status_message(status: u16, body: &str) -> String {
        let key = Secret::new("planted-key");
        from_status(status, &HeaderMap::new(), body.as_bytes(), Some(&key)).to_string()
    }

    #[test]
    fn the_reason_is_found_in_every_known_field() {
        for body in [
            r#"{"error": {"message": "No such model.", "type": "x"}}"#,
            r#"{"error": "No such model."}"#,
            r#"{"object": "error", "message": "No such model."}"#,
            r#"{"detail": "No such model."}"#,
            r#"{"error": null, "message": "No such model."}"#,
        ] {
            assert_eq!(
                status_message(404, body),
                "The provider does not know this model or address (404): No such model.",
                "{body}"
            );
        }
    }

    #[test]
    fn a_list_of_wrong_fields_is_read_without_their_values() {
        let list =
            r#"[{"loc": ["body", "reasoning_effort"], "msg": "Not permitted", "input": "secret"}]"#;
        for body in [
            format!(r#"{{"detail": {list}}}"#),
            format!(r#"{{"message": {list}}}"#),
            format!(r#"{{"message": {{"detail": {list}}}}}"#),
        ] {
            assert_eq!(
                status_message(422, &body),
                r#"The provider rejected the request (422): ["body","reasoning_effort"]: Not permitted"#,
            );
        }
    }

    #[test]
    fn an_error_page_is_left_out() {
        assert_eq!(
            status_message(502, "<html>Bad gateway</html>"),
            "The provider has an internal error (502)."
        );
        assert_eq!(
            status_message(500, ""),
            "The provider has an internal error (500)."
        );
    }

    #[test]
    fn an_error_message_never_contains_a_key() {
        let echo =
            r#"{"error": {"message": "Bad key planted-key or sk-abc or 'sk-def' or ab***yz."}}"#;

        assert_eq!(
            status_message(401, echo),
            "The provider did not accept the API key (401)."
        );
        assert_eq!(
            status_message(403, echo),
            "The provider does not allow this request (403): Bad key [key] or [key] or [key] or [key]"
        );
        let in_stream = from_object(
            &json!({ "error": "planted-key" }),
            Some(&Secret::new("planted-key")),
        );
        assert!(!in_stream.to_string().contains("planted"));
    }

    #[test]
    fn a_message_is_one_short_line() {
        let line = sanitize(&"long\n\u{1b}[31m word ".repeat(1_000), None);

        assert_eq!(line.chars().count(), MAX_MESSAGE_CHARS);
        assert!(!line.contains(char::is_control));
    }

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let date = [
            ("date", "Wed, 21 Oct 2015 07:28:00 GMT"),
            ("retry-after", "Wed, 21 Oct 2015 07:28:05 GMT"),
        ];

        assert_eq!(
            retry_after(&headers(&[("retry-after", "2")])),
            Some(Duration::from_secs(2))
        );
        assert_eq!(retry_after(&headers(&date)), Some(Duration::from_secs(5)));
        assert!(
            retry_after(&headers(&[("retry-after", "99999999999999999999")]))
                > Some(Duration::from_secs(9_999))
        );
        for nonsense in ["", "soon", "-5", "1.5e3", "Wed, 99 Oct 2015"] {
            assert_eq!(
                retry_after(&headers(&[("retry-after", nonsense)])),
                None,
                "{nonsense}"
            );
        }
    }

    #[test]
    fn a_context_overflow_is_distinguished_from_other_errors() {
        let overflow = |body: serde_json::Value| {
            let error = from_status(400, &HeaderMap::new(), body.to_string().as_bytes(), None);
            matches!(error, LlmError::ContextOverflow { .. })
        };

        for body in [
            json!({ "error": { "code": "context_length_exceeded", "message": "Too long." } }),
            json!({ "error": { "type": "exceed_context_size_error", "message": "x", "n_ctx": 4096 } }),
            json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum" } }),
            json!({ "object": "error", "message": "This model's maximum context length is 4096 tokens." }),
            json!({ "error": { "code": 400, "message": "The input token count (2000000) exceeds the maximum number of tokens allowed." } }),
            json!({ "error": "the request exceeds the available context size" }),
        ] {
            assert!(overflow(body.clone()), "{body}");
        }
        for body in [
            json!({ "error": { "message": "max_tokens is too large" } }),
            json!({ "error": { "code": "invalid_value", "message": "Unknown role." } }),
        ] {
            assert!(!overflow(body.clone()), "{body}");
        }
    }
}
