//! Parses the tools of assistants and of runs of threads, and rejects the files that other services
//! attach to them.

use crate::request::error;
use crate::request::object_reader::ObjectReader;
use crate::request::server_rules::ServerRules;
use crate::request::tools::tool;
use crate::request::tools::tool::{FunctionTool, MAX_TOOLS, RequestTool};
use crate::server_tools;

/// The supported types of tools, as an error names them.
const SUPPORTED_TYPES: &str = "function, troupe:*";

/// The maximum number of names in a message.
const MAX_LISTED_NAMES: usize = 8;

/// Reads `tools`: functions of the client, and tools of this server.
pub(in crate::request) fn tools(body: &ObjectReader, rules: &ServerRules) -> Vec<RequestTool> {
    let given = body.list("tools").unwrap_or_default();
    if given.len() > MAX_TOOLS {
        body.wrong_value("tools", "at most 128 tools");
        return Vec::new();
    }
    let mut tools: Vec<RequestTool> = Vec::new();
    for fields in body.elements("tools", given) {
        let Some(tool) = read(&fields, rules) else {
            continue;
        };
        let names = tool.model_names();
        let is_new = tools.iter().all(|it| it.model_names() != names);
        fields.require(is_new, "name", "unique in the request");
        tools.push(tool);
    }
    tools
}

fn read(tool: &ObjectReader, rules: &ServerRules) -> Option<RequestTool> {
    let Some(kind) = tool.text("type") else {
        tool.missing("type", "A tool requires `type`.");
        return None;
    };
    match server_tools::tool_name(kind) {
        Some(name) if (rules.is_builtin_tool)(name) => {
            tool::require_known_fields(tool, &["type"]);
            Some(RequestTool::Builtin(kind.to_owned()))
        }
        None if kind == "function" => {
            tool::require_known_fields(tool, &["type", "function"]);
            if tool.get("function").is_none() {
                tool.missing("function", "A function requires this field.");
            }
            let function = tool.object("function")?;
            FunctionTool::read(&function).map(RequestTool::Function)
        }
        _ => {
            tool::reject_type(tool, kind, SUPPORTED_TYPES);
            None
        }
    }
}

/// Rejects `tool_resources` unless it is empty: only tools that this server does not have use them.
pub(in crate::request) fn reject_resources(body: &ObjectReader) {
    let Some(resources) = body.object("tool_resources") else {
        return;
    };
    let names = resources.fields.keys().take(MAX_LISTED_NAMES);
    let names: Vec<String> = names.map(|it| error::quoted(it)).collect();
    if !names.is_empty() {
        let message = format!(
            "Unsupported tools in {}: {}; this server has no tools that use files.",
            error::quoted("tool_resources"),
            names.join(", "),
        );
        body.fail("unsupported_tool", "tool_resources", message);
    }
}

/// Rejects the `attachments` of a message, unless the list is empty.
pub(super) fn reject_attachments(message: &ObjectReader) {
    let attachments = message.list("attachments").unwrap_or_default();
    if attachments.is_empty() {
        return;
    }
    let tools = attachments.iter().filter_map(|it| it["tools"].as_array());
    let kinds = tools.flatten().filter_map(|it| it["type"].as_str());
    let mut names: Vec<String> = kinds.map(error::quoted).collect();
    names.sort();
    names.dedup();
    names.truncate(MAX_LISTED_NAMES);
    let of_tools = match names.is_empty() {
        true => String::new(),
        false => format!(" for the tools {}", names.join(", ")),
    };
    let text = format!(
        "Unsupported {}{of_tools}; this server has no tools that use files.",
        error::quoted("attachments"),
    );
    message.fail("unsupported_tool", "attachments", text);
}
