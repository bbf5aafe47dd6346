//! Converts the messages of a chat completion to input items: an assistant message can become several
//! items (reasoning, message, calls), any other message becomes one.

use serde_json::{Value, json};

use crate::object_ids;
use crate::request::chat::chat_parts;
use crate::request::items::input_items;
use crate::request::items::input_items::MAX_ITEMS;
use crate::request::items::item_view::MessageRole;
use crate::request::object_reader::ObjectReader;
use crate::request::tools::tool_names::{NAME_RULE, is_name};

const MAX_CALL_ID_CHARS: usize = 128;

/// The items so far.
#[derive(Default)]
struct ChatItems {
    items: Vec<Value>,
    /// The position of the message of each item.
    message_positions: Vec<usize>,
    /// The position of the message that is being read.
    at: usize,
    /// The id that was generated for the last call in the deprecated field `function_call`, which has none.
    deprecated_call: Option<String>,
}

/// Reads `messages`, and returns the items and, for each item, the position of its message.
pub(super) fn messages(body: &ObjectReader) -> (Vec<Value>, Vec<usize>) {
    let given = body.list("messages");
    if body.get("messages").is_none() {
        body.missing("messages", "This parameter is required.");
    }
    let given = given.unwrap_or_default();
    body.require(!given.is_empty(), "messages", "at least one message");
    if given.len() > MAX_ITEMS {
        body.wrong_value("messages", "at most 2000 messages");
        return Default::default();
    }
    let mut items = ChatItems::default();
    for (at, value) in given.iter().enumerate() {
        items.at = at;
        if let Some(message) = body.element(&format!("messages[{at}]"), value) {
            items.read(&message);
        }
        if items.items.len() > MAX_ITEMS {
            break;
        }
    }
    if items.items.len() > MAX_ITEMS {
        body.wrong_value("messages", "at most 2000 messages and tool calls");
    }
    (items.items, items.message_positions)
}

impl ChatItems {
    fn read(&mut self, message: &ObjectReader) {
        match message.text("role") {
            Some("system") => self.read_text(message, "system", MessageRole::System),
            Some("developer") => self.read_text(message, "developer", MessageRole::Developer),
            Some("user") => self.read_text(message, "user", MessageRole::User),
            Some("assistant") => self.read_assistant(message),
            Some("tool") => {
                let call_id = call_id(message, "tool_call_id");
                self.push_output(message, call_id);
            }
            Some("function") => {
                message.item_text("name");
                match self.deprecated_call.take() {
                    Some(call_id) => self.push_output(message, &call_id),
                    None => message.fail(
                        "unknown_tool_call",
                        "role",
                        "No `function_call` before this message waits for an output.",
                    ),
                }
            }
            _ => message.wrong_value(
                "role",
                "system, developer, user, assistant, tool or function",
            ),
        }
    }

    fn read_text(&mut self, message: &ObjectReader, word: &str, role: MessageRole) {
        let Some(parts) = chat_parts::content(message, role) else {
            message.missing("content", "A message requires `content`.");
            return;
        };
        let mut item = json!({ "type": "message", "role": word, "content": parts });
        // The name of a system message marks an example conversation, and is not used.
        let name = message.text("name").filter(|_| role == MessageRole::User);
        if let Some(name) = name.filter(|it| !it.trim().is_empty()) {
            item["metadata"] = json!({ "speaker": name });
        }
        self.push(item);
    }

    fn read_assistant(&mut self, message: &ObjectReader) {
        let speaker = speaker(message);
        let with_speaker = |mut item: Value| {
            if let Some(speaker) = &speaker {
                item["metadata"] = speaker.clone();
            }
            item
        };
        if let Some(text) = message.optional_item_text("reasoning_content") {
            let summary = json!([{ "type": "summary_text", "text": text }]);
            self.push(json!({ "type": "reasoning", "summary": summary }));
        }
        let calls = self.calls(message);
        let mut parts = chat_parts::content(message, MessageRole::Assistant).unwrap_or_default();
        if let Some(refusal) = message.optional_item_text("refusal") {
            parts.push(json!({ "type": "refusal", "refusal": refusal }));
        }
        let is_empty = |it: &Value| it["text"] == "";
        if !calls.is_empty() {
            parts.retain(|it| !is_empty(it));
        } else if parts.is_empty() && message.get("reasoning_content").is_none() {
            let text = "An assistant message requires `content` or `tool_calls`.";
            message.missing("content", text);
        }
        if !parts.is_empty() {
            let item = json!({ "type": "message", "role": "assistant", "content": parts });
            self.push(with_speaker(item));
        }
        for call in calls {
            self.push(with_speaker(call));
        }
    }

    /// Reads the calls of an assistant message.
    fn calls(&mut self, message: &ObjectReader) -> Vec<Value> {
        let calls = message.objects("tool_calls");
        let mut items: Vec<Value> = calls.iter().filter_map(call).collect();
        if let Some(function) = message.object("function_call") {
            let call_id = format!("{}_{}", object_ids::CALL, self.at);
            items.push(function_call(&function, &call_id));
            self.deprecated_call = Some(call_id);
        }
        items
    }

    fn push_output(&mut self, message: &ObjectReader, call_id: &str) {
        self.push(json!({
            "type": "function_call_output", "call_id": call_id,
            "output": chat_parts::output(message),
        }));
    }

    fn push(&mut self, item: Value) {
        let prefix = object_ids::prefix_for_type(item["type"].as_str().unwrap_or_default());
        self.items
            .push(input_items::with_id_and_status(item, prefix));
        self.message_positions.push(self.at);
    }
}

/// Returns the speaker of an assistant message: `troupe` as this server returned it, otherwise the name.
fn speaker(message: &ObjectReader) -> Option<Value> {
    let reported = message.get("troupe").filter(|it| it.is_object());
    let name = message.text("name").filter(|it| !it.trim().is_empty());
    reported
        .cloned()
        .or_else(|| name.map(|it| json!({ "speaker": it })))
}

fn call(call: &ObjectReader) -> Option<Value> {
    let id = call_id(call, "id");
    match call.text("type").unwrap_or("function") {
        "function" => Some(function_call(&call.item_object("function")?, id)),
        "custom" => {
            let custom = call.item_object("custom")?;
            Some(json!({
                "type": "custom_tool_call", "call_id": id, "name": name(&custom),
                "input": custom.item_text("input"),
            }))
        }
        _ => {
            call.wrong_value("type", "function or custom");
            None
        }
    }
}

fn function_call(function: &ObjectReader, call_id: &str) -> Value {
    json!({
        "type": "function_call", "call_id": call_id, "name": name(function),
        "arguments": function.item_text("arguments"),
    })
}

fn call_id<'a>(fields: &ObjectReader<'a>, field: &str) -> &'a str {
    let id = fields.item_text(field);
    let is_valid = (1..=MAX_CALL_ID_CHARS).contains(&id.chars().count());
    fields.require(is_valid, field, "1 to 128 characters");
    id
}

fn name<'a>(function: &ObjectReader<'a>) -> &'a str {
    let name = function.item_text("name");
    function.require(is_name(name), "name", NAME_RULE);
    name
}
