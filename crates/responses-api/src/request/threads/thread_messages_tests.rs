//! Tests how messages of threads are parsed.

use serde_json::{Value, json};

use super::{KNOWN_FIELDS, NewThreadMessage};
use crate::request::error::RequestError;
use crate::request::object_reader;
use crate::request::threads::thread_messages;
use crate::schemas::request_values;
use crate::schemas::thread_bodies::NewThreadMessageBody;
use crate::threads::thread_status::ThreadMessageRole;

/// The shortest data URL with the first bytes of a GIF.
const GIF: &str = "data:image/gif;base64,R0lGODdh";

fn parse(body: &Value) -> Result<NewThreadMessage, RequestError> {
    NewThreadMessage::parse(body.as_object().unwrap())
}

#[test]
fn texts_and_pictures_become_parts_of_items() {
    let picture = json!({ "type": "image_url", "image_url": { "url": GIF, "detail": "low" } });
    let content = json!([{ "type": "text", "text": "Look." }, picture]);
    let metadata = json!({ "a": "b" });

    let message = parse(&json!({ "role": "user", "content": content, "metadata": metadata }));

    let message = message.unwrap();
    let expected = json!([
        { "type": "input_text", "text": "Look." },
        { "type": "input_image", "image_url": GIF, "detail": "low" },
    ]);
    assert_eq!(json!(message.content), expected);
    assert_eq!(json!(message.metadata), metadata);
    assert!(!message.is_hidden);
}

#[test]
fn a_text_of_the_assistant_is_an_output() {
    let message = parse(&json!({ "role": "assistant", "content": "Hi." })).unwrap();

    assert_eq!(message.role, ThreadMessageRole::Assistant);
    assert_eq!(message.content[0]["type"], "output_text");
    assert_eq!(message.content[0]["text"], "Hi.");
}

#[test]
fn only_an_additional_message_can_be_hidden() {
    let message = json!({ "role": "user", "content": "Psst.", "hidden": true });
    let body = json!({ "more": [message] });
    let body = body.as_object().unwrap();

    let hidden = object_reader::parse(body, |it| thread_messages::additional(it, "more"));
    let listed = object_reader::parse(body, |it| thread_messages::list(it, "more"));

    assert!(hidden.unwrap()[0].is_hidden);
    assert_eq!(listed.unwrap_err().param, "more[0].hidden");
    assert_eq!(parse(&message).unwrap_err().code, "unknown_parameter");
}

#[test]
fn an_invalid_message_is_rejected_with_the_path_of_its_field() {
    let user = |content: Value| json!({ "role": "user", "content": content });
    let url = |url: &str| json!([{ "type": "image_url", "image_url": { "url": url } }]);
    let file = json!({ "type": "image_file", "image_file": { "file_id": "f" } });
    let search = json!({ "file_id": "f", "tools": [{ "type": "file_search" }] });
    for (message, code, param) in [
        (
            json!({ "content": "x" }),
            "missing_required_parameter",
            "role",
        ),
        (
            json!({ "role": "user" }),
            "missing_required_parameter",
            "content",
        ),
        (
            json!({ "role": "system", "content": "x" }),
            "invalid_value",
            "role",
        ),
        (user(json!(1)), "invalid_type", "content"),
        (user(json!([])), "invalid_value", "content"),
        (user(json!([1])), "invalid_type", "content[0]"),
        (
            user(json!([{ "type": "text" }])),
            "invalid_type",
            "content[0].text",
        ),
        (
            user(json!([file])),
            "unsupported_parameter",
            "content[0].type",
        ),
        (
            user(url("data:x")),
            "invalid_image",
            "content[0].image_url.url",
        ),
        (
            json!({ "role": "assistant", "content": url(GIF) }),
            "invalid_value",
            "content[0].type",
        ),
        (
            json!({ "role": "user", "content": "x", "attachments": [search] }),
            "unsupported_tool",
            "attachments",
        ),
    ] {
        let error = parse(&message).unwrap_err();

        assert_eq!(
            (error.code, error.param.as_str()),
            (code, param),
            "{message}"
        );
    }
    let empty = json!({ "role": "user", "content": "x", "attachments": [] });
    assert!(parse(&empty).is_ok());
}

#[test]
fn the_message_names_the_tool_of_an_attachment() {
    let search = json!({ "file_id": "f", "tools": [{ "type": "file_search" }] });
    let body = json!({ "role": "user", "content": "x", "attachments": [search] });

    let message = parse(&body).unwrap_err().message;

    assert!(message.contains("'file_search'"), "{message}");
}

#[test]
fn the_api_document_has_every_field() {
    let fields = request_values::field_names::<NewThreadMessageBody>();

    assert_eq!(fields, KNOWN_FIELDS);
}
