//! Defines whether a provider gets chats or texts, and which text completion API it has.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a provider gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ProviderMode)]
#[serde(rename_all = "snake_case")]
pub enum ProviderMode {
    /// Messages.
    #[default]
    Chat,
    /// One text that it continues. Requests without such a text are sent as messages.
    TextCompletion,
}

/// A text completion API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = CompletionApi)]
#[serde(rename_all = "snake_case")]
pub enum CompletionApi {
    /// The one that a test of the provider has detected, otherwise that of OpenAI, which all servers
    /// have.
    #[default]
    Auto,
    /// `/v1/completions`.
    Openai,
    /// `/completion` of llama.cpp's server.
    LlamaCpp,
    /// `/api/extra/generate/stream` of KoboldCpp.
    Koboldcpp,
}

impl CompletionApi {
    /// Returns this API, or the detected one if it is `Auto`.
    pub fn or_detected(self, detected: Self) -> Self {
        match self {
            Self::Auto => detected,
            stated => stated,
        }
    }

    /// Returns whether its paths begin at the root of the server instead of `/v1`.
    pub fn is_native(self) -> bool {
        matches!(self, Self::LlamaCpp | Self::Koboldcpp)
    }
}
