//! Types for tool declarations, calls and results, attachments and output formats, independent of
//! any API.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Letters, digits, `_` and `-`, which every API accepts.
    pub name: String,
    pub description: Option<String>,
    /// A JSON Schema of the arguments.
    pub parameters: Value,
    /// Whether the API must enforce the schema, if it can; `None` uses the API's default.
    pub strict: Option<bool>,
}

/// Whether a model must call a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call at least one tool.
    Required,
    /// The model must call the tool with this name.
    Named(String),
}

/// A complete tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique among all calls of a prompt.
    pub id: String,
    pub name: String,
    /// JSON text as the model wrote it, not validated.
    pub arguments: String,
}

/// The call that a message answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredCall {
    pub id: String,
    /// Needed because some APIs identify calls by the tool's name alone.
    pub name: String,
}

/// A streamed piece of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCallDelta {
    /// The index of the call in this response, as the API counts.
    pub index: usize,
    /// In the first piece, from APIs that have ids.
    pub id: Option<String>,
    /// In the first piece.
    pub name: Option<String>,
    /// Text to append to the arguments; may be empty.
    pub arguments: String,
}

/// An image or a document in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// `image/png`, `application/pdf` or another type that models accept.
    pub media_type: String,
    /// The bytes, in Base64.
    pub data: String,
    /// File name of a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The text that stands for it if the model rejects images; `None`: it is never left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

impl Attachment {
    /// Returns whether this is an image; otherwise it is a document.
    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }

    /// Returns the content as a data URL.
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.data)
    }
}

/// The required format of a response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub enum OutputFormat {
    #[default]
    Text,
    /// Any JSON object.
    Json,
    /// JSON that matches a schema.
    Schema(OutputSchema),
}

/// A schema for a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputSchema {
    pub name: String,
    pub description: Option<String>,
    pub schema: Value,
    pub strict: Option<bool>,
}
