//! Converts the content of a chat message to the parts of an input item, one part for each part.

use serde_json::{Value, json};

use crate::request::items::attachment::FileKind;
use crate::request::items::item_view::MessageRole;
use crate::request::items::{attachment, content, input_items};
use crate::request::object_reader::ObjectReader;

/// The longest name of a file, in characters.
const MAX_FILE_NAME_CHARS: usize = 255;

/// Reads `content`: a text, or a list of parts. Returns `None` if it is absent.
pub(super) fn content(message: &ObjectReader, role: MessageRole) -> Option<Vec<Value>> {
    match message.get("content")? {
        Value::String(text) => {
            message.require_text_limit("content", text);
            Some(vec![input_items::text_part(role, text.clone())])
        }
        Value::Array(parts) => {
            message.require(!parts.is_empty(), "content", "at least one part");
            let parts = message.elements("content", parts);
            Some(parts.map(|it| part(&it, role)).collect())
        }
        _ => {
            message.wrong_type("content", "a string or a list of parts");
            None
        }
    }
}

/// Reads the output of a tool: a text, or a list of text parts.
pub(super) fn output(message: &ObjectReader) -> Value {
    match message.get("content") {
        Some(Value::String(text)) => {
            message.require_text_limit("content", text);
            json!(text)
        }
        Some(Value::Array(parts)) => {
            let parts = message.elements("content", parts);
            parts.map(|it| output_part(&it)).collect()
        }
        Some(_) => {
            message.wrong_type("content", "a string or a list of parts");
            json!("")
        }
        None => {
            message.missing("content", "A message of a tool requires `content`.");
            json!("")
        }
    }
}

fn output_part(part: &ObjectReader) -> Value {
    match part.text("type") {
        Some("text") => {}
        Some("image_url" | "file" | "input_audio") => part.unsupported("type"),
        _ => part.wrong_value("type", "text"),
    }
    json!({ "type": "input_text", "text": content::part_text(part, "text") })
}

fn part(part: &ObjectReader, role: MessageRole) -> Value {
    match (part.text("type"), role) {
        (Some("text"), _) => {
            let text = content::part_text(part, "text").to_owned();
            input_items::text_part(role, text)
        }
        (Some("refusal"), MessageRole::Assistant) => {
            json!({ "type": "refusal", "refusal": content::part_text(part, "refusal") })
        }
        (Some("image_url"), MessageRole::User) => picture(part),
        (Some("file"), MessageRole::User) => file(part),
        (Some("input_audio"), MessageRole::User) => {
            part.unsupported("type");
            Value::Null
        }
        (_, role) => {
            let expected = match role {
                MessageRole::User => "text, image_url or file",
                MessageRole::Assistant => "text or refusal",
                MessageRole::System | MessageRole::Developer => "text",
            };
            part.wrong_value("type", expected);
            Value::Null
        }
    }
}

/// Reads a part with a picture, and returns it as a part of an input item.
pub(in crate::request) fn picture(part: &ObjectReader) -> Value {
    let Some(picture) = part.object("image_url") else {
        part.missing("image_url", "A picture requires an object with its URL.");
        return Value::Null;
    };
    let url = content::part_text(&picture, "url");
    if !attachment::is_remote(url) && !attachment::is_inline(url, FileKind::Picture) {
        let message = "Must be a PNG, JPEG, WebP or GIF of at most 20 MiB in a data URL, or an \
            http or https URL.";
        picture.fail("invalid_image", "url", message);
    }
    picture.text("detail");
    json!({ "type": "input_image", "image_url": url })
}

fn file(part: &ObjectReader) -> Value {
    let Some(file) = part.object("file") else {
        part.missing("file", "A file requires an object with its data.");
        return Value::Null;
    };
    if file.get("file_id").is_some() {
        file.unsupported("file_id");
    }
    let name = file.text("filename");
    let is_short = name.is_none_or(|it| it.chars().count() <= MAX_FILE_NAME_CHARS);
    file.require(is_short, "filename", "at most 255 characters");
    let data = file.text("file_data").unwrap_or_default();
    let is_valid = attachment::is_inline(data, FileKind::Document);
    file.require(is_valid, "file_data", attachment::DOCUMENT_RULE);
    let mut item = json!({ "type": "input_file", "file_data": data });
    if let Some(name) = name {
        item["filename"] = json!(name);
    }
    item
}
