//! The ids of this surface: a prefix, `_`, and the 32 digits of a UUIDv7 made here. Nobody reads
//! anything out of them, and no database is asked for one.

use uuid::Uuid;

/// A response.
pub const RESPONSE: &str = "resp";
/// A message item.
pub const MESSAGE: &str = "msg";
/// A reasoning item.
pub const REASONING: &str = "rs";
/// A call of a function; what came of it.
pub const FUNCTION_CALL: &str = "fc";
pub const FUNCTION_CALL_OUTPUT: &str = "fco";
/// A call of a custom tool; what came of it.
pub const CUSTOM_CALL: &str = "ctc";
pub const CUSTOM_CALL_OUTPUT: &str = "ctco";
/// A command for a client's shell; what came of it.
pub const SHELL_CALL: &str = "lsc";
pub const SHELL_CALL_OUTPUT: &str = "lsco";
/// The receipt of a tool of ours.
pub const SERVER_TOOL_CALL: &str = "tt";
/// The tools of a server elsewhere; a call of one of them.
pub const MCP_LIST: &str = "mcpl";
pub const MCP_CALL: &str = "mcp";
/// A call that somebody must agree to; whether they do.
pub const MCP_APPROVAL_REQUEST: &str = "mcpr";
pub const MCP_APPROVAL_RESPONSE: &str = "mcpa";
/// What a call and its output share.
pub const CALL: &str = "call";
/// A compaction item.
pub const COMPACTION: &str = "cmp";
/// A conversation of items.
pub const CONVERSATION: &str = "conv";

/// A new id, greater than every one this process made before with this prefix.
pub fn generate(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::now_v7().simple())
}

/// The prefix of the ids of items of this type.
pub fn prefix_for_type(kind: &str) -> &'static str {
    match kind {
        "reasoning" => REASONING,
        "function_call" => FUNCTION_CALL,
        "function_call_output" => FUNCTION_CALL_OUTPUT,
        "custom_tool_call" => CUSTOM_CALL,
        "custom_tool_call_output" => CUSTOM_CALL_OUTPUT,
        "local_shell_call" => SHELL_CALL,
        "local_shell_call_output" => SHELL_CALL_OUTPUT,
        "mcp_list_tools" => MCP_LIST,
        "mcp_call" => MCP_CALL,
        "mcp_approval_request" => MCP_APPROVAL_REQUEST,
        "mcp_approval_response" => MCP_APPROVAL_RESPONSE,
        kind if kind.starts_with("troupe:") => SERVER_TOOL_CALL,
        _ => MESSAGE,
    }
}
