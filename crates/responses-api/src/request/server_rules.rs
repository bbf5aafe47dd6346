//! The rules for requests that each server sets itself.

/// What a request may contain on this server.
#[derive(Clone, Copy, Debug)]
pub struct ServerRules {
    /// Returns whether the server has a built-in tool with this name.
    pub is_builtin_tool: fn(&str) -> bool,
    /// Returns whether an MCP server may be called with this header.
    pub is_allowed_header: fn(&str, &str) -> bool,
}
