//! Converts the name of a tool of this server to its type in declarations and items
//! (`troupe:name`) and to the name that the model receives (`troupe_name`), and back.

const TYPE_PREFIX: &str = "troupe:";
const MODEL_PREFIX: &str = "troupe_";

/// Returns the type of the declaration and the calls of a tool.
pub fn item_type(name: &str) -> String {
    format!("{TYPE_PREFIX}{name}")
}

/// Returns the name of the tool with this type, or `None` if the type names no server-side tool.
pub fn tool_name(kind: &str) -> Option<&str> {
    kind.strip_prefix(TYPE_PREFIX)
}

/// Returns the name for the model of the tool with this type.
pub fn model_name(kind: &str) -> String {
    let name = tool_name(kind).unwrap_or(kind);
    format!("{MODEL_PREFIX}{name}")
}

/// Returns the name of the tool that the model called.
pub fn called_tool(model_name: &str) -> &str {
    let name = model_name.strip_prefix(MODEL_PREFIX);
    name.unwrap_or(model_name)
}
