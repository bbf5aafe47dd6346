//! Builds the stream events of tool call items, between `output_item.added` and `output_item.done`.
//! Pure.

use serde_json::{Map, Value, json};

use crate::fold::engine_event::Completeness;
use crate::object_ids;
use crate::pending_tool_calls::SERVER_TOOL_PREFIX;

/// A client's call or a record of a server-side call, without id and status.
pub type CallItem = Value;

/// Returns the item of a call, with a new id and this status.
pub fn item(call: &CallItem, status: &str) -> Value {
    let kind = call["type"].as_str().unwrap_or_default();
    let mut item = Map::new();
    item.insert(
        "id".to_owned(),
        json!(object_ids::generate(object_ids::prefix_for_type(kind))),
    );
    item.insert("type".to_owned(), json!(kind));
    item.insert("status".to_owned(), json!(status));
    for (name, value) in call.as_object().into_iter().flatten() {
        item.insert(name.clone(), value.clone());
    }
    Value::Object(item)
}

/// Returns the item for its `added` event. Arguments and tools that later events report are empty;
/// others are complete from the start.
pub fn initial_item(item: &Value) -> Value {
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

impl Completeness {
    /// Returns the status of the item.
    pub fn status(self) -> &'static str {
        match self {
            Self::Complete => "completed",
            Self::Truncated => "incomplete",
        }
    }
}

/// Returns the events that report the content of a call item.
pub fn body_events(item: &Value, index: usize) -> Vec<Value> {
    let (event, field) = match item["type"].as_str() {
        Some("mcp_list_tools") => return list_events(item, index),
        Some("mcp_call") => ("response.mcp_call_arguments", "arguments"),
        Some("function_call") => ("response.function_call_arguments", "arguments"),
        Some("custom_tool_call") => ("response.custom_tool_call_input", "input"),
        _ => return Vec::new(),
    };
    let event_of = |kind: &str| {
        json!({
            "type": format!("{event}.{kind}"), "item_id": item["id"], "output_index": index,
        })
    };
    let mut delta = event_of("delta");
    delta["delta"] = item[field].clone();
    let mut done = event_of("done");
    done[field] = item[field].clone();
    if item["type"] == "function_call" {
        done["name"] = item["name"].clone();
    }
    let mut all = Vec::new();
    if item["type"] == "mcp_call" {
        all.push(state_event(item, index, "in_progress"));
    }
    if item[field] != "" {
        all.push(delta);
    }
    all.push(done);
    all
}

fn list_events(item: &Value, index: usize) -> Vec<Value> {
    let end = if item["error"].is_null() {
        "completed"
    } else {
        "failed"
    };
    vec![
        state_event(item, index, "in_progress"),
        state_event(item, index, end),
    ]
}

/// Returns an event for the state of an MCP item.
fn state_event(item: &Value, index: usize, state: &str) -> Value {
    let kind = item["type"].as_str().unwrap_or_default();
    json!({
        "type": format!("response.{kind}.{state}"), "item_id": item["id"], "output_index": index,
    })
}

/// Returns the event that reports the result of an MCP call, before its `done` event.
pub fn outcome_event(item: &Value, index: usize) -> Option<Value> {
    if item["type"] != "mcp_call" {
        return None;
    }
    let is_done = item["output"].is_string() && item["error"].is_null();
    Some(state_event(
        item,
        index,
        if is_done { "completed" } else { "failed" },
    ))
}

/// Returns the progress event of a server-side tool.
pub fn progress_event(item: &Value, index: usize, message: &str) -> Value {
    json!({
        "type": "troupe:tool.progress", "item_id": item["id"], "output_index": index,
        "message": message,
    })
}

/// Returns whether an item records a tool call that ran on our side or on an MCP server.
pub fn is_server_tool_item(item: &Value) -> bool {
    item["type"]
        .as_str()
        .is_some_and(|it| it.starts_with(SERVER_TOOL_PREFIX) || it == "mcp_call")
}

/// Returns whether an item completes an answer: a message, or a call that the client answers.
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
