//! Input items of tool calls: the call, its output, and approvals.

use serde_json::{Map, Value, json};

use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::fields::{Fields, nested_in, unsupported, wrong_type, wrong_value};
use crate::web::v1::parsing::tools::is_name;

/// The maximum length of a text in a call or an output, in bytes.
const MAX_TEXT_BYTES: usize = 10 * 1024 * 1024;

/// Parses an item of one of these types; returns `None` for other types. The caller checks ids and
/// sets the status.
///
/// # Errors
/// Returns 400 with the path of the invalid field.
pub fn parse(at: &str, kind: &str, fields: &Map<String, Value>) -> V1Result<Option<Value>> {
    let item = ItemFields { at, fields };
    match kind {
        "function_call" => {
            item.call_id()?;
            item.name()?;
            item.text("arguments")?;
        }
        "custom_tool_call" => {
            item.call_id()?;
            item.name()?;
            item.text("input")?;
        }
        "local_shell_call" => {
            item.call_id()?;
            item.action()?;
        }
        "function_call_output" | "custom_tool_call_output" => {
            item.call_id()?;
            item.output()?;
        }
        "local_shell_call_output" => return item.shell_output().map(Some),
        "mcp_list_tools" => {
            item.text("server_label")?;
            item.list("tools")?;
            item.optional_text("error")?;
        }
        "mcp_call" => {
            item.mcp_call()?;
            item.optional_text("approval_request_id")?;
            item.optional_text("output")?;
            item.optional_text("error")?;
        }
        "mcp_approval_request" => {
            item.text("id")?;
            item.mcp_call()?;
        }
        "mcp_approval_response" => {
            item.text("approval_request_id")?;
            item.flag("approve")?;
            item.optional_text("reason")?;
        }
        kind if kind.starts_with("troupe:") => {
            if !is_name(kind.trim_start_matches("troupe:")) {
                return Ok(None);
            }
            item.call_id()?;
            item.text("arguments")?;
            item.optional_text("output")?;
            item.optional_text("error")?;
        }
        _ => return Ok(None),
    }
    Ok(Some(Value::Object(fields.clone())))
}

/// The fields of an item, and the item's path.
struct ItemFields<'a> {
    at: &'a str,
    fields: &'a Map<String, Value>,
}

impl<'a> ItemFields<'a> {
    fn param(&self, name: &str) -> String {
        format!("{}.{name}", self.at)
    }

    fn get(&self, name: &str) -> V1Result<&'a Value> {
        let found = self.fields.get(name).filter(|it| !it.is_null());
        found.ok_or_else(|| {
            let message = "An item of this type requires this field.";
            V1Error::invalid("missing_required_parameter", &self.param(name), message)
        })
    }

    fn text(&self, name: &str) -> V1Result<&'a str> {
        let text = self.get(name)?.as_str();
        let text = text.ok_or_else(|| wrong_type(&self.param(name), "a string"))?;
        require_text_limit(&self.param(name), text)?;
        Ok(text)
    }

    fn optional_text(&self, name: &str) -> V1Result<()> {
        match self.fields.get(name).is_none_or(Value::is_null) {
            true => Ok(()),
            false => self.text(name).map(drop),
        }
    }

    fn call_id(&self) -> V1Result<()> {
        match self.text("call_id")?.is_empty() {
            true => Err(wrong_value(
                &self.param("call_id"),
                "at least one character",
            )),
            false => Ok(()),
        }
    }

    fn name(&self) -> V1Result<()> {
        match is_name(self.text("name")?) {
            true => Ok(()),
            false => Err(wrong_value(
                &self.param("name"),
                "at most 64 letters, digits, `_` and `-`",
            )),
        }
    }

    /// Validates a call of a tool of an MCP server.
    fn mcp_call(&self) -> V1Result<()> {
        self.text("server_label")?;
        self.text("name")?;
        self.text("arguments").map(drop)
    }

    fn list(&self, name: &str) -> V1Result<()> {
        match self.get(name)?.is_array() {
            true => Ok(()),
            false => Err(wrong_type(&self.param(name), "a list")),
        }
    }

    fn flag(&self, name: &str) -> V1Result<()> {
        match self.get(name)?.is_boolean() {
            true => Ok(()),
            false => Err(wrong_type(&self.param(name), "true or false")),
        }
    }

    fn action(&self) -> V1Result<()> {
        let param = self.param("action");
        let action = self.get("action")?.as_object();
        let action = action.ok_or_else(|| wrong_type(&param, "an object"))?;
        if action.get("type").is_some_and(|it| it != "exec") {
            return Err(wrong_value(&format!("{param}.type"), "exec"));
        }
        let command = action.get("command").and_then(Value::as_array);
        if !command.is_some_and(|it| it.iter().all(Value::is_string)) {
            return Err(wrong_type(&format!("{param}.command"), "a list of strings"));
        }
        let given = Fields(action);
        let read = || {
            given.text("user")?;
            given.text("working_directory")?;
            given.integer("timeout_ms", 0..=i64::from(u32::MAX))?;
            let env = given.object("env")?.into_iter().flatten();
            let mut wrong = env.filter(|it| !it.1.is_string());
            match wrong.next() {
                None => Ok(()),
                Some((name, _)) => Err(wrong_type(&format!("env.{name}"), "a string")),
            }
        };
        read().map_err(|it| nested_in(&param, it))
    }

    /// Accepts a text, or a list of text parts.
    fn output(&self) -> V1Result<()> {
        let param = self.param("output");
        match self.get("output")? {
            Value::String(text) => require_text_limit(&param, text),
            Value::Array(parts) => {
                let mut parts = parts.iter().enumerate();
                parts.try_for_each(|(n, part)| text_part(&format!("{param}[{n}]"), part))
            }
            _ => Err(wrong_type(&param, "a string or a list of parts")),
        }
    }

    /// Some clients send the call's id in `id`, as older documentation of this item showed it.
    fn shell_output(&self) -> V1Result<Value> {
        self.text("output")?;
        let mut item = self.fields.clone();
        if self.fields.get("call_id").is_none_or(Value::is_null) {
            let call_id = self.text("id")?;
            item.insert("call_id".to_owned(), json!(call_id));
            item.shift_remove("id");
        }
        Ok(Value::Object(item))
    }
}

fn text_part(at: &str, part: &Value) -> V1Result<()> {
    let kind = part["type"].as_str().unwrap_or_default();
    match kind {
        "input_text" | "output_text" | "text" => {
            let param = format!("{at}.text");
            let text = part["text"].as_str();
            require_text_limit(&param, text.ok_or_else(|| wrong_type(&param, "a string"))?)
        }
        "input_image" | "input_file" | "input_video" | "input_audio" => {
            Err(unsupported(&format!("{at}.type")))
        }
        _ => Err(wrong_value(&format!("{at}.type"), "the type of a part")),
    }
}

fn require_text_limit(param: &str, text: &str) -> V1Result<()> {
    match text.len() <= MAX_TEXT_BYTES {
        true => Ok(()),
        false => Err(wrong_value(param, "at most 10 MiB of text")),
    }
}
