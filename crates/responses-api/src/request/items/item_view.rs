//! Parses the JSON document of an item into an `ItemView`, by the item's type. An item of a request
//! is also validated; a stored item is not.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::request::items::call_items::{
    ApprovalResponse, BuiltinCall, CallOutput, ClientCall, RemoteCall, RemoteToolList,
};
use crate::request::items::content;
use crate::request::items::content::{InputPart, InputReasoning};
use crate::request::object_reader::{ObjectReader, parse_word};
use crate::status::ItemStatus;

const MAX_ID_CHARS: usize = 64;
const MAX_CALL_ID_CHARS: usize = 128;

/// The types of the items of tools that other services run.
const HOSTED_TOOL_ITEMS: [&str; 6] = [
    "code_interpreter_call",
    "computer_call",
    "computer_call_output",
    "file_search_call",
    "image_generation_call",
    "web_search_call",
];

/// An item.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemView<'a> {
    pub id: &'a str,
    /// `None` for a stored item with another status.
    pub status: Option<ItemStatus>,
    /// Fields that the client or this server added, such as the speaker.
    pub metadata: Option<&'a Map<String, Value>>,
    pub content: ItemContent<'a>,
}

/// The content of an item, by its type.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemContent<'a> {
    Message(InputMessage<'a>),
    Reasoning(InputReasoning<'a>),
    /// Stands for the stored item with the same id.
    Reference,
    Compaction {
        encrypted_content: &'a str,
    },
    Call(ClientCall<'a>),
    Output(CallOutput<'a>),
    BuiltinCall(BuiltinCall<'a>),
    RemoteToolList(RemoteToolList<'a>),
    RemoteCall(RemoteCall<'a>),
    ApprovalRequest(RemoteCall<'a>),
    ApprovalResponse(ApprovalResponse<'a>),
    /// An item of a tool that another service ran. The model does not see it.
    HostedTool,
    /// A stored item of a type that requests must not contain.
    Foreign,
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct InputMessage<'a> {
    pub role: MessageRole,
    pub content: Vec<InputPart<'a>>,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    User,
    System,
    Developer,
    Assistant,
}

impl<'a> ItemView<'a> {
    /// Reads a stored item.
    pub fn of(item: &'a Value) -> Self {
        match item.as_object() {
            Some(fields) => Self::read(&ObjectReader::of_stored(fields)),
            None => Self {
                id: "",
                status: None,
                metadata: None,
                content: ItemContent::Foreign,
            },
        }
    }

    pub(in crate::request) fn read(item: &ObjectReader<'a>) -> Self {
        let id = id(item);
        check_call_id(item);
        let status = status(item);
        Self {
            id,
            status,
            metadata: item.fields.get("metadata").and_then(Value::as_object),
            content: ItemContent::read(item),
        }
    }

    /// Returns whether the item was cut off.
    pub fn is_incomplete(&self) -> bool {
        matches!(
            self.status,
            Some(ItemStatus::InProgress | ItemStatus::Incomplete)
        )
    }
}

impl<'a> ItemContent<'a> {
    fn read(item: &ObjectReader<'a>) -> Self {
        match kind(item) {
            "message" => Self::Message(InputMessage::read(item)),
            "reasoning" => Self::Reasoning(InputReasoning::read(item)),
            "item_reference" => {
                if !item.fields.get("id").is_some_and(Value::is_string) {
                    item.wrong_type("id", "a string");
                }
                Self::Reference
            }
            "compaction" => Self::Compaction {
                encrypted_content: content::part_text(item, "encrypted_content"),
            },
            "function_call" => Self::Call(ClientCall::function(item)),
            "custom_tool_call" => Self::Call(ClientCall::custom(item)),
            "local_shell_call" => Self::Call(ClientCall::shell(item)),
            "function_call_output" | "custom_tool_call_output" => {
                Self::Output(CallOutput::read(item))
            }
            "local_shell_call_output" => Self::Output(CallOutput::of_shell(item)),
            "mcp_list_tools" => Self::RemoteToolList(RemoteToolList::read(item)),
            "mcp_call" => Self::RemoteCall(RemoteCall::ended(item)),
            "mcp_approval_request" => {
                item.item_text("id");
                Self::ApprovalRequest(RemoteCall::request(item))
            }
            "mcp_approval_response" => Self::ApprovalResponse(ApprovalResponse::read(item)),
            kind if HOSTED_TOOL_ITEMS.contains(&kind) => Self::HostedTool,
            kind => match BuiltinCall::read(item, kind) {
                Some(call) => Self::BuiltinCall(call),
                None => {
                    item.wrong_value("type", "the type of an item");
                    Self::Foreign
                }
            },
        }
    }
}

impl<'a> InputMessage<'a> {
    fn read(item: &ObjectReader<'a>) -> Self {
        let role = item.fields.get("role").and_then(Value::as_str);
        let role = role.and_then(|it| parse_word(it).ok());
        let expected = "user, system, developer or assistant";
        item.require(role.is_some(), "role", expected);
        Self {
            role: role.unwrap_or(MessageRole::User),
            content: content::message_content(item),
        }
    }

    /// Returns the text of all parts.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(InputPart::text);
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// Returns the type of an item, which may be omitted for a message and a reference.
fn kind<'a>(item: &ObjectReader<'a>) -> &'a str {
    if item.get("type").is_some() {
        return item.text("type").unwrap_or_default();
    }
    if item.fields.contains_key("role") {
        "message"
    } else if item.fields.contains_key("id") {
        "item_reference"
    } else {
        ""
    }
}

/// Ids are stored in columns of limited length.
fn id<'a>(item: &ObjectReader<'a>) -> &'a str {
    let id = item.text("id");
    let is_valid = |it: &str| !it.is_empty() && it.chars().count() <= MAX_ID_CHARS;
    let expected = "at least one and at most 64 characters";
    item.require(id.is_none_or(is_valid), "id", expected);
    id.unwrap_or_default()
}

fn check_call_id(item: &ObjectReader) {
    let call_id = item.text("call_id");
    let is_valid = call_id.is_none_or(|it| it.chars().count() <= MAX_CALL_ID_CHARS);
    item.require(is_valid, "call_id", "at most 128 characters");
}

fn status(item: &ObjectReader) -> Option<ItemStatus> {
    let given = item.get("status")?;
    let status = given.as_str().and_then(|it| parse_word(it).ok());
    let expected = "in_progress, completed or incomplete";
    // Tools of other services have more statuses, for example `searching` and `failed`.
    let is_hosted = HOSTED_TOOL_ITEMS.contains(&kind(item));
    item.require(status.is_some() || is_hosted, "status", expected);
    status
}

#[cfg(test)]
#[path = "item_view_tests.rs"]
mod tests;
