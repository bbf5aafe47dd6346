//! Checks the names of tools and schemas, and defines the name of the client's shell.

const MAX_NAME_CHARS: usize = 64;

/// What a name must be, as error messages state it.
pub(in crate::request) const NAME_RULE: &str = "at most 64 letters, digits, `_` and `-`";

/// The name of the client's shell for the model.
pub const SHELL_TOOL_NAME: &str = "local_shell";

/// Returns whether every provider accepts this as the name of a tool or a schema.
pub fn is_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(is_plain)
}

/// Returns the name under which the model sees a function of a namespace.
pub fn with_namespace(namespace: &str, name: &str) -> String {
    format!("{namespace}__{name}")
}
