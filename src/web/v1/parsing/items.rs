//! Input items: validates each one and converts it to the form that is stored and returned.
//!
//! Unknown fields are kept unchanged.

use responses_api::object_ids;
use serde_json::{Map, Value, json};

use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::fields::{Fields, nested_in, unsupported, wrong_type, wrong_value};
use crate::web::v1::parsing::{attachments, call_items};

/// The maximum number of items in one request.
pub const MAX_ITEMS: usize = 2_000;

const MAX_TEXT_BYTES: usize = 10 * 1024 * 1024;
const MAX_ID_CHARS: usize = 64;
const MAX_CALL_ID_CHARS: usize = 128;

/// Items of tools that are not supported.
const UNSUPPORTED_TOOL_ITEMS: [&str; 2] = ["computer_call", "computer_call_output"];

/// Parses the `input` of a request: a text, or a list of items.
///
/// # Errors
/// Returns 400 with the path of the invalid field.
pub fn input(value: &Value) -> V1Result<Vec<Value>> {
    match value {
        Value::String(text) => {
            require_text_limit("input", text)?;
            let content = json!([{ "type": "input_text", "text": text }]);
            let message = json!({ "type": "message", "role": "user", "content": content });
            Ok(vec![with_id_and_status(message, object_ids::MESSAGE)])
        }
        Value::Array(items) if items.is_empty() => Err(wrong_value("input", "at least one item")),
        Value::Array(items) => list("input", items, MAX_ITEMS),
        _ => Err(wrong_type("input", "a string or a list of items")),
    }
}

/// Parses a list of at most `max_items` items in the field `name`.
///
/// # Errors
/// Returns 400 with the path of the invalid field.
pub fn list(name: &str, items: &[Value], max_items: usize) -> V1Result<Vec<Value>> {
    if items.len() > max_items {
        return Err(wrong_value(name, &format!("at most {max_items} items")));
    }
    let each = items.iter().enumerate();
    each.map(|(at, it)| item(&format!("{name}[{at}]"), it))
        .collect()
}

fn item(at: &str, value: &Value) -> V1Result<Value> {
    let fields = value
        .as_object()
        .ok_or_else(|| wrong_type(at, "an object"))?;
    require_short_ids(at, fields)?;
    let kind = match fields.get("type").filter(|it| !it.is_null()) {
        Some(kind) => kind
            .as_str()
            .ok_or_else(|| wrong_type(&format!("{at}.type"), "a string"))?,
        None if fields.contains_key("role") => "message",
        None if fields.contains_key("id") => "item_reference",
        None => "",
    };
    match kind {
        "message" => message(at, fields),
        "reasoning" => reasoning(at, fields),
        "item_reference" if fields.get("id").is_some_and(Value::is_string) => {
            Ok(json!({ "type": "item_reference", "id": fields["id"] }))
        }
        "item_reference" => Err(wrong_type(&format!("{at}.id"), "a string")),
        "compaction" => compaction(at, fields),
        kind if UNSUPPORTED_TOOL_ITEMS.contains(&kind) => {
            let message = "Items of this type are not supported.";
            let param = format!("{at}.type");
            Err(V1Error::invalid("unsupported_tool", &param, message))
        }
        _ => match call_items::parse(at, kind, fields)? {
            Some(item) => Ok(with_id_and_status(item, object_ids::prefix_for_type(kind))),
            None => Err(wrong_value(&format!("{at}.type"), "the type of an item")),
        },
    }
}

/// Ids are stored in columns of limited length.
fn require_short_ids(at: &str, fields: &Map<String, Value>) -> V1Result<()> {
    if let Some(id) = fields.get("id").filter(|it| !it.is_null()) {
        let param = format!("{at}.id");
        let id = id.as_str().ok_or_else(|| wrong_type(&param, "a string"))?;
        if id.is_empty() || id.chars().count() > MAX_ID_CHARS {
            return Err(wrong_value(
                &param,
                "at least one and at most 64 characters",
            ));
        }
    }
    if let Some(id) = fields.get("call_id").filter(|it| !it.is_null()) {
        let param = format!("{at}.call_id");
        let id = id.as_str().ok_or_else(|| wrong_type(&param, "a string"))?;
        if id.chars().count() > MAX_CALL_ID_CHARS {
            return Err(wrong_value(&param, "at most 128 characters"));
        }
    }
    let known = ["in_progress", "completed", "incomplete"];
    match fields.get("status").filter(|it| !it.is_null()) {
        Some(status) if !status.as_str().is_some_and(|it| known.contains(&it)) => {
            let takes = "in_progress, completed or incomplete";
            Err(wrong_value(&format!("{at}.status"), takes))
        }
        _ => Ok(()),
    }
}

fn message(at: &str, fields: &Map<String, Value>) -> V1Result<Value> {
    let param = format!("{at}.role");
    let role = fields.get("role").and_then(Value::as_str);
    let role = role.filter(|it| ["user", "system", "developer", "assistant"].contains(it));
    let role = role.ok_or_else(|| wrong_value(&param, "user, system, developer or assistant"))?;
    let content = content(&format!("{at}.content"), role, fields.get("content"))?;
    let mut item = Value::Object(fields.clone());
    item["type"] = json!("message");
    item["content"] = content;
    Ok(with_id_and_status(item, object_ids::MESSAGE))
}

fn content(at: &str, role: &str, value: Option<&Value>) -> V1Result<Value> {
    match value {
        Some(Value::String(text)) => {
            require_text_limit(at, text)?;
            Ok(json!([match role {
                "assistant" => json!({
                    "type": "output_text", "text": text, "annotations": [], "logprobs": [],
                }),
                _ => json!({ "type": "input_text", "text": text }),
            }]))
        }
        Some(Value::Array(parts)) => {
            for (n, value) in parts.iter().enumerate() {
                part(&format!("{at}[{n}]"), value)?;
            }
            Ok(json!(parts))
        }
        Some(_) => Err(wrong_type(at, "a string or a list of parts")),
        None => {
            let message = "A message requires `content`.";
            Err(V1Error::invalid("missing_required_parameter", at, message))
        }
    }
}

fn part(at: &str, value: &Value) -> V1Result<()> {
    let fields = value
        .as_object()
        .ok_or_else(|| wrong_type(at, "an object"))?;
    let field = match fields.get("type").and_then(Value::as_str) {
        Some("output_text") => {
            let given = Fields(fields);
            for list in ["annotations", "logprobs"] {
                given.objects(list).map_err(|it| nested_in(at, it))?;
            }
            "text"
        }
        Some("input_text" | "text") => "text",
        Some("refusal") => "refusal",
        Some("input_image") => return attachments::check_picture(at, fields),
        Some("input_file") => return attachments::check_document(at, fields),
        Some("input_video" | "input_audio") => {
            return Err(unsupported(&format!("{at}.type")));
        }
        _ => return Err(wrong_value(&format!("{at}.type"), "the type of a part")),
    };
    let param = format!("{at}.{field}");
    let text = fields.get(field).and_then(Value::as_str);
    require_text_limit(&param, text.ok_or_else(|| wrong_type(&param, "a string"))?)
}

fn reasoning(at: &str, fields: &Map<String, Value>) -> V1Result<Value> {
    let given = Fields(fields);
    for (list, kind) in [("summary", "summary_text"), ("content", "reasoning_text")] {
        let parts = given.objects(list).map_err(|it| nested_in(at, it))?;
        for (n, part) in parts.into_iter().enumerate() {
            reasoning_part(&format!("{at}.{list}[{n}]"), part, kind)?;
        }
    }
    let sealed = given.text("encrypted_content");
    sealed.map_err(|it| nested_in(at, it))?;
    let mut item = Value::Object(fields.clone());
    if item["summary"].is_null() {
        item["summary"] = json!([]);
    }
    Ok(with_id_and_status(item, object_ids::REASONING))
}

fn reasoning_part(at: &str, part: &Map<String, Value>, kind: &str) -> V1Result<()> {
    if part.get("type").and_then(Value::as_str) != Some(kind) {
        return Err(wrong_value(&format!("{at}.type"), kind));
    }
    let param = format!("{at}.text");
    let text = part.get("text").and_then(Value::as_str);
    require_text_limit(&param, text.ok_or_else(|| wrong_type(&param, "a string"))?)
}

/// Whether it can be decrypted is checked later, when the caller is known.
fn compaction(at: &str, fields: &Map<String, Value>) -> V1Result<Value> {
    let param = format!("{at}.encrypted_content");
    let sealed = fields.get("encrypted_content").and_then(Value::as_str);
    require_text_limit(
        &param,
        sealed.ok_or_else(|| wrong_type(&param, "a string"))?,
    )?;
    let mut item = Value::Object(fields.clone());
    if item["id"].is_null() {
        item["id"] = json!(object_ids::generate(object_ids::COMPACTION));
    }
    Ok(item)
}

fn require_text_limit(param: &str, text: &str) -> V1Result<()> {
    match text.len() <= MAX_TEXT_BYTES {
        true => Ok(()),
        false => Err(wrong_value(param, "at most 10 MiB of text")),
    }
}

/// Adds an id and a status where the item has none.
fn with_id_and_status(mut item: Value, prefix: &str) -> Value {
    if item["id"].is_null() {
        item["id"] = json!(object_ids::generate(prefix));
    }
    if item["status"].is_null() {
        item["status"] = json!("completed");
    }
    item
}
