//! Parses messages of threads. Their texts and pictures become parts of input items of a response.

use serde_json::{Map, Value, json};

use crate::request::chat::chat_parts;
use crate::request::error::RequestError;
use crate::request::items::input_items::MAX_ITEMS;
use crate::request::items::item_view::MessageRole;
use crate::request::items::{content, input_items};
use crate::request::object_reader::ObjectReader;
use crate::request::threads::thread_tools;
use crate::request::{object_reader, parameters};
use crate::threads::thread_status::ThreadMessageRole;

/// The fields of a message; `attachments` must be empty.
const KNOWN_FIELDS: [&str; 4] = ["attachments", "content", "metadata", "role"];

/// The field that hides an additional message of a run from lists and from later runs.
const HIDDEN_FIELD: &str = "hidden";

/// A message of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct NewThreadMessage {
    pub role: ThreadMessageRole,
    /// Parts as in the items of responses.
    pub content: Vec<Value>,
    /// Texts of the client.
    pub metadata: Map<String, Value>,
    /// Only the run with which it was sent sees it.
    pub is_hidden: bool,
}

impl NewThreadMessage {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, RequestError> {
        object_reader::parse(body, |body| {
            body.require_known(&KNOWN_FIELDS);
            Self::read(body)
        })
    }

    fn read(message: &ObjectReader) -> Self {
        let role = role(message);
        let content = content(message, role);
        thread_tools::reject_attachments(message);
        Self {
            role,
            content,
            metadata: parameters::metadata(message),
            is_hidden: false,
        }
    }
}

/// Reads a list of messages in the field `name`.
pub(in crate::request) fn list(body: &ObjectReader, name: &str) -> Vec<NewThreadMessage> {
    let read = |message: ObjectReader| {
        message.require_known(&KNOWN_FIELDS);
        NewThreadMessage::read(&message)
    };
    elements(body, name).into_iter().map(read).collect()
}

/// Reads the additional messages of a run, which may be hidden.
pub fn additional(body: &ObjectReader, name: &str) -> Vec<NewThreadMessage> {
    let known = [&KNOWN_FIELDS[..], &[HIDDEN_FIELD]].concat();
    let read = |message: ObjectReader| {
        message.require_known(&known);
        NewThreadMessage {
            is_hidden: message.flag(HIDDEN_FIELD).unwrap_or(false),
            ..NewThreadMessage::read(&message)
        }
    };
    elements(body, name).into_iter().map(read).collect()
}

fn elements<'a>(body: &ObjectReader<'a>, name: &str) -> Vec<ObjectReader<'a>> {
    let given = body.list(name).unwrap_or_default();
    if given.len() > MAX_ITEMS {
        body.wrong_value(name, &format!("at most {MAX_ITEMS} messages"));
        return Vec::new();
    }
    body.elements(name, given).collect()
}

fn role(message: &ObjectReader) -> ThreadMessageRole {
    if message.get("role").is_none() {
        message.missing("role", "A message requires `role`.");
    }
    message.word("role").unwrap_or(ThreadMessageRole::User)
}

/// Reads `content`: a text, or a list of parts.
fn content(message: &ObjectReader, role: ThreadMessageRole) -> Vec<Value> {
    let of_item = match role {
        ThreadMessageRole::User => MessageRole::User,
        ThreadMessageRole::Assistant => MessageRole::Assistant,
    };
    match message.get("content") {
        Some(Value::String(text)) => {
            message.require_text_limit("content", text);
            vec![input_items::text_part(of_item, text.clone())]
        }
        Some(Value::Array(parts)) => {
            message.require(!parts.is_empty(), "content", "at least one part");
            let parts = message.elements("content", parts);
            parts.map(|it| part(&it, of_item)).collect()
        }
        Some(_) => {
            message.wrong_type("content", "a string or a list of parts");
            Vec::new()
        }
        None => {
            message.missing("content", "A message requires `content`.");
            Vec::new()
        }
    }
}

fn part(part: &ObjectReader, role: MessageRole) -> Value {
    match part.text("type") {
        Some("text") => {
            let text = content::part_text(part, "text").to_owned();
            input_items::text_part(role, text)
        }
        Some("image_url") if role == MessageRole::User => picture(part),
        // Refers to a file that was uploaded before, which this server does not support.
        Some("image_file") => {
            part.unsupported("type");
            Value::Null
        }
        _ => {
            let expected = match role {
                MessageRole::User => "text or image_url",
                _ => "text",
            };
            part.wrong_value("type", expected);
            Value::Null
        }
    }
}

/// Reads a picture, and keeps its `detail` for the answer.
fn picture(part: &ObjectReader) -> Value {
    let mut picture = chat_parts::picture(part);
    let detail = part.object("image_url").and_then(|it| it.text("detail"));
    if let Some(detail) = detail {
        picture["detail"] = json!(detail);
    }
    picture
}

#[cfg(test)]
#[path = "thread_messages_tests.rs"]
mod tests;
