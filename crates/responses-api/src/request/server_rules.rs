//! Defines `ServerRules`, what the caller of this crate supplies: whether a built-in tool exists,
//! whether a header may be sent to an MCP server, and whether the server can search the web.

/// The checks of a request that depend on the server.
#[derive(Clone, Copy, Debug)]
pub struct ServerRules {
    /// Returns whether the server has a built-in tool with this name.
    pub is_builtin_tool: fn(&str) -> bool,
    /// Returns whether an MCP server may be called with this header.
    pub is_allowed_header: fn(&str, &str) -> bool,
    /// Whether the server runs `web_search`.
    pub has_web_search: bool,
}
