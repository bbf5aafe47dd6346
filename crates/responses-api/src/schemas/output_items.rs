//! Describes the items of an output. Items may have more fields than are listed, because those of
//! clients are returned unchanged.

use serde_json::Value;
use utoipa::ToSchema;

use crate::item::ContentPart;
use crate::schemas::optional_fields;
use crate::status::ItemStatus;

/// An item. Clients must accept types that they do not know.
#[derive(Clone, Debug, ToSchema)]
#[serde(untagged)]
pub enum OutputItemSchema {
    Message(MessageItem),
    Reasoning(ReasoningItem),
    FunctionCall(FunctionCallItem),
    CustomToolCall(CustomToolCallItem),
    LocalShellCall(LocalShellCallItem),
    McpListTools(McpListToolsItem),
    McpCall(McpCallItem),
    McpApprovalRequest(McpApprovalRequestItem),
    ServerToolCall(ServerToolCallItem),
    Other(OtherItem),
}

/// A message of the model.
#[derive(Clone, Debug, ToSchema)]
pub struct MessageItem {
    pub id: String,
    #[schema(pattern = "^message$")]
    pub r#type: String,
    pub status: ItemStatus,
    #[schema(pattern = "^assistant$")]
    pub role: String,
    pub content: Vec<ContentPart>,
    /// The speaker, if the model is a character or a space.
    #[schema(schema_with = optional_fields::object)]
    pub metadata: Option<Value>,
}

/// The reasoning before an answer.
#[derive(Clone, Debug, ToSchema)]
pub struct ReasoningItem {
    pub id: String,
    #[schema(pattern = "^reasoning$")]
    pub r#type: String,
    pub status: ItemStatus,
    pub summary: Vec<ContentPart>,
}

/// A call of a function, which the client runs.
#[derive(Clone, Debug, ToSchema)]
pub struct FunctionCallItem {
    pub id: String,
    #[schema(pattern = "^function_call$")]
    pub r#type: String,
    pub status: ItemStatus,
    pub call_id: String,
    pub name: String,
    /// JSON as the model wrote it.
    pub arguments: String,
}

/// A call of a tool with one text argument, which the client runs.
#[derive(Clone, Debug, ToSchema)]
pub struct CustomToolCallItem {
    pub id: String,
    #[schema(pattern = "^custom_tool_call$")]
    pub r#type: String,
    pub status: ItemStatus,
    pub call_id: String,
    pub name: String,
    pub input: String,
}

/// A command for the client's shell.
#[derive(Clone, Debug, ToSchema)]
pub struct LocalShellCallItem {
    pub id: String,
    #[schema(pattern = "^local_shell_call$")]
    pub r#type: String,
    pub status: ItemStatus,
    pub call_id: String,
    #[schema(value_type = Object)]
    pub action: Value,
}

/// The tools of an MCP server.
#[derive(Clone, Debug, ToSchema)]
pub struct McpListToolsItem {
    pub id: String,
    #[schema(pattern = "^mcp_list_tools$")]
    pub r#type: String,
    pub status: ItemStatus,
    pub server_label: String,
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<Value>,
}

/// The record of a call of an MCP server's tool.
#[derive(Clone, Debug, ToSchema)]
pub struct McpCallItem {
    pub id: String,
    #[schema(pattern = "^mcp_call$")]
    pub r#type: String,
    pub status: ItemStatus,
    pub server_label: String,
    pub name: String,
    pub arguments: String,
    pub approval_request_id: Option<String>,
    pub output: Option<String>,
    pub error: Option<String>,
}

/// A call of an MCP server's tool that waits for an approval.
#[derive(Clone, Debug, ToSchema)]
pub struct McpApprovalRequestItem {
    pub id: String,
    #[schema(pattern = "^mcp_approval_request$")]
    pub r#type: String,
    pub status: ItemStatus,
    pub server_label: String,
    pub name: String,
    pub arguments: String,
}

/// The record of a tool call that ran on this server.
#[derive(Clone, Debug, ToSchema)]
pub struct ServerToolCallItem {
    pub id: String,
    #[schema(pattern = "^troupe:")]
    pub r#type: String,
    pub status: ItemStatus,
    pub call_id: String,
    pub arguments: String,
    pub output: Option<String>,
    pub error: Option<String>,
}

/// An item of another type: of a client, or a compaction.
#[derive(Clone, Debug, ToSchema)]
pub struct OtherItem {
    pub r#type: String,
}
