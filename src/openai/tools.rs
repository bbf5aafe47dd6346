//! The tools of a request: what may be called, whether it must be, and how that is echoed.

use crate::llm::tool::Tool;
use crate::llm::tool::ToolChoice;
use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::fields::Fields;
use crate::openai::fields::inside;
use crate::openai::fields::wrong_type;
use crate::openai::fields::wrong_value;
use crate::openai::mcp;
use crate::responses::call_groups::SHELL;
use crate::responses::call_groups::server_name;
use crate::responses::open_calls::RECEIPT;
use crate::responses::toolbox::Declared;
use crate::responses::toolbox::Kind;
use crate::responses::toolbox::Toolbox;
use crate::tools::mcp::tool_names::model_facing_name;
use crate::tools::registry;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

/// The most tools of one request.
const MAX_TOOLS: usize = 128;

const MAX_NAME_CHARS: usize = 64;

/// Reads tools, the choice among them and its limits, and puts them into the echo.
///
/// # Errors
/// 400, with the path to what is wrong.
pub fn toolbox(fields: &Fields, echo: &mut Map<String, Value>) -> Answer<Toolbox> {
    let mut toolbox = Toolbox::default();
    let mut shown = Vec::new();
    let given = fields.list("tools")?.map_or(&[][..], Vec::as_slice);
    if given.len() > MAX_TOOLS {
        return Err(wrong_value("tools", "at most 128 tools"));
    }
    for (at, value) in given.iter().enumerate() {
        let at = format!("tools[{at}]");
        if let Some(server) = value.as_object().filter(|_| value["type"] == "mcp") {
            shown.push(mcp::server(&at, server, &mut toolbox)?);
            continue;
        }
        let (declared, view) = tool(&at, value)?;
        let name = &declared.tool.name;
        if toolbox.tools.iter().any(|it| it.tool.name == *name) {
            return Err(wrong_value(&format!("{at}.name"), "each name once"));
        }
        toolbox.tools.push(declared);
        shown.push(view);
    }
    let choice = choice(fields, &mut toolbox)?;
    let max_calls = fields.whole("max_tool_calls", 1..=i64::MAX)?;
    let is_parallel = fields.flag("parallel_tool_calls", true)?;
    toolbox.max_calls = max_calls.map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    toolbox.is_serial = !is_parallel;
    echo.insert("max_tool_calls".to_owned(), json!(max_calls));
    echo.insert("parallel_tool_calls".to_owned(), json!(is_parallel));
    echo.insert("tool_choice".to_owned(), choice);
    echo.insert("tools".to_owned(), json!(shown));
    Ok(toolbox)
}

fn tool(at: &str, value: &Value) -> Answer<(Declared, Value)> {
    let object = value
        .as_object()
        .ok_or_else(|| wrong_type(at, "an object"))?;
    let fields = Fields(object);
    let within = |problem: Problem| inside(at, problem);
    let read = match fields.text("type").map_err(within)? {
        Some("function") => function(&fields),
        Some("custom") => custom(&fields),
        Some("local_shell") => shell(&fields),
        Some(kind) if kind.starts_with(RECEIPT) => server(&fields, kind),
        Some(_) => Err(not_here()),
        None => Err(Problem::invalid(
            "missing_required_parameter",
            "type",
            "A tool has a type.",
        )),
    };
    read.map_err(within)
}

fn not_here() -> Problem {
    let message = "There is no tool of this type here.";
    Problem::invalid("unsupported_tool", "type", message)
}

fn must_only_have(fields: &Fields, known: &[&str]) -> Answer<()> {
    match fields
        .0
        .iter()
        .find(|it| !known.contains(&it.0.as_str()) && !it.1.is_null())
    {
        None => Ok(()),
        Some((name, _)) => {
            let message = "A tool of this type has no parameter of this name.";
            Err(Problem::invalid("unknown_parameter", name, message))
        }
    }
}

fn name(fields: &Fields) -> Answer<String> {
    let missing = || {
        let message = "A tool has a name.";
        Problem::invalid("missing_required_parameter", "name", message)
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

/// Whether every API would take it for the name of a tool.
pub fn is_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(is_plain)
}

fn function(fields: &Fields) -> Answer<(Declared, Value)> {
    must_only_have(
        fields,
        &["type", "name", "description", "parameters", "strict"],
    )?;
    let name = name(fields)?;
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
    let kind = Kind::Function;
    Ok((Declared { kind, tool }, view))
}

fn custom(fields: &Fields) -> Answer<(Declared, Value)> {
    must_only_have(fields, &["type", "name", "description", "format"])?;
    let name = name(fields)?;
    let description = fields.text("description")?;
    let format = format(fields)?;
    let mut told = description.unwrap_or_default().to_owned();
    if let (Some(syntax), Some(grammar)) =
        (format["syntax"].as_str(), format["definition"].as_str())
    {
        let break_before = if told.is_empty() { "" } else { "\n\n" };
        told.push_str(&format!(
            "{break_before}`input` must match this {syntax} grammar:\n{grammar}"
        ));
    }
    let view = json!({
        "type": "custom", "name": name, "description": description, "format": format,
    });
    let tool = Tool {
        name,
        description: Some(told).filter(|it| !it.is_empty()),
        parameters: json!({
            "type": "object",
            "properties": { "input": { "type": "string" } },
            "required": ["input"],
            "additionalProperties": false,
        }),
        strict: None,
    };
    let kind = Kind::Custom;
    Ok((Declared { kind, tool }, view))
}

fn format(fields: &Fields) -> Answer<Value> {
    let Some(format) = fields.object("format")? else {
        return Ok(json!({ "type": "text" }));
    };
    let inner = Fields(format);
    let within = |problem: Problem| inside("format", problem);
    let missing = |name: &str| {
        let message = "A grammar needs it.";
        inside(
            "format",
            Problem::invalid("missing_required_parameter", name, message),
        )
    };
    match inner.word("type", &["text", "grammar"]).map_err(within)? {
        Some("grammar") => {
            let syntax = inner.word("syntax", &["lark", "regex"]).map_err(within)?;
            let syntax = syntax.ok_or_else(|| missing("syntax"))?;
            let definition = inner.text("definition").map_err(within)?;
            let definition = definition.ok_or_else(|| missing("definition"))?;
            Ok(json!({ "type": "grammar", "syntax": syntax, "definition": definition }))
        }
        Some(_) => Ok(json!({ "type": "text" })),
        None => Err(missing("type")),
    }
}

fn shell(fields: &Fields) -> Answer<(Declared, Value)> {
    must_only_have(fields, &["type"])?;
    let text = json!({ "type": "string" });
    let tool = Tool {
        name: SHELL.to_owned(),
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
    let kind = Kind::Shell;
    Ok((Declared { kind, tool }, json!({ "type": "local_shell" })))
}

fn server(fields: &Fields, kind: &str) -> Answer<(Declared, Value)> {
    must_only_have(fields, &["type"])?;
    let tool = registry::declaration(kind.trim_start_matches(RECEIPT)).ok_or_else(not_here)?;
    let view = json!({ "type": kind });
    let kind = Kind::Server;
    Ok((Declared { kind, tool }, view))
}

/// Reads whether a tool must be called, and answers the echo.
fn choice(fields: &Fields, toolbox: &mut Toolbox) -> Answer<Value> {
    let words = "auto, none, required, a tool, or allowed tools";
    let (choice, echo) = match fields.get("tool_choice") {
        None => (ToolChoice::Auto, json!("auto")),
        Some(Value::String(word)) => (mode("tool_choice", word, toolbox)?, json!(word)),
        Some(Value::Object(object)) => {
            let inner = Fields(object);
            match object.get("type").and_then(Value::as_str) {
                Some("allowed_tools") => allowed(&inner, toolbox)?,
                Some("mcp") => {
                    let (label, name, echo) = remote("tool_choice", object, toolbox)?;
                    match name {
                        Some(name) => (ToolChoice::Named(name), echo),
                        None => {
                            toolbox.must_use = Some(label);
                            (ToolChoice::Required, echo)
                        }
                    }
                }
                Some(_) => {
                    let (name, echo) = named("tool_choice", object, toolbox)?;
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

fn mode(param: &str, word: &str, toolbox: &Toolbox) -> Answer<ToolChoice> {
    match word {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        "required" if toolbox.tools.is_empty() && toolbox.servers.is_empty() => Err(wrong_value(
            param,
            "auto or none, where no tool is declared",
        )),
        "required" => Ok(ToolChoice::Required),
        _ => Err(wrong_value(param, "auto, none, required, or an object")),
    }
}

/// The name that the model knows, of a tool that was declared; and its echo.
fn named(at: &str, object: &Map<String, Value>, toolbox: &Toolbox) -> Answer<(String, Value)> {
    let fields = Fields(object);
    let kind = object.get("type").and_then(Value::as_str);
    let kind = kind.unwrap_or_default();
    let (wanted, name, param) = match kind {
        "function" | "custom" => {
            let name = fields.text("name").map_err(|it| inside(at, it))?;
            let wanted = if kind == "custom" {
                Kind::Custom
            } else {
                Kind::Function
            };
            (wanted, name.unwrap_or_default().to_owned(), "name")
        }
        "local_shell" => (Kind::Shell, SHELL.to_owned(), "type"),
        kind if kind.starts_with(RECEIPT) => (Kind::Server, server_name(kind), "type"),
        _ => return Err(wrong_value(&format!("{at}.type"), "the type of a tool")),
    };
    let mut declared = toolbox.tools.iter();
    if !declared.any(|it| it.tool.name == name && it.kind == wanted) {
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

/// A server that was declared, the name by which the model knows one of its tools, and the echo.
/// Whether the server has that tool is not known yet.
fn remote(
    at: &str,
    object: &Map<String, Value>,
    toolbox: &Toolbox,
) -> Answer<(String, Option<String>, Value)> {
    let fields = Fields(object);
    let within = |problem: Problem| inside(at, problem);
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
            let takes = "a tool that its server may be asked for";
            return Err(wrong_value(&format!("{at}.name"), takes));
        }
        echo["name"] = json!(name);
    }
    let known = name.map(|it| model_facing_name(&server.label, it));
    Ok((server.label.clone(), known, echo))
}

fn allowed(fields: &Fields, toolbox: &mut Toolbox) -> Answer<(ToolChoice, Value)> {
    let within = |problem: Problem| inside("tool_choice", problem);
    let word = fields.text("mode").map_err(within)?.unwrap_or("auto");
    let choice = mode("tool_choice.mode", word, toolbox)?;
    let given = fields.list("tools").map_err(within)?;
    let given = given.filter(|it| (1..=MAX_TOOLS).contains(&it.len()));
    let given = given.ok_or_else(|| wrong_value("tool_choice.tools", "1 to 128 tools"))?;
    let (mut names, mut echo) = (Vec::new(), Vec::new());
    for (at, value) in given.iter().enumerate() {
        let at = format!("tool_choice.tools[{at}]");
        let object = value.as_object();
        let object = object.ok_or_else(|| wrong_type(&at, "an object"))?;
        if object.get("type").is_some_and(|it| it == "mcp") {
            let (label, name, view) = remote(&at, object, toolbox)?;
            match name {
                Some(name) => names.push(name),
                None => toolbox.allowed_servers.push(label),
            }
            echo.push(view);
            continue;
        }
        let (name, view) = named(&at, object, toolbox)?;
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
