//! Tools in no one's wire format: what a model may call, what it calls, and what came of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something that a model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Letters, digits, `_` and `-`: every API takes those.
    pub name: String,
    pub description: Option<String>,
    /// A JSON Schema of the arguments.
    pub parameters: Value,
    /// The model is held to the schema, where its API can do that; `None`: as the API does.
    pub strict: Option<bool>,
}

/// Whether a model must call a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It may not.
    None,
    /// One at least, whichever.
    Required,
    /// The one of this name.
    Named(String),
}

/// One call, complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its own among all calls of a prompt.
    pub id: String,
    pub name: String,
    /// JSON, as the model wrote it: nobody has looked whether it is any.
    pub arguments: String,
}

/// The call that a message answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredCall {
    pub id: String,
    /// Some APIs know calls by the tool's name alone.
    pub name: String,
}

/// A piece of a call, as it is streamed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCallDelta {
    /// Which call of this answer it belongs to, in the API's own count.
    pub index: usize,
    /// Told with the first piece, by APIs that have ids.
    pub id: Option<String>,
    /// Told with the first piece.
    pub name: Option<String>,
    /// What is added to the arguments; may be empty.
    pub arguments: String,
}

/// A picture or a document in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// `image/png`, `application/pdf` or another type that models take.
    pub media_type: String,
    /// The bytes, in Base64.
    pub data: String,
    /// What a document is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Attachment {
    /// Whether it is to be looked at; a document is to be read.
    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }

    /// All of it as an address.
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.data)
    }
}

/// The form that an answer must have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub enum OutputFormat {
    #[default]
    Text,
    /// Some JSON object.
    Json,
    /// JSON that fits a schema.
    Schema(OutputSchema),
}

/// A schema for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputSchema {
    pub name: String,
    pub description: Option<String>,
    pub schema: Value,
    pub strict: Option<bool>,
}
