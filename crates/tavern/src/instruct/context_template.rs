//! Defines the context template, which arranges everything before the chat of a text completion
//! prompt, the system prompt template, and the template of the reasoning, with the names of
//! SillyTavern's files. Unknown keys are preserved.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// How everything before the chat is arranged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = ContextTemplate)]
pub struct ContextTemplate {
    #[schema(max_length = 200)]
    pub name: String,
    /// Values such as `{{description}}`, conditions such as `{{#if persona}}…{{/if}}`, and text.
    #[schema(max_length = 50_000)]
    pub story_string: String,
    /// A line before each block of example messages; blank: none.
    #[schema(max_length = 2_000)]
    pub example_separator: String,
    /// A line before the chat; blank: none.
    #[schema(max_length = 2_000)]
    pub chat_start: String,
    /// `example_separator` and `chat_start` end the reply.
    pub use_stop_strings: bool,
    /// A line that begins with the name of another member ends the reply.
    pub names_as_stop_strings: bool,
    /// The prompt ends with the name of the speaker, also if messages have no names.
    pub always_force_name2: bool,
    /// A line break ends the reply.
    pub single_line: bool,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A main prompt and post-history instructions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SystemPromptTemplate)]
pub struct SystemPromptTemplate {
    #[schema(max_length = 200)]
    pub name: String,
    /// The main prompt; blank: not set.
    #[schema(max_length = 100_000)]
    pub content: String,
    /// The post-history instructions; blank: not set.
    #[schema(max_length = 100_000)]
    pub post_history: String,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The tags with which the model marks its reasoning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = ReasoningTemplate)]
pub struct ReasoningTemplate {
    #[schema(max_length = 200)]
    pub name: String,
    #[schema(max_length = 200)]
    pub prefix: String,
    #[schema(max_length = 200)]
    pub suffix: String,
    /// Kept for export.
    #[schema(max_length = 200)]
    pub separator: String,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Default for ContextTemplate {
    fn default() -> Self {
        Self {
            name: String::new(),
            story_string: String::new(),
            example_separator: String::new(),
            chat_start: String::new(),
            use_stop_strings: false,
            names_as_stop_strings: true,
            always_force_name2: false,
            single_line: false,
            extra: Map::new(),
        }
    }
}

impl ReasoningTemplate {
    /// Returns the tags around the reasoning, without white space around them; `None` if one is blank.
    pub fn tags(&self) -> Option<(&str, &str)> {
        let tags = (self.prefix.trim(), self.suffix.trim());
        (!tags.0.is_empty() && !tags.1.is_empty()).then_some(tags)
    }
}
