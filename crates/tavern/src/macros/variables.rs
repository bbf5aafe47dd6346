//! Defines `Variables`, the variables of a conversation and its space that macros read and set, and
//! records the changes in memory. The number of variables is limited, and long values are truncated.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::macros::values;

/// The maximum number of variables.
const MAX_VARIABLES: usize = 256;
/// The maximum length of a name, in bytes.
const MAX_NAME: usize = 128;
/// The maximum length of a value, in bytes; longer values are truncated.
const MAX_VALUE: usize = 4 * 1024;

/// Values by name.
pub type VariableMap = BTreeMap<String, String>;

/// New values by name; `None`: the variable is deleted.
pub type VariableChangeMap = BTreeMap<String, Option<String>>;

/// The scope of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableScope {
    Conversation,
    Space,
}

/// The current values, and the changes among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    pub conversation: VariableMap,
    pub space: VariableMap,
    /// The changes since the values were loaded.
    pub changes: VariableChanges,
}

/// The variables set or deleted by macros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariableChanges {
    pub conversation: VariableChangeMap,
    pub space: VariableChangeMap,
}

impl VariableChanges {
    /// Returns whether nothing was set or deleted.
    pub fn is_empty(&self) -> bool {
        self.conversation.is_empty() && self.space.is_empty()
    }
}

impl Variables {
    /// Returns the value of a variable, or "" if it is not set.
    pub fn get(&self, scope: VariableScope, name: &str) -> &str {
        self.values(scope).get(name).map_or("", String::as_str)
    }

    /// Returns whether a variable is set.
    pub fn is_set(&self, scope: VariableScope, name: &str) -> bool {
        self.values(scope).contains_key(name)
    }

    /// Sets a variable, unless the name is too long or there are too many variables.
    pub fn set(&mut self, scope: VariableScope, name: &str, value: &str) {
        let (values, changes) = self.values_and_changes(scope);
        let is_known = values.contains_key(name);
        let fits = !name.is_empty() && name.len() <= MAX_NAME;
        if !fits || !is_known && values.len() >= MAX_VARIABLES {
            return;
        }
        // PostgreSQL does not store NUL in text.
        let value = value[..value.floor_char_boundary(MAX_VALUE)].replace('\0', "");
        values.insert(name.to_owned(), value.clone());
        changes.insert(name.to_owned(), Some(value));
    }

    /// Deletes a variable.
    pub fn delete(&mut self, scope: VariableScope, name: &str) {
        let (values, changes) = self.values_and_changes(scope);
        if values.remove(name).is_some() {
            changes.insert(name.to_owned(), None);
        }
    }

    /// Adds to a number, appends to a JSON list, or appends to a text. A variable that is not set
    /// counts as 0 and as an empty text.
    pub fn add(&mut self, scope: VariableScope, name: &str, value: &str) {
        let present = self.get(scope, name);
        let sum = if let Some(mut items) = to_list(present) {
            items.push(Value::from(value));
            Value::Array(items).to_string()
        } else {
            match (or_zero(present), values::to_number(value)) {
                (Some(a), Some(b)) if (a + b).is_finite() => (a + b).to_string(),
                _ => present.to_owned() + value,
            }
        };
        self.set(scope, name, &sum);
    }

    /// Subtracts from a number. Anything else is left as it is.
    pub fn subtract(&mut self, scope: VariableScope, name: &str, value: &str) {
        let numbers = or_zero(self.get(scope, name)).zip(values::to_number(value));
        if let Some((a, b)) = numbers.filter(|(a, b)| (a - b).is_finite()) {
            self.set(scope, name, &(a - b).to_string());
        }
    }

    /// Returns an item of a JSON list by its position, or of a JSON object by its key; "" if there is
    /// none.
    pub fn get_key(&self, scope: VariableScope, name: &str, key: &str) -> String {
        let value: Value = serde_json::from_str(self.get(scope, name)).unwrap_or_default();
        let item = match &value {
            Value::Array(items) => key.parse().ok().and_then(|at: usize| items.get(at)),
            Value::Object(fields) => fields.get(key),
            _ => None,
        };
        match item {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }

    /// Sets an item of a JSON list by its position, or of a JSON object by its key. A variable that is
    /// not set becomes an object; another text, and a position beyond the end of a list, is left as it
    /// is.
    pub fn set_key(&mut self, scope: VariableScope, name: &str, key: &str, item: &str) {
        let present = match self.get(scope, name) {
            "" => "{}",
            text => text,
        };
        let Ok(mut value) = serde_json::from_str(present) else {
            return;
        };
        // Numbers and other JSON values are stored as such.
        let item = serde_json::from_str(item).unwrap_or_else(|_| Value::from(item));
        match &mut value {
            Value::Array(items) => match key.parse::<usize>() {
                Ok(at) if at < items.len() => items[at] = item,
                Ok(at) if at == items.len() => items.push(item),
                _ => return,
            },
            Value::Object(fields) => {
                fields.insert(key.to_owned(), item);
            }
            _ => return,
        }
        let text = value.to_string();
        // A truncated value would no longer be JSON.
        if text.len() <= MAX_VALUE {
            self.set(scope, name, &text);
        }
    }

    fn values(&self, scope: VariableScope) -> &VariableMap {
        match scope {
            VariableScope::Conversation => &self.conversation,
            VariableScope::Space => &self.space,
        }
    }

    fn values_and_changes(
        &mut self,
        scope: VariableScope,
    ) -> (&mut VariableMap, &mut VariableChangeMap) {
        match scope {
            VariableScope::Conversation => (&mut self.conversation, &mut self.changes.conversation),
            VariableScope::Space => (&mut self.space, &mut self.changes.space),
        }
    }
}

/// Applies changes to a map of variables: sets or deletes each changed one.
pub fn apply(changes: &VariableChangeMap, values: &mut VariableMap) {
    for (name, value) in changes {
        match value {
            Some(value) => values.insert(name.clone(), value.clone()),
            None => values.remove(name),
        };
    }
}

/// Returns the imported values that are within the limits; long values are truncated.
pub fn within_limits(values: VariableMap) -> VariableMap {
    let mut kept = Variables::default();
    for (name, value) in values {
        kept.set(VariableScope::Space, &name, &value);
    }
    kept.space
}

/// Parses a number; an empty text is 0.
fn or_zero(text: &str) -> Option<f64> {
    match text.trim().is_empty() {
        true => Some(0.0),
        false => values::to_number(text),
    }
}

fn to_list(text: &str) -> Option<Vec<Value>> {
    match text.trim_start().starts_with('[') {
        true => serde_json::from_str(text).ok(),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_VALUE, MAX_VARIABLES, VariableMap, VariableScope, Variables, apply};

    const HERE: VariableScope = VariableScope::Conversation;

    #[test]
    fn numbers_are_added_and_texts_are_appended() {
        let mut variables = Variables::default();

        variables.add(HERE, "n", "2");
        variables.add(HERE, "n", "0.5");
        variables.add(VariableScope::Space, "list", "a");
        variables.add(VariableScope::Space, "list", ", b");

        assert_eq!(variables.get(HERE, "n"), "2.5");
        assert_eq!(variables.get(VariableScope::Space, "list"), "a, b");
        assert_eq!(variables.get(VariableScope::Space, "n"), "");
        assert_eq!(variables.changes.conversation["n"].as_deref(), Some("2.5"));
    }

    #[test]
    fn what_is_added_to_a_json_list_is_its_last_item() {
        let mut variables = Variables::default();
        variables.set(HERE, "bag", "[\"rope\"]");
        variables.set(HERE, "no", "[rope");

        variables.add(HERE, "bag", "lamp");
        variables.add(HERE, "no", "]");

        assert_eq!(variables.get(HERE, "bag"), "[\"rope\",\"lamp\"]");
        assert_eq!(variables.get(HERE, "no"), "[rope]");
    }

    #[test]
    fn keys_of_json_objects_and_positions_of_json_lists_are_set_and_read() {
        let mut variables = Variables::default();
        variables.set(HERE, "list", "[1]");
        variables.set(HERE, "text", "a");

        variables.set_key(HERE, "map", "hat", "red");
        variables.set_key(HERE, "map", "n", "2");
        variables.set_key(HERE, "list", "1", "b");
        variables.set_key(HERE, "list", "9", "c");
        variables.set_key(HERE, "text", "k", "v");
        variables.set_key(HERE, "map", "long", &"x".repeat(MAX_VALUE));

        assert_eq!(variables.get(HERE, "map"), "{\"hat\":\"red\",\"n\":2}");
        assert_eq!(variables.get_key(HERE, "map", "hat"), "red");
        assert_eq!(variables.get_key(HERE, "map", "n"), "2");
        assert_eq!(variables.get(HERE, "list"), "[1,\"b\"]");
        assert_eq!(variables.get_key(HERE, "list", "0"), "1");
        assert_eq!(variables.get_key(HERE, "list", "5"), "");
        assert_eq!(variables.get(HERE, "text"), "a");
        assert_eq!(variables.get_key(HERE, "text", "k"), "");
    }

    #[test]
    fn a_deleted_variable_is_a_change_if_it_was_set() {
        let mut values = VariableMap::from([("a".into(), "1".into()), ("b".into(), "2".into())]);
        let mut variables = Variables {
            conversation: values.clone(),
            ..Variables::default()
        };

        variables.delete(HERE, "a");
        variables.delete(HERE, "unknown");
        variables.set(HERE, "c", "3");
        apply(&variables.changes.conversation, &mut values);

        assert!(!variables.is_set(HERE, "a"));
        assert_eq!(variables.changes.conversation.len(), 2);
        assert_eq!(values, variables.conversation);
    }

    #[test]
    fn variables_are_limited() {
        let mut variables = Variables::default();
        for n in 0..=MAX_VARIABLES {
            variables.set(HERE, &format!("v{n}"), "x");
        }
        variables.set(HERE, "v0", &"漢".repeat(MAX_VALUE));
        variables.set(HERE, &"n".repeat(129), "x");
        variables.set(VariableScope::Space, "", "x");

        assert_eq!(variables.conversation.len(), MAX_VARIABLES);
        assert_eq!(variables.get(HERE, "v0").len(), MAX_VALUE / 3 * 3);
        assert!(variables.space.is_empty());
    }
}
