//! Parses and validates the items of tool calls: calls, their outputs, the tool lists of MCP
//! servers, and approvals.

use serde_json::{Map, Value};

use crate::request::items::content;
use crate::request::items::content::InputPart;
use crate::request::object_reader::ObjectReader;
use crate::request::tools::tool_names::{NAME_RULE, is_name};
use crate::server_tools;

/// A call that the client answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientCall<'a> {
    /// The id that the call and its output share.
    pub call_id: &'a str,
    pub input: CallInput<'a>,
}

/// The input of a call of a client's tool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallInput<'a> {
    /// JSON arguments, as the model wrote them.
    Function {
        name: &'a str,
        /// The namespace of the function.
        namespace: Option<&'a str>,
        arguments: &'a str,
    },
    Custom {
        name: &'a str,
        input: &'a str,
    },
    /// A command for the client's shell; the client may add fields.
    Shell(Option<&'a Map<String, Value>>),
}

/// The output of such a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOutput<'a> {
    pub call_id: &'a str,
    pub parts: Vec<InputPart<'a>>,
}

/// A call of a built-in tool of this server, with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltinCall<'a> {
    pub call_id: &'a str,
    /// The type of the item.
    pub kind: &'a str,
    pub arguments: &'a str,
    pub output: Option<&'a str>,
    pub error: Option<&'a str>,
}

/// A call of a tool of an MCP server, with its result if it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteCall<'a> {
    pub server_label: &'a str,
    pub name: &'a str,
    pub arguments: &'a str,
    pub output: Option<&'a str>,
    pub error: Option<&'a str>,
    /// The request that the user approved.
    pub approval_request_id: Option<&'a str>,
}

/// The user's answer to an approval request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalResponse<'a> {
    pub approval_request_id: &'a str,
    pub approve: bool,
    pub reason: Option<&'a str>,
}

/// The tools of an MCP server, as it lists them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemoteToolList<'a> {
    pub server_label: &'a str,
    pub tools: &'a [Value],
    /// Why the list could not be loaded.
    pub error: Option<&'a str>,
}

impl<'a> ClientCall<'a> {
    pub(in crate::request) fn function(item: &ObjectReader<'a>) -> Self {
        Self {
            call_id: call_id(item),
            input: CallInput::Function {
                name: name(item),
                namespace: namespace(item),
                arguments: item.item_text("arguments"),
            },
        }
    }

    pub(in crate::request) fn custom(item: &ObjectReader<'a>) -> Self {
        Self {
            call_id: call_id(item),
            input: CallInput::Custom {
                name: name(item),
                input: item.item_text("input"),
            },
        }
    }

    pub(in crate::request) fn shell(item: &ObjectReader<'a>) -> Self {
        Self {
            call_id: call_id(item),
            input: CallInput::Shell(action(item)),
        }
    }
}

impl<'a> CallOutput<'a> {
    pub(in crate::request) fn read(item: &ObjectReader<'a>) -> Self {
        Self {
            call_id: call_id(item),
            parts: content::output_parts(item),
        }
    }

    /// Some clients send the call's id in `id`, as older documentation of this item showed it.
    pub(in crate::request) fn of_shell(item: &ObjectReader<'a>) -> Self {
        let output = item.item_text("output");
        let call_id = match item.get("call_id").and_then(Value::as_str) {
            Some(call_id) => call_id,
            None => item.item_text("id"),
        };
        Self {
            call_id,
            parts: vec![InputPart::Text(output)],
        }
    }
}

impl<'a> BuiltinCall<'a> {
    /// Reads an item of this type; returns `None` if it names no tool.
    pub(in crate::request) fn read(item: &ObjectReader<'a>, kind: &'a str) -> Option<Self> {
        if !server_tools::tool_name(kind).is_some_and(is_name) {
            return None;
        }
        Some(Self {
            call_id: call_id(item),
            kind,
            arguments: item.item_text("arguments"),
            output: item.optional_item_text("output"),
            error: item.optional_item_text("error"),
        })
    }
}

impl<'a> RemoteCall<'a> {
    /// Reads a call that was not made yet.
    pub(in crate::request) fn request(item: &ObjectReader<'a>) -> Self {
        Self {
            server_label: item.item_text("server_label"),
            name: item.item_text("name"),
            arguments: item.item_text("arguments"),
            ..Self::default()
        }
    }

    pub(in crate::request) fn ended(item: &ObjectReader<'a>) -> Self {
        let call = Self::request(item);
        Self {
            approval_request_id: item.optional_item_text("approval_request_id"),
            output: item.optional_item_text("output"),
            error: item.optional_item_text("error"),
            ..call
        }
    }
}

impl<'a> RemoteToolList<'a> {
    pub(in crate::request) fn read(item: &ObjectReader<'a>) -> Self {
        let server_label = item.item_text("server_label");
        let tools = item.item_field("tools", "a list", Value::as_array);
        Self {
            server_label,
            tools: tools.map_or(&[], Vec::as_slice),
            error: item.optional_item_text("error"),
        }
    }
}

impl<'a> ApprovalResponse<'a> {
    pub(in crate::request) fn read(item: &ObjectReader<'a>) -> Self {
        Self {
            approval_request_id: item.item_text("approval_request_id"),
            approve: item.item_field("approve", "true or false", Value::as_bool) == Some(true),
            reason: item.optional_item_text("reason"),
        }
    }
}

fn call_id<'a>(item: &ObjectReader<'a>) -> &'a str {
    let call_id = item.item_text("call_id");
    item.require(!call_id.is_empty(), "call_id", "at least one character");
    call_id
}

fn name<'a>(item: &ObjectReader<'a>) -> &'a str {
    let name = item.item_text("name");
    item.require(is_name(name), "name", NAME_RULE);
    name
}

fn namespace<'a>(item: &ObjectReader<'a>) -> Option<&'a str> {
    let namespace = item.text("namespace")?;
    item.require(is_name(namespace), "namespace", NAME_RULE);
    Some(namespace)
}

fn action<'a>(item: &ObjectReader<'a>) -> Option<&'a Map<String, Value>> {
    let action = item.item_object("action")?;
    let is_exec = action.fields.get("type").is_none_or(|it| it == "exec");
    action.require(is_exec, "type", "exec");
    let command = action.fields.get("command").and_then(Value::as_array);
    if !command.is_some_and(|it| it.iter().all(Value::is_string)) {
        action.wrong_type("command", "a list of strings");
    }
    action.text("user");
    action.text("working_directory");
    action.integer("timeout_ms", 0..=i64::from(u32::MAX));
    if let Some(env) = action.object("env") {
        for name in env.fields.keys().filter(|it| !env.fields[*it].is_string()) {
            env.wrong_type(name, "a string");
        }
    }
    Some(action.fields)
}
