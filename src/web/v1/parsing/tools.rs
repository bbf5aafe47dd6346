//! The tools of a request: declarations, tool choice, and their echo in the response.

use agent::tools::mcp::tool_names::model_facing_name;
use agent::tools::registry;
use llm::tool::{Tool, ToolChoice};
use responses_api::item::SERVER_TOOL_PREFIX;
use serde_json::{Map, Value, json};

use crate::responses::execution::tool_config::{DeclaredTool, ToolConfig, ToolKind};
use crate::responses::input::prompt_assembler::{SHELL_TOOL_NAME, builtin_tool_alias};
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::fields::{Fields, nested_in, wrong_type, wrong_value};
use crate::web::v1::parsing::mcp;

/// The maximum number of tools in one request.
const MAX_TOOLS: usize = 128;

const MAX_NAME_CHARS: usize = 64;

/// Parses the tools, the tool choice and the call limits, and adds them to the echo.
///
/// # Errors
/// Returns 400 with the path of the invalid field.
pub fn tool_config(fields: &Fields, echo: &mut Map<String, Value>) -> V1Result<ToolConfig> {
    let mut toolbox = ToolConfig::default();
    let mut shown = Vec::new();
    let given = fields.list("tools")?.map_or(&[][..], Vec::as_slice);
    if given.len() > MAX_TOOLS {
        return Err(wrong_value("tools", "at most 128 tools"));
    }
    for (at, value) in given.iter().enumerate() {
        let at = format!("tools[{at}]");
        if let Some(server) = value.as_object().filter(|_| value["type"] == "mcp") {
            shown.push(mcp::parse_server(&at, server, &mut toolbox)?);
            continue;
        }
        let (declared, view) = parse_tool(&at, value)?;
        let name = &declared.tool.name;
        if toolbox.tools.iter().any(|it| it.tool.name == *name) {
            return Err(wrong_value(&format!("{at}.name"), "unique in the request"));
        }
        toolbox.tools.push(declared);
        shown.push(view);
    }
    let choice = parse_choice(fields, &mut toolbox)?;
    let max_calls = fields.integer("max_tool_calls", 1..=i64::MAX)?;
    let is_parallel = fields.flag("parallel_tool_calls", true)?;
    toolbox.max_calls = max_calls.map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    toolbox.is_serial = !is_parallel;
    echo.insert("max_tool_calls".to_owned(), json!(max_calls));
    echo.insert("parallel_tool_calls".to_owned(), json!(is_parallel));
    echo.insert("tool_choice".to_owned(), choice);
    echo.insert("tools".to_owned(), json!(shown));
    Ok(toolbox)
}

fn parse_tool(at: &str, value: &Value) -> V1Result<(DeclaredTool, Value)> {
    let object = value
        .as_object()
        .ok_or_else(|| wrong_type(at, "an object"))?;
    let fields = Fields(object);
    let within = |problem: V1Error| nested_in(at, problem);
    let read = match fields.text("type").map_err(within)? {
        Some("function") => parse_function(&fields),
        Some("custom") => parse_custom(&fields),
        Some("local_shell") => parse_shell(&fields),
        Some(kind) if kind.starts_with(SERVER_TOOL_PREFIX) => parse_builtin(&fields, kind),
        Some(_) => Err(unsupported_tool()),
        None => Err(V1Error::invalid(
            "missing_required_parameter",
            "type",
            "A tool requires `type`.",
        )),
    };
    read.map_err(within)
}

fn unsupported_tool() -> V1Error {
    let message = "Tools of this type are not supported.";
    V1Error::invalid("unsupported_tool", "type", message)
}

fn require_known_fields(fields: &Fields, known: &[&str]) -> V1Result<()> {
    match fields
        .0
        .iter()
        .find(|it| !known.contains(&it.0.as_str()) && !it.1.is_null())
    {
        None => Ok(()),
        Some((name, _)) => {
            let message = "Unknown parameter for a tool of this type.";
            Err(V1Error::invalid("unknown_parameter", name, message))
        }
    }
}

fn parse_name(fields: &Fields) -> V1Result<String> {
    let missing = || {
        let message = "A tool requires `name`.";
        V1Error::invalid("missing_required_parameter", "name", message)
    };
    let name = fields.text("name")?.ok_or_else(missing)?;
    match is_name(name) {
        true => Ok(name.to_owned()),
        false => Err(wrong_value(
            "name",
            "at most 64 letters, digits, `_` and `-`",
        )),
    }
}

/// Returns whether every provider accepts this as the name of a tool.
pub fn is_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(is_plain)
}

fn parse_function(fields: &Fields) -> V1Result<(DeclaredTool, Value)> {
    require_known_fields(
        fields,
        &["type", "name", "description", "parameters", "strict"],
    )?;
    let name = parse_name(fields)?;
    let description = fields.text("description")?;
    let parameters = fields.object("parameters")?;
    let strict = match fields.get("strict") {
        None => None,
        Some(_) => Some(fields.flag("strict", false)?),
    };
    let view = json!({
        "type": "function", "name": name, "description": description,
        "parameters": parameters, "strict": strict,
    });
    let tool = Tool {
        name,
        description: description.map(str::to_owned),
        parameters: parameters.map_or_else(
            || json!({ "type": "object", "properties": {} }),
            |it| json!(it),
        ),
        strict,
    };
    let kind = ToolKind::Function;
    Ok((DeclaredTool { kind, tool }, view))
}

fn parse_custom(fields: &Fields) -> V1Result<(DeclaredTool, Value)> {
    require_known_fields(fields, &["type", "name", "description", "format"])?;
    let name = parse_name(fields)?;
    let description = fields.text("description")?;
    let format = parse_format(fields)?;
    let mut model_description = description.unwrap_or_default().to_owned();
    if let (Some(syntax), Some(grammar)) =
        (format["syntax"].as_str(), format["definition"].as_str())
    {
        let break_before = if model_description.is_empty() {
            ""
        } else {
            "\n\n"
        };
        model_description.push_str(&format!(
            "{break_before}`input` must match this {syntax} grammar:\n{grammar}"
        ));
    }
    let view = json!({
        "type": "custom", "name": name, "description": description, "format": format,
    });
    let tool = Tool {
        name,
        description: Some(model_description).filter(|it| !it.is_empty()),
        parameters: json!({
            "type": "object",
            "properties": { "input": { "type": "string" } },
            "required": ["input"],
            "additionalProperties": false,
        }),
        strict: None,
    };
    let kind = ToolKind::Custom;
    Ok((DeclaredTool { kind, tool }, view))
}

fn parse_format(fields: &Fields) -> V1Result<Value> {
    let Some(format) = fields.object("format")? else {
        return Ok(json!({ "type": "text" }));
    };
    let inner = Fields(format);
    let within = |problem: V1Error| nested_in("format", problem);
    let missing = |name: &str| {
        let message = "A grammar requires this parameter.";
        nested_in(
            "format",
            V1Error::invalid("missing_required_parameter", name, message),
        )
    };
    match inner.one_of("type", &["text", "grammar"]).map_err(within)? {
        Some("grammar") => {
            let syntax = inner.one_of("syntax", &["lark", "regex"]).map_err(within)?;
            let syntax = syntax.ok_or_else(|| missing("syntax"))?;
            let definition = inner.text("definition").map_err(within)?;
            let definition = definition.ok_or_else(|| missing("definition"))?;
            Ok(json!({ "type": "grammar", "syntax": syntax, "definition": definition }))
        }
        Some(_) => Ok(json!({ "type": "text" })),
        None => Err(missing("type")),
    }
}

fn parse_shell(fields: &Fields) -> V1Result<(DeclaredTool, Value)> {
    require_known_fields(fields, &["type"])?;
    let text = json!({ "type": "string" });
    let tool = Tool {
        name: SHELL_TOOL_NAME.to_owned(),
        description: Some("Runs a command in the user's shell.".to_owned()),
        parameters: json!({
            "type": "object",
            "properties": {
                "command": {
                    "type": "array", "items": text,
                    "description": "The program and its arguments.",
                },
                "env": { "type": "object", "additionalProperties": text },
                "working_directory": text,
                "timeout_ms": { "type": "integer" },
                "user": text,
            },
            "required": ["command"],
        }),
        strict: None,
    };
    let kind = ToolKind::Shell;
    Ok((
        DeclaredTool { kind, tool },
        json!({ "type": "local_shell" }),
    ))
}

fn parse_builtin(fields: &Fields, kind: &str) -> V1Result<(DeclaredTool, Value)> {
    require_known_fields(fields, &["type"])?;
    let tool = registry::declaration(kind.trim_start_matches(SERVER_TOOL_PREFIX))
        .ok_or_else(unsupported_tool)?;
    let view = json!({ "type": kind });
    let kind = ToolKind::Server;
    Ok((DeclaredTool { kind, tool }, view))
}

/// Parses the tool choice into `toolbox` and returns its echo.
fn parse_choice(fields: &Fields, toolbox: &mut ToolConfig) -> V1Result<Value> {
    let words = "auto, none, required, a tool, or allowed tools";
    let (choice, echo) = match fields.get("tool_choice") {
        None => (ToolChoice::Auto, json!("auto")),
        Some(Value::String(word)) => (parse_mode("tool_choice", word, toolbox)?, json!(word)),
        Some(Value::Object(object)) => {
            let inner = Fields(object);
            match object.get("type").and_then(Value::as_str) {
                Some("allowed_tools") => allowed_tools_choice(&inner, toolbox)?,
                Some("mcp") => {
                    let (label, name, echo) = server_tool_choice("tool_choice", object, toolbox)?;
                    match name {
                        Some(name) => (ToolChoice::Named(name), echo),
                        None => {
                            toolbox.must_use = Some(label);
                            (ToolChoice::Required, echo)
                        }
                    }
                }
                Some(_) => {
                    let (name, echo) = named_tool_choice("tool_choice", object, toolbox)?;
                    (ToolChoice::Named(name), echo)
                }
                None => return Err(wrong_value("tool_choice.type", words)),
            }
        }
        Some(_) => return Err(wrong_type("tool_choice", words)),
    };
    toolbox.choice = choice;
    Ok(echo)
}

fn parse_mode(param: &str, word: &str, toolbox: &ToolConfig) -> V1Result<ToolChoice> {
    match word {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        "required" if toolbox.tools.is_empty() && toolbox.servers.is_empty() => Err(wrong_value(
            param,
            "auto or none, because no tool is declared",
        )),
        "required" => Ok(ToolChoice::Required),
        _ => Err(wrong_value(param, "auto, none, required, or an object")),
    }
}

/// Returns the model-facing name of a declared tool, and the echo.
fn named_tool_choice(
    at: &str,
    object: &Map<String, Value>,
    toolbox: &ToolConfig,
) -> V1Result<(String, Value)> {
    let fields = Fields(object);
    let kind = object.get("type").and_then(Value::as_str);
    let kind = kind.unwrap_or_default();
    let (tool_kind, name, param) = match kind {
        "function" | "custom" => {
            let name = fields.text("name").map_err(|it| nested_in(at, it))?;
            let wanted = if kind == "custom" {
                ToolKind::Custom
            } else {
                ToolKind::Function
            };
            (wanted, name.unwrap_or_default().to_owned(), "name")
        }
        "local_shell" => (ToolKind::Shell, SHELL_TOOL_NAME.to_owned(), "type"),
        kind if kind.starts_with(SERVER_TOOL_PREFIX) => {
            (ToolKind::Server, builtin_tool_alias(kind), "type")
        }
        _ => return Err(wrong_value(&format!("{at}.type"), "the type of a tool")),
    };
    let mut declared = toolbox.tools.iter();
    if !declared.any(|it| it.tool.name == name && it.kind == tool_kind) {
        return Err(wrong_value(
            &format!("{at}.{param}"),
            "a tool that is declared in `tools`",
        ));
    }
    let echo = match param {
        "name" => json!({ "type": kind, "name": name }),
        _ => json!({ "type": kind }),
    };
    Ok((name, echo))
}

/// Returns the label of a declared server, the name of one of its tools if given, and the echo.
/// Whether the server has that tool is not known yet.
fn server_tool_choice(
    at: &str,
    object: &Map<String, Value>,
    toolbox: &ToolConfig,
) -> V1Result<(String, Option<String>, Value)> {
    let fields = Fields(object);
    let within = |problem: V1Error| nested_in(at, problem);
    let label = fields.text("server_label").map_err(within)?;
    let mut servers = toolbox.servers.iter();
    let server = servers.find(|it| Some(it.label.as_str()) == label);
    let server = server.ok_or_else(|| {
        let takes = "the label of a server that is declared in `tools`";
        wrong_value(&format!("{at}.server_label"), takes)
    })?;
    let mut echo = json!({ "type": "mcp", "server_label": server.label });
    let name = fields.text("name").map_err(within)?;
    let names = server.allowed.as_ref();
    let names = names.and_then(|it| it.tool_names.as_ref());
    if let Some(name) = name {
        if names.is_some_and(|it| !it.iter().any(|it| it == name)) {
            let takes = "a tool that `allowed_tools` permits";
            return Err(wrong_value(&format!("{at}.name"), takes));
        }
        echo["name"] = json!(name);
    }
    let known = name.map(|it| model_facing_name(&server.label, it));
    Ok((server.label.clone(), known, echo))
}

fn allowed_tools_choice(
    fields: &Fields,
    toolbox: &mut ToolConfig,
) -> V1Result<(ToolChoice, Value)> {
    let within = |problem: V1Error| nested_in("tool_choice", problem);
    let word = fields.text("mode").map_err(within)?.unwrap_or("auto");
    let choice = parse_mode("tool_choice.mode", word, toolbox)?;
    let given = fields.list("tools").map_err(within)?;
    let given = given.filter(|it| (1..=MAX_TOOLS).contains(&it.len()));
    let given = given.ok_or_else(|| wrong_value("tool_choice.tools", "1 to 128 tools"))?;
    let (mut names, mut echo) = (Vec::new(), Vec::new());
    for (at, value) in given.iter().enumerate() {
        let at = format!("tool_choice.tools[{at}]");
        let object = value.as_object();
        let object = object.ok_or_else(|| wrong_type(&at, "an object"))?;
        if object.get("type").is_some_and(|it| it == "mcp") {
            let (label, name, view) = server_tool_choice(&at, object, toolbox)?;
            match name {
                Some(name) => names.push(name),
                None => toolbox.allowed_servers.push(label),
            }
            echo.push(view);
            continue;
        }
        let (name, view) = named_tool_choice(&at, object, toolbox)?;
        names.push(name);
        echo.push(view);
    }
    toolbox.allowed = Some(names);
    let echo = json!({ "type": "allowed_tools", "tools": echo, "mode": word });
    Ok((choice, echo))
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
