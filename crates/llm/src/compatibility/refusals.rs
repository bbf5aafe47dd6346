//! What an endpoint or a model refuses although it accepts the request without it: images, fields, and
//! the order of roles. Found in the message of a refusal, because APIs have no common code for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::error::LlmError;

/// Fields that the server sends although the request would have the same meaning without them, and
/// that some endpoints reject. The limit of tokens has two names.
const FIELDS: &[&str] = &[
    "stream_options",
    "repeat_penalty",
    "repetition_penalty",
    "top_k",
    "top_a",
    "min_p",
    "typical_p",
    "max_tokens",
    "max_completion_tokens",
    "name",
];
/// Names of the limit of tokens. One of them is always sent: a reply must not be unlimited because of
/// a refusal.
const TOKEN_LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];
/// Parts of messages that reject a field, and not its value: `top_k must be at least 1`.
const UNKNOWN_FIELD: &[&str] = &[
    "unknown",
    "unrecognized",
    "unexpected",
    "unsupported",
    "not support",
    "not permitted",
    "not allowed",
    "extra field",
    "extra input",
    "extra_forbidden",
];
/// Parts of messages that reject the order of roles.
const ROLE_ORDER: &[&str] = &[
    "roles must alternate",
    "must alternate",
    "alternate user/assistant",
    "alternating user",
    "system message must be at the beginning",
    "system message must be the first",
    "only the first message can be system",
    "last message role",
    "role of the last message",
    "expected last role",
    "unexpected role",
    "system role not supported",
];

/// What is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusals {
    /// The model accepts no images.
    pub pictures: bool,
    /// The model's template requires alternating roles.
    pub role_order: bool,
    /// Fields that the endpoint rejects.
    pub fields: BTreeSet<String>,
}

impl Refusals {
    /// Returns whether nothing is refused.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what is refused according to others.
    pub fn extend(&mut self, others: &Self) {
        self.pictures |= others.pictures;
        self.role_order |= others.role_order;
        self.fields.extend(others.fields.iter().cloned());
    }

    /// Adds the field or the order of roles that an error refuses, if that was part of the body and is new.
    /// Returns whether something was added.
    pub fn learn(&mut self, error: &LlmError, body: &Value) -> bool {
        let LlmError::Status {
            status: 400 | 422,
            message,
            ..
        } = error
        else {
            return false;
        };
        let message = message.to_lowercase();
        let is_about_field = UNKNOWN_FIELD.iter().any(|it| message.contains(it));
        let field = FIELDS
            .iter()
            .filter(|it| is_about_field && self.may_leave_out(it))
            .find(|it| is_sent(body, it) && names(&message, it));
        if let Some(field) = field {
            return self.fields.insert((*field).to_owned());
        }
        let is_new = !self.role_order && ROLE_ORDER.iter().any(|it| message.contains(it));
        self.role_order |= is_new;
        is_new
    }

    /// Returns whether a request can be sent without a field, or with it under its other name.
    fn may_leave_out(&self, field: &str) -> bool {
        match TOKEN_LIMITS.contains(&field) {
            true => TOKEN_LIMITS.iter().all(|it| !self.fields.contains(*it)),
            false => !self.fields.contains(field),
        }
    }

    /// Removes the refused fields from a body. The limit of tokens is sent under its other name.
    pub fn remove_fields(&self, body: &mut Value) {
        let Some(fields) = body.as_object_mut() else {
            return;
        };
        let is_limit = |it: &&String| TOKEN_LIMITS.contains(&it.as_str());
        for name in self.fields.iter().filter(|it| !is_limit(it)) {
            fields.shift_remove(name);
        }
    }
}

/// Returns whether a body has a field; `name` is a field of messages.
fn is_sent(body: &Value, field: &str) -> bool {
    if field != "name" {
        return body.get(field).is_some();
    }
    let messages = body["messages"].as_array();
    messages.is_some_and(|all| all.iter().any(|it| it.get(field).is_some()))
}

/// Returns whether a message names a field as a whole word. The word "name" counts only as a path or in
/// quotes.
fn names(message: &str, field: &str) -> bool {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    message.match_indices(field).any(|(at, _)| {
        let (before, after) = (&message[..at], &message[at + field.len()..]);
        let is_whole = !before.ends_with(is_word) && !after.starts_with(is_word);
        is_whole && (field != "name" || before.ends_with(['.', '\'', '"', '`']))
    })
}

/// The refusals that a call has found. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct FoundRefusals(Arc<Mutex<Refusals>>);

impl FoundRefusals {
    /// Adds what a model refused of a request that it accepted without it.
    pub fn add(&self, refusals: &Refusals) {
        self.0.lock().extend(refusals);
    }

    /// Returns what has been refused so far.
    pub fn get(&self) -> Refusals {
        self.0.lock().clone()
    }
}

/// Always equal, so that a comparison of two requests ignores the refusals found.
impl PartialEq for FoundRefusals {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Refusals;
    use crate::error::LlmError;

    fn status(status: u16, message: &str) -> LlmError {
        LlmError::Status {
            status,
            message: message.to_owned(),
            retry_after: None,
        }
    }

    fn learned(message: &str, body: &Value) -> Refusals {
        let mut refusals = Refusals::default();
        let is_new = refusals.learn(&status(400, message), body);
        assert_eq!(is_new, !refusals.is_empty(), "{message}");
        refusals
    }

    fn field(message: &str, body: &Value) -> Option<String> {
        learned(message, body).fields.into_iter().next()
    }

    #[test]
    fn a_field_is_refused_if_it_was_sent_and_is_named() {
        let body = json!({"stream_options": {}, "top_k": 4, "max_tokens": 9, "messages": [{"name": "Ann"}]});
        for (message, expected) in [
            ("Unknown field: stream_options", Some("stream_options")),
            (
                r#"["body","top_k"]: Extra inputs are not permitted"#,
                Some("top_k"),
            ),
            (
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.",
                Some("max_tokens"),
            ),
            ("messages.0.name: extra fields not permitted", Some("name")),
            ("'name' is not supported", Some("name")),
            ("The model name is unknown", None),
            ("min_p is not supported", None),
            ("top_k must be at least 1", None),
            (
                "max_tokens is too large: this model supports at most 4096",
                None,
            ),
            ("stop_k and top_kk", None),
        ] {
            assert_eq!(field(message, &body).as_deref(), expected, "{message}");
        }
    }

    #[test]
    fn the_limit_of_tokens_is_never_left_out_under_both_names() {
        let mut refusals = Refusals::default();
        let refuse = |it: &str| status(400, &format!("Unsupported parameter: {it}"));

        assert!(refusals.learn(&refuse("max_tokens"), &json!({"max_tokens": 9})));
        let renamed = json!({"max_completion_tokens": 9});
        assert!(!refusals.learn(&refuse("max_completion_tokens"), &renamed));
    }

    #[test]
    fn only_a_rejected_request_teaches_something_and_only_once() {
        let body = json!({"top_k": 4});
        let mut refusals = Refusals::default();

        let message = "Unknown field: top_k";
        assert!(!refusals.learn(&status(500, message), &body));
        assert!(refusals.learn(&status(422, message), &body));
        assert!(!refusals.learn(&status(422, message), &body));
    }

    #[test]
    fn the_order_of_roles_is_refused_in_many_words() {
        for message in [
            "Conversation roles must alternate user/assistant/user/assistant/...",
            "System message must be at the beginning.",
            "Expected last role User or Tool but got assistant",
            "Unexpected role 'system' after role 'user'",
        ] {
            assert!(learned(message, &json!({})).role_order, "{message}");
        }
    }

    #[test]
    fn refused_fields_are_removed_but_the_limit_of_tokens_has_another_name() {
        let refusals = Refusals {
            fields: ["top_k", "max_tokens"].map(str::to_owned).into(),
            ..Refusals::default()
        };
        let mut body = json!({"top_k": 4, "max_completion_tokens": 9, "model": "m"});

        refusals.remove_fields(&mut body);

        assert_eq!(body, json!({"max_completion_tokens": 9, "model": "m"}));
    }
}
