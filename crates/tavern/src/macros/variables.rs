//! Defines `Variables`, which executes the macros that read and set variables (`getvar`, `setvar`
//! and similar for a conversation, the `global` forms for its space), and records the changes in
//! memory. The number of variables is limited, and long values are truncated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The maximum number of variables.
const MAX_VARIABLES: usize = 256;
/// The maximum length of a name, in bytes.
const MAX_NAME: usize = 128;
/// The maximum length of a value, in bytes; longer values are truncated.
const MAX_VALUE: usize = 4 * 1024;

/// Values by name.
pub type VariableMap = BTreeMap<String, String>;

/// The scope of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableScope {
    Conversation,
    Space,
}

/// Returns the scope of a variable macro, or `None` for another macro.
pub fn scope_of(name: &str) -> Option<VariableScope> {
    let scope = match name.contains("global") {
        true => VariableScope::Space,
        false => VariableScope::Conversation,
    };
    let known = ["get", "set", "add", "inc", "dec"];
    known.contains(&operation(name)).then_some(scope)
}

/// Returns the operation of a variable macro, such as `set` for `setvar` and `setglobalvar`.
fn operation(name: &str) -> &str {
    let name = name.strip_suffix("var").unwrap_or_default();
    name.strip_suffix("global").unwrap_or(name)
}

/// The current values, and the changes among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    pub conversation: VariableMap,
    pub space: VariableMap,
    /// The changes since the values were loaded.
    pub changes: VariableChanges,
}

/// The variables set by macros.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableChanges {
    pub conversation: VariableMap,
    pub space: VariableMap,
}

impl VariableChanges {
    /// Returns whether nothing was set.
    pub fn is_empty(&self) -> bool {
        self.conversation.is_empty() && self.space.is_empty()
    }
}

impl Variables {
    /// Returns the value of a variable, or "" if it is not set.
    pub fn get(&self, scope: VariableScope, name: &str) -> &str {
        let values = match scope {
            VariableScope::Conversation => &self.conversation,
            VariableScope::Space => &self.space,
        };
        values.get(name).map_or("", String::as_str)
    }

    /// Sets a variable, unless the name is too long or there are too many variables.
    pub fn set(&mut self, scope: VariableScope, name: &str, value: &str) {
        let (values, changes) = match scope {
            VariableScope::Conversation => (&mut self.conversation, &mut self.changes.conversation),
            VariableScope::Space => (&mut self.space, &mut self.changes.space),
        };
        let is_known = values.contains_key(name);
        let fits = !name.is_empty() && name.len() <= MAX_NAME;
        if !fits || !is_known && values.len() >= MAX_VARIABLES {
            return;
        }
        // PostgreSQL does not store NUL in text.
        let value = value[..value.floor_char_boundary(MAX_VALUE)].replace('\0', "");
        values.insert(name.to_owned(), value.clone());
        changes.insert(name.to_owned(), value);
    }

    /// Executes a variable macro. Returns the text that replaces it; `None` if an argument is
    /// missing.
    pub fn execute(
        &mut self,
        macro_name: &str,
        scope: VariableScope,
        args: &[String],
    ) -> Option<String> {
        let name = args.first()?.trim();
        let value = args.get(1).map(String::as_str);
        let output = match operation(macro_name) {
            "get" => self.get(scope, name).to_owned(),
            "set" => {
                self.set(scope, name, value?);
                String::new()
            }
            "add" => {
                self.add(scope, name, value?);
                String::new()
            }
            step => {
                let one = if step == "inc" { "1" } else { "-1" };
                self.add(scope, name, one);
                self.get(scope, name).to_owned()
            }
        };
        Some(output)
    }

    /// Adds to a number, or appends to a text.
    pub fn add(&mut self, scope: VariableScope, name: &str, value: &str) {
        let present = self.get(scope, name);
        let sum = match (number(present), number(value)) {
            (Some(a), Some(b)) if (a + b).is_finite() => (a + b).to_string(),
            _ => present.to_owned() + value,
        };
        self.set(scope, name, &sum);
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
fn number(text: &str) -> Option<f64> {
    match text.trim() {
        "" => Some(0.0),
        text => text.parse().ok().filter(|it: &f64| it.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_VALUE, MAX_VARIABLES, VariableScope, Variables};

    #[test]
    fn numbers_are_added_and_texts_are_appended() {
        let mut variables = Variables::default();

        variables.add(VariableScope::Conversation, "n", "2");
        variables.add(VariableScope::Conversation, "n", "0.5");
        variables.add(VariableScope::Space, "list", "a");
        variables.add(VariableScope::Space, "list", ", b");

        assert_eq!(variables.get(VariableScope::Conversation, "n"), "2.5");
        assert_eq!(variables.get(VariableScope::Space, "list"), "a, b");
        assert_eq!(variables.get(VariableScope::Space, "n"), "");
        assert_eq!(variables.changes.conversation["n"], "2.5");
    }

    #[test]
    fn variables_are_limited() {
        let mut variables = Variables::default();
        for n in 0..=MAX_VARIABLES {
            variables.set(VariableScope::Conversation, &format!("v{n}"), "x");
        }
        variables.set(VariableScope::Conversation, "v0", &"漢".repeat(MAX_VALUE));
        variables.set(VariableScope::Conversation, &"n".repeat(129), "x");
        variables.set(VariableScope::Space, "", "x");

        assert_eq!(variables.conversation.len(), MAX_VARIABLES);
        assert_eq!(
            variables.get(VariableScope::Conversation, "v0").len(),
            MAX_VALUE / 3 * 3
        );
        assert!(variables.space.is_empty());
    }
}
