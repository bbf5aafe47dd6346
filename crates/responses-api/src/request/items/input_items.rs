//! Validates the input items of a request, and converts each to the form in which it is stored and
//! returned, for example with an id and a status.
//!
//! Unknown fields are kept unchanged, so an item stays a JSON document.

use serde_json::{Value, json};

use crate::object_ids;
use crate::request::items::item_view::{ItemContent, ItemView, MessageRole};
use crate::request::object_reader::ObjectReader;

/// The maximum number of items in one request.
pub(in crate::request) const MAX_ITEMS: usize = 2_000;

/// Reads the `input` of a request, which is present: a text, or a list of items.
pub(in crate::request) fn input(body: &ObjectReader) -> Vec<Value> {
    match body.get("input") {
        Some(Value::String(text)) => {
            body.require_text_limit("input", text);
            let content = json!([{ "type": "input_text", "text": text }]);
            let message = json!({ "type": "message", "role": "user", "content": content });
            vec![with_id_and_status(message, object_ids::MESSAGE)]
        }
        Some(Value::Array(items)) => {
            body.require(!items.is_empty(), "input", "at least one item");
            list(body, "input", items, MAX_ITEMS)
        }
        _ => {
            body.wrong_type("input", "a string or a list of items");
            Vec::new()
        }
    }
}

/// Reads at most `max_items` items in the field `name`.
pub(in crate::request) fn list(
    body: &ObjectReader,
    name: &str,
    items: &[Value],
    max_items: usize,
) -> Vec<Value> {
    if items.len() > max_items {
        body.wrong_value(name, &format!("at most {max_items} items"));
        return Vec::new();
    }
    let items = body.elements(name, items);
    items.map(|it| stored_form(&it)).collect()
}

fn stored_form(item: &ObjectReader) -> Value {
    let view = ItemView::read(item);
    let mut document = Value::Object(item.fields.clone());
    match view.content {
        ItemContent::Reference => return json!({ "type": "item_reference", "id": view.id }),
        ItemContent::Compaction { .. } => {
            if view.id.is_empty() {
                document["id"] = json!(object_ids::generate(object_ids::COMPACTION));
            }
            return document;
        }
        ItemContent::Message(message) => {
            document["type"] = json!("message");
            document["content"] = match document["content"].take() {
                Value::String(text) => json!([text_part(message.role, text)]),
                parts => parts,
            };
        }
        ItemContent::Reasoning(_) if document["summary"].is_null() => {
            document["summary"] = json!([])
        }
        ItemContent::Output(output) => name_call(&mut document, output.call_id),
        _ => {}
    }
    let kind = document["type"].as_str().unwrap_or_default();
    let prefix = object_ids::prefix_for_type(kind);
    with_id_and_status(document, prefix)
}

/// Returns the part for a message whose content is one text.
pub(in crate::request) fn text_part(role: MessageRole, text: String) -> Value {
    match role {
        MessageRole::Assistant => json!({
            "type": "output_text", "text": text, "annotations": [], "logprobs": [],
        }),
        _ => json!({ "type": "input_text", "text": text }),
    }
}

/// Moves the call's id to `call_id`, if it was in `id`.
fn name_call(document: &mut Value, call_id: &str) {
    if document["call_id"].is_null() {
        document["call_id"] = json!(call_id);
        if let Some(fields) = document.as_object_mut() {
            fields.shift_remove("id");
        }
    }
}

/// Adds an id and a status where the item has none.
pub(in crate::request) fn with_id_and_status(mut item: Value, prefix: &str) -> Value {
    if item["id"].is_null() {
        item["id"] = json!(object_ids::generate(prefix));
    }
    if item["status"].is_null() {
        item["status"] = json!("completed");
    }
    item
}
