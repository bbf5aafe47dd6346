//! The role of a prompt message (system, user or assistant), used by presets, lorebooks and model
//! requests.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The role of a prompt message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = PromptRole)]
#[serde(rename_all = "snake_case")]
pub enum PromptRole {
    System,
    User,
    Assistant,
}

impl PromptRole {
    /// Returns the role as chat APIs spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}
