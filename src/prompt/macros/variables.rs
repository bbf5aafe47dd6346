//! What macros remember: by `setvar` and its like for a conversation, by their `global` forms for
//! its space. The number and size of variables are bounded; what is past that is not kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How many variables are kept.
const MAX_VARIABLES: usize = 256;
/// How long a name may be, in bytes.
const MAX_NAME: usize = 128;
/// How long a value may be, in bytes. What is longer is cut.
const MAX_VALUE: usize = 4 * 1024;

/// Names and values.
pub type VariableMap = BTreeMap<String, String>;

/// How far a variable is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableScope {
    Conversation,
    Space,
}

/// How far what a macro remembers is known; `None`: it remembers nothing.
pub fn scope_of(name: &str) -> Option<VariableScope> {
    let scope = match name.contains("global") {
        true => VariableScope::Space,
        false => VariableScope::Conversation,
    };
    let known = ["get", "set", "add", "inc", "dec"];
    known.contains(&operation(name)).then_some(scope)
}

/// `set` of `setvar` and `setglobalvar`; of anything else nothing.
pub fn operation(name: &str) -> &str {
    let name = name.strip_suffix("var").unwrap_or_default();
    name.strip_suffix("global").unwrap_or(name)
}

/// What is remembered, and what of it is new.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    pub conversation: VariableMap,
    pub space: VariableMap,
    /// What was set since they were read.
    pub changes: VariableChanges,
}

/// What macros have set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableChanges {
    pub conversation: VariableMap,
    pub space: VariableMap,
}

impl VariableChanges {
    /// Nothing was set.
    pub fn is_empty(&self) -> bool {
        self.conversation.is_empty() && self.space.is_empty()
    }
}

impl Variables {
    /// The value under a name; empty when there is none.
    pub fn get(&self, scope: VariableScope, name: &str) -> &str {
        let values = match scope {
            VariableScope::Conversation => &self.conversation,
            VariableScope::Space => &self.space,
        };
        values.get(name).map_or("", String::as_str)
    }

    /// Remembers a value, unless the name is too long or there are too many.
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
        // PostgreSQL refuses NUL in a text.
        let value = value[..value.floor_char_boundary(MAX_VALUE)].replace('\0', "");
        values.insert(name.to_owned(), value.clone());
        changes.insert(name.to_owned(), value);
    }

    /// Adds to a number, or to the end of a text.
    pub fn add(&mut self, scope: VariableScope, name: &str, value: &str) {
        let present = self.get(scope, name);
        let sum = match (number(present), number(value)) {
            (Some(a), Some(b)) if (a + b).is_finite() => (a + b).to_string(),
            _ => present.to_owned() + value,
        };
        self.set(scope, name, &sum);
    }
}

/// What is kept of values that come from elsewhere.
pub fn within_limits(values: VariableMap) -> VariableMap {
    let mut kept = Variables::default();
    for (name, value) in values {
        kept.set(VariableScope::Space, &name, &value);
    }
    kept.space
}

/// What counts as a number; nothing does as 0.
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
