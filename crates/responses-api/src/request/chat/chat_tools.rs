//! Parses the tools of a chat completion and the choice among them, also in the deprecated fields
//! `functions` and `function_call`.

use serde_json::Value;

use crate::request::object_reader::ObjectReader;
use crate::request::tools::tool;
use crate::request::tools::tool::{CustomFormat, CustomTool, FunctionTool, MAX_TOOLS, RequestTool};
use crate::request::tools::tool_choice::{ChoiceMode, RequestedChoice, ToolReference};
use crate::request::tools::tool_names::{NAME_RULE, is_name};

/// Reads `tools`, then `functions`.
pub(super) fn tools(body: &ObjectReader) -> Vec<RequestTool> {
    let (tools, functions) = (body.objects("tools"), body.objects("functions"));
    for (name, n_tools) in [("tools", tools.len()), ("functions", functions.len())] {
        if n_tools > MAX_TOOLS {
            body.wrong_value(name, "at most 128 tools");
            return Vec::new();
        }
    }
    let mut declared: Vec<RequestTool> = Vec::new();
    let mut add = |fields: &ObjectReader, tool: Option<RequestTool>| {
        let Some(tool) = tool else {
            return;
        };
        let names = tool.model_names();
        let is_new = declared.iter().all(|it| it.model_names() != names);
        fields.require(is_new, "name", "unique in the request");
        declared.push(tool);
    };
    for it in &tools {
        add(it, tool(it));
    }
    for it in &functions {
        add(it, FunctionTool::read(it).map(RequestTool::Function));
    }
    declared
}

fn tool(tool: &ObjectReader) -> Option<RequestTool> {
    match tool.text("type") {
        Some("function") => {
            let function = definition(tool, "function")?;
            FunctionTool::read(&function).map(RequestTool::Function)
        }
        Some("custom") => custom(&definition(tool, "custom")?).map(RequestTool::Custom),
        Some(kind) => {
            tool::reject_type(tool, kind, "function, custom");
            None
        }
        None => {
            tool.missing("type", "A tool requires `type`.");
            None
        }
    }
}

/// Returns the object in the field that is named after the type of the tool.
fn definition<'a>(tool: &ObjectReader<'a>, kind: &str) -> Option<ObjectReader<'a>> {
    if tool.get(kind).is_none() {
        tool.missing(kind, "A tool of this type requires this field.");
    }
    tool.object(kind)
}

fn custom(tool: &ObjectReader) -> Option<CustomTool> {
    tool::require_known_fields(tool, &["name", "description", "format"]);
    let name = tool::name(tool);
    let description = tool.text("description").map(str::to_owned);
    let format = tool.object("format");
    Some(CustomTool {
        name: name?,
        description,
        format: format.map_or(CustomFormat::Text, |it| custom_format(&it)),
    })
}

fn custom_format(format: &ObjectReader) -> CustomFormat {
    match format.text("type") {
        Some("text") => CustomFormat::Text,
        Some("grammar") => match format.object("grammar") {
            Some(grammar) => CustomFormat::read_grammar(&grammar),
            None => {
                format.missing("grammar", "This format requires a grammar.");
                CustomFormat::Text
            }
        },
        _ => {
            format.wrong_value("type", "text or grammar");
            CustomFormat::Text
        }
    }
}

/// Reads `tool_choice`, or `function_call` if there is no `tool_choice`.
pub(in crate::request) fn choice(body: &ObjectReader, declared: &[RequestTool]) -> RequestedChoice {
    if body.get("tool_choice").is_some() {
        return tool_choice(body, declared);
    }
    match body.get("function_call") {
        None => RequestedChoice::default(),
        Some(Value::String(word)) => {
            RequestedChoice::Mode(ChoiceMode::read(body, "function_call", word, declared))
        }
        Some(_) => {
            let Some(call) = body.object("function_call") else {
                return RequestedChoice::default();
            };
            let function = ToolReference::Function {
                name: call.text("name").unwrap_or_default().to_owned(),
                namespace: None,
            };
            require_declared(&call, &function, declared);
            RequestedChoice::Tool(function)
        }
    }
}

fn tool_choice(body: &ObjectReader, declared: &[RequestTool]) -> RequestedChoice {
    if let Some(Value::String(word)) = body.get("tool_choice") {
        return RequestedChoice::Mode(ChoiceMode::read(body, "tool_choice", word, declared));
    }
    let Some(choice) = body.object("tool_choice") else {
        return RequestedChoice::default();
    };
    if choice.text("type") == Some("allowed_tools") {
        let fields = choice.object("allowed_tools");
        return allowed(fields.as_ref().unwrap_or(&choice), declared);
    }
    reference(&choice, declared).map_or_else(RequestedChoice::default, RequestedChoice::Tool)
}

fn allowed(choice: &ObjectReader, declared: &[RequestTool]) -> RequestedChoice {
    let word = choice.text("mode").unwrap_or("auto");
    let mode = ChoiceMode::read(choice, "mode", word, declared);
    let given = choice.list("tools").unwrap_or_default();
    if !(1..=MAX_TOOLS).contains(&given.len()) {
        choice.wrong_value("tools", "1 to 128 tools");
        return RequestedChoice::Mode(mode);
    }
    let tools = choice.elements("tools", given);
    RequestedChoice::Allowed {
        mode,
        tools: tools.filter_map(|it| reference(&it, declared)).collect(),
    }
}

fn reference(choice: &ObjectReader, declared: &[RequestTool]) -> Option<ToolReference> {
    let kind = choice.text("type").unwrap_or_default();
    let name = |kind: &str| {
        let fields = definition(choice, kind)?;
        let name = fields.text("name").unwrap_or_default();
        fields.require(is_name(name), "name", NAME_RULE);
        Some(name.to_owned())
    };
    let tool = match kind {
        "function" => ToolReference::Function {
            name: name(kind)?,
            namespace: None,
        },
        "custom" => ToolReference::Custom { name: name(kind)? },
        _ => {
            choice.wrong_value("type", "function, custom or allowed_tools");
            return None;
        }
    };
    require_declared(choice, &tool, declared);
    Some(tool)
}

fn require_declared(fields: &ObjectReader, tool: &ToolReference, declared: &[RequestTool]) {
    let is_declared = declared.iter().any(|it| tool.is_tool(it));
    fields.require(is_declared, "name", "a tool that is declared in `tools`");
}
