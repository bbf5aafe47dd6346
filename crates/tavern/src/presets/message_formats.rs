//! Defines how a preset sends example messages, and what it appends to a message that is continued.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How example messages are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetExampleFormat)]
#[serde(rename_all = "snake_case")]
pub enum ExampleFormat {
    /// As messages to OpenAI, as blocks to all others.
    #[default]
    Auto,
    /// Each example message is a system message of its own; for OpenAI, its name is `example_user` or
    /// `example_assistant`.
    Messages,
    /// Each example dialogue is one system message.
    Block,
}

/// Appended to the text of a message that the model continues, in the request, and in the stored message
/// unless its text already ends with white space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetContinuePostfix)]
#[serde(rename_all = "snake_case")]
pub enum ContinuePostfix {
    #[default]
    None,
    Space,
    Newline,
    DoubleNewline,
}

impl ContinuePostfix {
    /// All values.
    pub const ALL: [Self; 4] = [Self::None, Self::Space, Self::Newline, Self::DoubleNewline];

    /// Returns the appended characters.
    pub fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Space => " ",
            Self::Newline => "\n",
            Self::DoubleNewline => "\n\n",
        }
    }
}
