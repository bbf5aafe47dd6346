//! Generates the ids of `/v1` objects and defines their prefixes. An id is a prefix, `_` and the 32
//! hex digits of a UUIDv7; it is opaque and needs no database.

use uuid::Uuid;

use crate::server_tools;

/// A response.
pub const RESPONSE: &str = "resp";
/// A message item.
pub const MESSAGE: &str = "msg";
/// A reasoning item.
pub const REASONING: &str = "rs";
/// A function call and its output.
pub const FUNCTION_CALL: &str = "fc";
pub const FUNCTION_CALL_OUTPUT: &str = "fco";
/// A custom tool call and its output.
pub const CUSTOM_CALL: &str = "ctc";
pub const CUSTOM_CALL_OUTPUT: &str = "ctco";
/// A command for the client's shell and its output.
pub const SHELL_CALL: &str = "lsc";
pub const SHELL_CALL_OUTPUT: &str = "lsco";
/// The record of a server-side tool call.
pub const SERVER_TOOL_CALL: &str = "tt";
/// A web search.
pub const WEB_SEARCH_CALL: &str = "ws";
/// The tool list of an MCP server, and a call of one of its tools.
pub const MCP_LIST: &str = "mcpl";
pub const MCP_CALL: &str = "mcp";
/// An approval request for an MCP call, and the user's response.
pub const MCP_APPROVAL_REQUEST: &str = "mcpr";
pub const MCP_APPROVAL_RESPONSE: &str = "mcpa";
/// The `call_id` that a call and its output share.
pub const CALL: &str = "call";
/// A compaction item.
pub const COMPACTION: &str = "cmp";
/// An API conversation.
pub const CONVERSATION: &str = "conv";
/// An assistant.
pub const ASSISTANT: &str = "asst";
/// A thread.
pub const THREAD: &str = "thread";
/// A run of a thread, and a step of it.
pub const THREAD_RUN: &str = "run";
pub const THREAD_RUN_STEP: &str = "step";

/// Returns a new id, greater than all earlier ones of this process with this prefix.
pub fn generate(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::now_v7().simple())
}

/// Returns a new id of a chat completion, whose prefix is followed by `-`.
pub fn generate_chat_completion() -> String {
    format!("chatcmpl-{}", Uuid::now_v7().simple())
}

/// Returns the id prefix for items of this type.
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
        kind if server_tools::tool_name(kind).is_some() => SERVER_TOOL_CALL,
        _ => MESSAGE,
    }
}
