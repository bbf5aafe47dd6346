//! The names of tools.

use crate::item::SERVER_TOOL_PREFIX;

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

/// Returns the name of a server-side tool for the model.
pub fn builtin_tool_alias(kind: &str) -> String {
    format!("troupe_{}", kind.trim_start_matches(SERVER_TOOL_PREFIX))
}

/// Returns the registry name of a server-side tool from its name for the model.
pub fn builtin_tool_name(alias: &str) -> &str {
    alias.trim_start_matches("troupe_")
}
