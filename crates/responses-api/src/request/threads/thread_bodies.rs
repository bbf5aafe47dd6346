//! Parses and validates the bodies of requests to `/v1/threads`: a new thread, and changes of the
//! metadata of a thread or a message.

use serde_json::{Map, Value};

use crate::request::error::RequestError;
use crate::request::object_reader::ObjectReader;
use crate::request::threads::thread_messages::NewThreadMessage;
use crate::request::threads::{thread_messages, thread_tools};
use crate::request::{object_reader, parameters};

/// A new thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewThread {
    pub messages: Vec<NewThreadMessage>,
    /// Texts of the client.
    pub metadata: Map<String, Value>,
}

impl NewThread {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, RequestError> {
        object_reader::parse(body, Self::read)
    }

    /// Reads an object with the fields of a thread.
    pub(in crate::request) fn read(thread: &ObjectReader) -> Self {
        thread.require_known(&["messages", "metadata", "tool_resources"]);
        let messages = thread_messages::list(thread, "messages");
        thread_tools::reject_resources(thread);
        Self {
            messages,
            metadata: parameters::metadata(thread),
        }
    }
}

/// Parses a change of a thread, and returns its new metadata. `None` keeps the present one.
///
/// # Errors
/// Returns the first invalid field.
pub fn parse_thread_change(
    body: &Map<String, Value>,
) -> Result<Option<Map<String, Value>>, RequestError> {
    object_reader::parse(body, |body| {
        body.require_known(&["metadata", "tool_resources"]);
        thread_tools::reject_resources(body);
        metadata_change(body)
    })
}

/// Parses a change of a message, and returns its new metadata. `None` keeps the present one.
///
/// # Errors
/// Returns the first invalid field.
pub fn parse_message_change(
    body: &Map<String, Value>,
) -> Result<Option<Map<String, Value>>, RequestError> {
    object_reader::parse(body, |body| {
        body.require_known(&["metadata"]);
        metadata_change(body)
    })
}

/// Returns the new metadata, or `None` to keep the present one.
pub(in crate::request) fn metadata_change(body: &ObjectReader) -> Option<Map<String, Value>> {
    body.get("metadata").map(|_| parameters::metadata(body))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{NewThread, parse_message_change, parse_thread_change};

    #[test]
    fn a_thread_may_begin_with_messages() {
        let body = json!({
            "messages": [{ "role": "user", "content": "Hi." }], "metadata": { "a": "b" },
        });

        let thread = NewThread::parse(body.as_object().unwrap()).unwrap();

        assert_eq!(thread.messages.len(), 1);
        assert_eq!(json!(thread.metadata), json!({ "a": "b" }));
        let empty = NewThread::parse(json!({}).as_object().unwrap());
        assert_eq!(empty.unwrap(), NewThread::default());
    }

    #[test]
    fn an_invalid_thread_is_rejected_with_the_path_of_its_field() {
        let message = json!({ "role": "user", "content": "x" });
        for (body, code, param) in [
            (json!({ "message": [] }), "unknown_parameter", "message"),
            (json!({ "messages": {} }), "invalid_type", "messages"),
            (
                json!({ "messages": [message, {}] }),
                "missing_required_parameter",
                "messages[1].role",
            ),
            (
                json!({ "messages": vec![message.clone(); 2_001] }),
                "invalid_value",
                "messages",
            ),
            (
                json!({ "tool_resources": { "code_interpreter": {} } }),
                "unsupported_tool",
                "tool_resources",
            ),
        ] {
            let error = NewThread::parse(body.as_object().unwrap()).unwrap_err();

            assert_eq!((error.code, error.param.as_str()), (code, param));
        }
    }

    #[test]
    fn a_change_keeps_metadata_that_it_does_not_contain() {
        let parse = [parse_thread_change, parse_message_change];
        for parse in parse {
            let change = |body: serde_json::Value| parse(body.as_object().unwrap());

            assert_eq!(change(json!({})).unwrap(), None);
            assert_eq!(change(json!({ "metadata": null })).unwrap(), None);
            let replaced = change(json!({ "metadata": { "a": "b" } })).unwrap();
            assert_eq!(json!(replaced), json!({ "a": "b" }));
            let unknown = change(json!({ "content": "x" })).unwrap_err();
            assert_eq!(unknown.code, "unknown_parameter");
        }
    }
}
