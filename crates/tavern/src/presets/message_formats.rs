//! Defines how a preset sends example messages and what it adds to a text that is continued.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How example messages are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetExampleFormat)]
#[serde(rename_all = "snake_case")]
pub enum ExampleFormat {
    /// As messages to OpenAI, else as blocks.
    #[default]
    Auto,
    /// Each line is a system message of its own, named `example_user` or `example_assistant`.
    Messages,
    /// Each block is one system message.
    Block,
}

/// What follows the text of a message that the model continues, in the request only.
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
    /// All values, to read them from files.
    pub const ALL: [Self; 4] = [Self::None, Self::Space, Self::Newline, Self::DoubleNewline];

    /// Returns the text.
    pub fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Space => " ",
            Self::Newline => "\n",
            Self::DoubleNewline => "\n\n",
        }
    }
}
