//! What a model is asked: the finished prompt and the sampling settings, in no one's wire format.

use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;

/// One call of a model. Built by `prompt/` or by a door, spent by `generation/`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub model: String,
    /// Oldest first.
    pub messages: Vec<Message>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    /// The most tokens the answer may have; `None` leaves it to the model.
    pub max_tokens: Option<u32>,
    pub stop: Vec<String>,
    /// Lets the demo model repeat itself; real models are never sent it.
    pub seed: u64,
    /// Display name of who is about to speak; only the demo model needs to be told.
    pub speaker: String,
}

/// One entry of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PromptMessage)]
pub struct Message {
    pub role: Role,
    /// Who said it, where that is not clear from the role. Each provider says it in its own way.
    pub name: Option<String>,
    pub content: String,
}

impl Message {
    /// A message without a speaker's name.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            name: None,
            content: content.into(),
        }
    }

    /// The same message, said by somebody.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            ..self
        }
    }
}

/// Whose side of the prompt a message is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = PromptRole)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    System,
    User,
    Assistant,
}

impl Role {
    /// The word of the role, as chat APIs spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}
