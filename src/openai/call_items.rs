//! Items of an input that tell of calls: what was called, and what came of it.

use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::fields::Fields;
use crate::openai::fields::inside;
use crate::openai::fields::unsupported;
use crate::openai::fields::wrong_type;
use crate::openai::fields::wrong_value;
use crate::openai::tools::is_name;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

/// The longest text of a call or an output.
const MAX_TEXT_BYTES: usize = 10 * 1024 * 1024;

/// Reads an item of one of these types; `None`: it is of another. Ids and states are the caller's
/// work.
///
/// # Errors
/// 400, with the path to what is wrong.
pub fn read(at: &str, kind: &str, fields: &Map<String, Value>) -> Answer<Option<Value>> {
    let given = Given { at, fields };
    match kind {
        "function_call" => {
            given.call_id()?;
            given.name()?;
            given.text("arguments")?;
        }
        "custom_tool_call" => {
            given.call_id()?;
            given.name()?;
            given.text("input")?;
        }
        "local_shell_call" => {
            given.call_id()?;
            given.action()?;
        }
        "function_call_output" | "custom_tool_call_output" => {
            given.call_id()?;
            given.output()?;
        }
        "local_shell_call_output" => return given.shell_output().map(Some),
        "mcp_list_tools" => {
            given.text("server_label")?;
            given.list("tools")?;
            given.text_or_null("error")?;
        }
        "mcp_call" => {
            given.remote()?;
            given.text_or_null("approval_request_id")?;
            given.text_or_null("output")?;
            given.text_or_null("error")?;
        }
        "mcp_approval_request" => {
            given.text("id")?;
            given.remote()?;
        }
        "mcp_approval_response" => {
            given.text("approval_request_id")?;
            given.flag("approve")?;
            given.text_or_null("reason")?;
        }
        kind if kind.starts_with("troupe:") => {
            if !is_name(kind.trim_start_matches("troupe:")) {
                return Ok(None);
            }
            given.call_id()?;
            given.text("arguments")?;
            given.text_or_null("output")?;
            given.text_or_null("error")?;
        }
        _ => return Ok(None),
    }
    Ok(Some(Value::Object(fields.clone())))
}

/// The fields of an item, and the path to it.
struct Given<'a> {
    at: &'a str,
    fields: &'a Map<String, Value>,
}

impl<'a> Given<'a> {
    fn param(&self, name: &str) -> String {
        format!("{}.{name}", self.at)
    }

    fn get(&self, name: &str) -> Answer<&'a Value> {
        let found = self.fields.get(name).filter(|it| !it.is_null());
        found.ok_or_else(|| {
            let message = "An item of this type needs it.";
            Problem::invalid("missing_required_parameter", &self.param(name), message)
        })
    }

    fn text(&self, name: &str) -> Answer<&'a str> {
        let text = self.get(name)?.as_str();
        let text = text.ok_or_else(|| wrong_type(&self.param(name), "a string"))?;
        must_be_short(&self.param(name), text)?;
        Ok(text)
    }

    fn text_or_null(&self, name: &str) -> Answer<()> {
        match self.fields.get(name).is_none_or(Value::is_null) {
            true => Ok(()),
            false => self.text(name).map(drop),
        }
    }

    fn call_id(&self) -> Answer<()> {
        match self.text("call_id")?.is_empty() {
            true => Err(wrong_value(
                &self.param("call_id"),
                "one character at least",
            )),
            false => Ok(()),
        }
    }

    fn name(&self) -> Answer<()> {
        match is_name(self.text("name")?) {
            true => Ok(()),
            false => Err(wrong_value(
                &self.param("name"),
                "at most 64 letters, digits, `_` and `-`",
            )),
        }
    }

    /// A call of a tool elsewhere.
    fn remote(&self) -> Answer<()> {
        self.text("server_label")?;
        self.text("name")?;
        self.text("arguments").map(drop)
    }

    fn list(&self, name: &str) -> Answer<()> {
        match self.get(name)?.is_array() {
            true => Ok(()),
            false => Err(wrong_type(&self.param(name), "a list")),
        }
    }

    fn flag(&self, name: &str) -> Answer<()> {
        match self.get(name)?.is_boolean() {
            true => Ok(()),
            false => Err(wrong_type(&self.param(name), "true or false")),
        }
    }

    fn action(&self) -> Answer<()> {
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
            given.whole("timeout_ms", 0..=i64::from(u32::MAX))?;
            let env = given.object("env")?.into_iter().flatten();
            let mut wrong = env.filter(|it| !it.1.is_string());
            match wrong.next() {
                None => Ok(()),
                Some((name, _)) => Err(wrong_type(&format!("env.{name}"), "a string")),
            }
        };
        read().map_err(|it| inside(&param, it))
    }

    /// A text, or parts that are texts.
    fn output(&self) -> Answer<()> {
        let param = self.param("output");
        match self.get("output")? {
            Value::String(text) => must_be_short(&param, text),
            Value::Array(parts) => {
                let mut parts = parts.iter().enumerate();
                parts.try_for_each(|(n, part)| text_part(&format!("{param}[{n}]"), part))
            }
            _ => Err(wrong_type(&param, "a string or a list of parts")),
        }
    }

    /// Some clients name the call in `id`, as this item's own documentation once did.
    fn shell_output(&self) -> Answer<Value> {
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

fn text_part(at: &str, part: &Value) -> Answer<()> {
    let kind = part["type"].as_str().unwrap_or_default();
    match kind {
        "input_text" | "output_text" | "text" => {
            let param = format!("{at}.text");
            let text = part["text"].as_str();
            must_be_short(&param, text.ok_or_else(|| wrong_type(&param, "a string"))?)
        }
        "input_image" | "input_file" | "input_video" | "input_audio" => {
            Err(unsupported(&format!("{at}.type")))
        }
        _ => Err(wrong_value(&format!("{at}.type"), "the type of a part")),
    }
}

fn must_be_short(param: &str, text: &str) -> Answer<()> {
    match text.len() <= MAX_TEXT_BYTES {
        true => Ok(()),
        false => Err(wrong_value(param, "at most 10 MiB of text")),
    }
}
