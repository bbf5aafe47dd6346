//! Defines the items of a response's output (messages, reasoning, tool calls, compaction) and their
//! parts, and sets the status and the result of a call.
//!
//! **Invariant:** the order of the fields is the order on the wire: id, type and status first, the
//! metadata last.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::status::ItemStatus;
use crate::{object_ids, server_tools};

/// An item of the output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputItem {
    pub id: String,
    #[serde(flatten)]
    pub body: ItemBody,
    /// Its speaker, if the model has speakers. Clients return it unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// An item without its id: what depends on its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ItemBody {
    Message(OutputMessage),
    Reasoning(OutputReasoning),
    FunctionCall(FunctionCall),
    CustomToolCall(CustomToolCall),
    LocalShellCall(LocalShellCall),
    WebSearchCall(WebSearchCall),
    McpListTools(McpListTools),
    McpCall(McpCall),
    McpApprovalRequest(McpApprovalRequest),
    /// A summary that replaces a longer history.
    Compaction {
        encrypted_content: String,
    },
    #[serde(untagged)]
    ServerToolCall(ServerToolCall),
    /// An item that this version does not know, with its type.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

/// A message of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputMessage {
    pub status: ItemStatus,
    pub role: OutputRole,
    pub content: Vec<ContentPart>,
}

/// The role of a message in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputRole {
    Assistant,
}

/// The reasoning before an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputReasoning {
    pub status: ItemStatus,
    pub summary: Vec<ContentPart>,
    /// The reasoning in the form that the model's API expects back.
    #[serde(default, skip_serializing_if = "is_hidden")]
    pub encrypted_content: Option<SealedReasoning>,
}

/// Reasoning that only this server can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedReasoning {
    pub text: String,
    /// Whether the client receives it; otherwise it is only stored.
    pub is_shown: bool,
}

/// The field of a stored item that contains sealed reasoning which the client does not receive.
pub const SEALED_FIELD: &str = "sealed_reasoning";

impl Serialize for SealedReasoning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SealedReasoning {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (text, is_shown) = (String::deserialize(deserializer)?, true);
        Ok(Self { text, is_shown })
    }
}

fn is_hidden(sealed: &Option<SealedReasoning>) -> bool {
    !sealed.as_ref().is_some_and(|it| it.is_shown)
}

/// Returns a stored item as its owner may see it.
pub fn visible(mut stored: Value) -> Value {
    if let Some(fields) = stored.as_object_mut() {
        fields.shift_remove(SEALED_FIELD);
    }
    stored
}

/// A part of a message or of reasoning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    OutputText {
        text: String,
        /// Citations, as the model's API reports them.
        #[serde(default)]
        annotations: Vec<Value>,
        /// One object for each token, as the model's API reports them.
        #[serde(default)]
        logprobs: Vec<Value>,
    },
    Refusal {
        refusal: String,
    },
    SummaryText {
        text: String,
    },
}

/// A call of a function, which the client runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    #[serde(default)]
    pub status: ItemStatus,
    pub call_id: String,
    pub name: String,
    /// The namespace in which the client declared the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// JSON as the model wrote it.
    pub arguments: String,
}

/// A call of a tool with one text argument, which the client runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CustomToolCall {
    #[serde(default)]
    pub status: ItemStatus,
    pub call_id: String,
    pub name: String,
    pub input: String,
}

/// A command for the client's shell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalShellCall {
    #[serde(default)]
    pub status: ItemStatus,
    pub call_id: String,
    pub action: ShellAction,
}

/// What a shell runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ShellAction {
    Exec {
        command: Vec<String>,
        /// Texts by the name of the variable, in the model's order.
        env: Map<String, Value>,
        /// This and the next two are the model's arguments, unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        working_directory: Option<Value>,
    },
}

/// The record of a web search that ran on this server. Its results are only in the prompt of the
/// response to which it belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebSearchCall {
    #[serde(default)]
    pub status: SearchStatus,
    pub action: SearchAction,
}

/// The status of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchStatus {
    #[default]
    InProgress,
    Completed,
    /// Not finished when the response ended.
    Incomplete,
    /// The search returned an error.
    Failed,
}

/// What a search does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SearchAction {
    Search { query: String },
}

/// The tools of an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpListTools {
    #[serde(default)]
    pub status: ItemStatus,
    pub server_label: String,
    /// Each with the name, description, schema and hints that its server declares.
    #[serde(default)]
    pub tools: Vec<Value>,
    /// Why the server did not list them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The record of a call of an MCP server's tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpCall {
    #[serde(default)]
    pub status: ItemStatus,
    pub server_label: String,
    pub name: String,
    pub arguments: String,
    /// The request that the user approved.
    pub approval_request_id: Option<String>,
    pub output: Option<String>,
    pub error: Option<String>,
}

/// A call of an MCP server's tool that waits for the user's approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpApprovalRequest {
    #[serde(default)]
    pub status: ItemStatus,
    pub server_label: String,
    pub name: String,
    pub arguments: String,
}

/// The record of a tool call that ran on this server. It contains its own output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerToolCall {
    /// See [`server_tools::item_type`].
    #[serde(rename = "type", deserialize_with = "server_tool_type")]
    pub kind: String,
    #[serde(default)]
    pub status: ItemStatus,
    pub call_id: String,
    pub arguments: String,
    pub output: Option<String>,
    pub error: Option<String>,
}

fn server_tool_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let kind = String::deserialize(deserializer)?;
    match server_tools::tool_name(&kind) {
        Some(_) => Ok(kind),
        None => Err(de::Error::custom("not the type of a server-side tool")),
    }
}

impl OutputItem {
    /// Returns an item with a new id.
    pub fn new(body: ItemBody) -> Self {
        Self {
            id: object_ids::generate(body.id_prefix()),
            body,
            metadata: None,
        }
    }

    /// Returns the item as it is stored: with reasoning that its owner does not see.
    pub fn to_stored_value(&self) -> Value {
        let mut value = self.to_value();
        if let ItemBody::Reasoning(reasoning) = &self.body
            && let Some(sealed) = reasoning
                .encrypted_content
                .as_ref()
                .filter(|it| !it.is_shown)
        {
            value[SEALED_FIELD] = Value::String(sealed.text.clone());
        }
        value
    }

    /// Returns the item as JSON.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("an item is an object with text keys")
    }
}

impl WebSearchCall {
    /// Sets the status, unless the search has failed.
    fn set_status(&mut self, status: ItemStatus) {
        if self.status != SearchStatus::Failed {
            self.status = match status {
                ItemStatus::InProgress => SearchStatus::InProgress,
                ItemStatus::Completed => SearchStatus::Completed,
                ItemStatus::Incomplete => SearchStatus::Incomplete,
            };
        }
    }
}

impl ItemBody {
    /// Returns the prefix of the item's id.
    fn id_prefix(&self) -> &'static str {
        match self {
            Self::Message(_) => object_ids::MESSAGE,
            Self::Reasoning(_) => object_ids::REASONING,
            Self::FunctionCall(_) => object_ids::FUNCTION_CALL,
            Self::CustomToolCall(_) => object_ids::CUSTOM_CALL,
            Self::LocalShellCall(_) => object_ids::SHELL_CALL,
            Self::WebSearchCall(_) => object_ids::WEB_SEARCH_CALL,
            Self::McpListTools(_) => object_ids::MCP_LIST,
            Self::McpCall(_) => object_ids::MCP_CALL,
            Self::McpApprovalRequest(_) => object_ids::MCP_APPROVAL_REQUEST,
            Self::Compaction { .. } => object_ids::COMPACTION,
            Self::ServerToolCall(_) => object_ids::SERVER_TOOL_CALL,
            Self::Other(fields) => {
                let kind = fields.get("type").and_then(Value::as_str);
                object_ids::prefix_for_type(kind.unwrap_or_default())
            }
        }
    }

    /// Sets the status, if an item of this type has one.
    pub fn set_status(&mut self, status: ItemStatus) {
        match self {
            Self::Message(it) => it.status = status,
            Self::Reasoning(it) => it.status = status,
            Self::FunctionCall(it) => it.status = status,
            Self::CustomToolCall(it) => it.status = status,
            Self::LocalShellCall(it) => it.status = status,
            Self::WebSearchCall(it) => it.set_status(status),
            Self::McpListTools(it) => it.status = status,
            Self::McpCall(it) => it.status = status,
            Self::McpApprovalRequest(it) => it.status = status,
            Self::ServerToolCall(it) => it.status = status,
            Self::Compaction { .. } | Self::Other(_) => {}
        }
    }

    /// Sets the result of a call that ran on our side or on an MCP server: its output or an error
    /// message.
    pub fn set_result(&mut self, result: Result<String, String>) {
        let (output, error) = match self {
            Self::McpCall(it) => (&mut it.output, &mut it.error),
            Self::ServerToolCall(it) => (&mut it.output, &mut it.error),
            Self::WebSearchCall(it) if result.is_err() => {
                it.status = SearchStatus::Failed;
                return;
            }
            _ => return,
        };
        match result {
            Ok(text) => *output = Some(text),
            Err(message) => *error = Some(message),
        }
    }

    /// Returns whether it records a call that ran on our side or on an MCP server.
    pub fn is_server_call(&self) -> bool {
        matches!(
            self,
            Self::ServerToolCall(_) | Self::McpCall(_) | Self::WebSearchCall(_)
        )
    }

    /// Returns whether it completes an answer: a message, or a call that the client answers.
    pub fn is_answer(&self) -> bool {
        matches!(
            self,
            Self::Message(_)
                | Self::FunctionCall(_)
                | Self::CustomToolCall(_)
                | Self::LocalShellCall(_)
                | Self::McpApprovalRequest(_)
        )
    }
}
