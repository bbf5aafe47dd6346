//! Converts `chat_metadata.variables` of a SillyTavern chat to variables of a conversation, and
//! back.

use serde_json::{Map, Value, json};

use crate::import_warning::ImportWarning;
use crate::macros::variables::{VariableMap, VariableScope, Variables};

const FIELD: &str = "variables";

/// Returns the variables of a chat. Those beyond the limits of variables are left out with a
/// warning.
pub fn read(chat: &Map<String, Value>, warnings: &mut Vec<ImportWarning>) -> VariableMap {
    let mut variables = Variables::default();
    let stated = chat.get(FIELD).and_then(Value::as_object);
    let mut n_stated = 0;
    for (name, value) in stated.into_iter().flatten() {
        let value = match value {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        n_stated += 1;
        // PostgreSQL does not store NUL in text.
        let name = name.replace('\0', "");
        variables.set(VariableScope::Conversation, &name, &value);
    }
    let n_left_out = n_stated - variables.conversation.len();
    if n_left_out > 0 {
        let sentence = format!(
            "{n_left_out} variables of the chat were left out: a conversation has at most 256, \
             with names of at most 128 bytes."
        );
        let warning = ImportWarning::new("chat_variables_left_out", sentence);
        warnings.push(warning.with("n", n_left_out));
    }
    variables.conversation
}

/// Returns the field of `chat_metadata`; none if there are no variables.
pub fn write(variables: &VariableMap) -> Option<(String, Value)> {
    (!variables.is_empty()).then(|| (FIELD.to_owned(), json!(variables)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{read, write};

    #[test]
    fn variables_survive_a_round_trip() {
        let chat =
            json!({"variables": {"hp": 3, "met": true, "list": ["a"], "name": "Ada", "no": null}});
        let mut warnings = Vec::new();

        let variables = read(chat.as_object().unwrap(), &mut warnings);

        let expected = json!({"hp": "3", "list": "[\"a\"]", "met": "true", "name": "Ada"});
        assert_eq!(json!(variables), expected);
        let written = Map::from_iter(write(&variables));
        assert_eq!(Value::Object(written.clone())["variables"], expected);
        assert_eq!(read(&written, &mut warnings), variables);
        assert!(warnings.is_empty());
        assert_eq!(write(&read(&Map::new(), &mut warnings)), None);
    }

    #[test]
    fn variables_beyond_the_limits_are_counted() {
        let many: Map<String, Value> = (0..300).map(|n| (format!("v{n}"), json!(n))).collect();
        let mut warnings = Vec::new();

        let variables = read(
            &Map::from_iter([("variables".to_owned(), json!(many))]),
            &mut warnings,
        );

        assert_eq!(variables.len(), 256);
        assert_eq!(warnings[0].params["n"], 44);
    }
}
