//! Reads a regex script. What is missing or has a wrong type gets its usual value, as in SillyTavern.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A script that replaces what a pattern finds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct RegexScript {
    /// The name; blank if the script has none.
    pub name: String,
    /// The pattern: `/pattern/flags`, or a pattern without flags.
    pub find_regex: String,
    pub replace_string: String,
    /// Texts that are removed from what a group has matched.
    pub trim_strings: Vec<String>,
    /// The kinds of text that it changes: 1 user input, 2 AI output, 5 World Info, 6 reasoning; others
    /// have no effect.
    pub placement: Vec<i64>,
    pub disabled: bool,
    /// It changes what is shown.
    pub markdown_only: bool,
    /// It changes what is sent to a model.
    pub prompt_only: bool,
    /// With neither of these: it also runs when a message of an AI is edited.
    pub run_on_edit: bool,
    /// What macros in the pattern mean: 0 nothing, 1 their values, 2 their values as literal text.
    pub substitute_regex: i64,
    /// The least depth of a message, where the newest message has 0.
    pub min_depth: Option<i64>,
    /// The largest depth of a message.
    pub max_depth: Option<i64>,
}

impl RegexScript {
    /// Reads a script; `None` if it is no object.
    pub fn from_value(value: &Value) -> Option<Self> {
        let fields = value.as_object()?;
        let flag = |key| fields.get(key).is_some_and(is_true);
        let number = |key| fields.get(key).and_then(integer);
        Some(Self {
            name: text(fields, "scriptName"),
            find_regex: text(fields, "findRegex"),
            replace_string: text(fields, "replaceString"),
            trim_strings: trim_strings(fields.get("trimStrings")),
            placement: placement(fields.get("placement")),
            disabled: flag("disabled"),
            markdown_only: flag("markdownOnly"),
            prompt_only: flag("promptOnly"),
            run_on_edit: flag("runOnEdit"),
            substitute_regex: match fields.get("substituteRegex") {
                // Older files have a boolean.
                Some(Value::Bool(is_on)) => i64::from(*is_on),
                other => other.and_then(integer).unwrap_or_default(),
            },
            min_depth: number("minDepth").filter(|it| *it >= -1),
            max_depth: number("maxDepth").filter(|it| *it >= 0),
        })
    }

    /// Returns whether it changes neither only what is shown nor only what is sent.
    pub fn changes_stored_text(&self) -> bool {
        !self.markdown_only && !self.prompt_only
    }
}

fn text(fields: &Map<String, Value>, key: &str) -> String {
    let text = fields.get(key).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(it) => *it,
        Value::Number(it) => it.as_f64() != Some(0.0),
        Value::String(it) => it.eq_ignore_ascii_case("true") || it == "1",
        _ => false,
    }
}

/// Returns a whole number, also of a text.
fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(it) => it.as_i64().or_else(|| it.as_f64().map(|it| it as i64)),
        Value::String(it) => it.trim().parse().ok(),
        _ => None,
    }
}

fn trim_strings(value: Option<&Value>) -> Vec<String> {
    let texts = match value {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => text.lines().collect(),
        _ => Vec::new(),
    };
    let texts = texts.into_iter().filter(|it| !it.is_empty());
    texts.map(str::to_owned).collect()
}

fn placement(value: Option<&Value>) -> Vec<i64> {
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(integer).collect(),
        Some(one) => integer(one).into_iter().collect(),
        None => Vec::new(),
    }
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
