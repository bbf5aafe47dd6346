//! The groups of calls: which events tell of them, between the `added` and the `done` of their item.
//! Pure.

use crate::responses::happening::Cut;
use crate::responses::names;
use crate::responses::open_calls::RECEIPT;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

/// A call that a client runs, or a receipt of ours, as the fold is given it: without id and status.
pub type Call = Value;

/// The item of a call, with an id and a state.
pub fn item(call: &Call, status: &str) -> Value {
    let kind = call["type"].as_str().unwrap_or_default();
    let mut item = Map::new();
    item.insert("id".to_owned(), json!(names::mint(names::prefix(kind))));
    item.insert("type".to_owned(), json!(kind));
    item.insert("status".to_owned(), json!(status));
    for (name, value) in call.as_object().into_iter().flatten() {
        item.insert(name.clone(), value.clone());
    }
    Value::Object(item)
}

/// The item as it is before anything of it was told. Where no event tells of its arguments, it has
/// them from the beginning.
pub fn begun(item: &Value) -> Value {
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    if item["type"] == "mcp_list_tools" {
        begun["tools"] = json!([]);
    }
    match item["type"].as_str() {
        Some("function_call" | "mcp_call") => begun["arguments"] = json!(""),
        Some("custom_tool_call") => begun["input"] = json!(""),
        _ => {}
    }
    begun
}

impl Cut {
    /// The state of the item.
    pub fn status(self) -> &'static str {
        match self {
            Self::Whole => "completed",
            Self::Short => "incomplete",
        }
    }
}

/// What is told of a client's call between the beginning of its item and the end.
pub fn body(item: &Value, index: usize) -> Vec<Value> {
    let (event, field) = match item["type"].as_str() {
        Some("mcp_list_tools") => return list_body(item, index),
        Some("mcp_call") => ("response.mcp_call_arguments", "arguments"),
        Some("function_call") => ("response.function_call_arguments", "arguments"),
        Some("custom_tool_call") => ("response.custom_tool_call_input", "input"),
        _ => return Vec::new(),
    };
    let about = |kind: &str| {
        json!({
            "type": format!("{event}.{kind}"), "item_id": item["id"], "output_index": index,
        })
    };
    let mut delta = about("delta");
    delta["delta"] = item[field].clone();
    let mut done = about("done");
    done[field] = item[field].clone();
    if item["type"] == "function_call" {
        done["name"] = item["name"].clone();
    }
    let mut all = Vec::new();
    if item["type"] == "mcp_call" {
        all.push(state(item, index, "in_progress"));
    }
    if item[field] != "" {
        all.push(delta);
    }
    all.push(done);
    all
}

fn list_body(item: &Value, index: usize) -> Vec<Value> {
    let end = if item["error"].is_null() {
        "completed"
    } else {
        "failed"
    };
    vec![state(item, index, "in_progress"), state(item, index, end)]
}

/// Where something of a server elsewhere stands.
fn state(item: &Value, index: usize, word: &str) -> Value {
    let kind = item["type"].as_str().unwrap_or_default();
    json!({
        "type": format!("response.{kind}.{word}"), "item_id": item["id"], "output_index": index,
    })
}

/// What is told of a tool that is over, before the end of its item.
pub fn outcome(item: &Value, index: usize) -> Option<Value> {
    if item["type"] != "mcp_call" {
        return None;
    }
    let is_done = item["output"].is_string() && item["error"].is_null();
    Some(state(
        item,
        index,
        if is_done { "completed" } else { "failed" },
    ))
}

/// A tool of ours tells how far it is.
pub fn progress(item: &Value, index: usize, message: &str) -> Value {
    json!({
        "type": "troupe:tool.progress", "item_id": item["id"], "output_index": index,
        "message": message,
    })
}

/// Whether an item tells of a tool that we ran, or had run.
pub fn is_receipt(item: &Value) -> bool {
    item["type"]
        .as_str()
        .is_some_and(|it| it.starts_with(RECEIPT) || it == "mcp_call")
}

/// Whether an item ends what a model has to say: a message, or a call that a client answers.
pub fn is_answer(item: &Value) -> bool {
    item["type"].as_str().is_some_and(|it| {
        matches!(
            it,
            "message"
                | "function_call"
                | "custom_tool_call"
                | "local_shell_call"
                | "mcp_approval_request"
        )
    })
}
