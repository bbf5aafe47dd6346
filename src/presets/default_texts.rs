//! The words of a preset that says nothing else.
//!
//! Macros run in all of them.

use serde::{Deserialize, Serialize};

/// The main prompt.
pub const MAIN_PROMPT: &str = "You are {{char}}, in a conversation with {{notChar}}. \
Write the next message of {{char}}, and only of {{char}}.";
/// The same while the model writes what a human says.
pub const IMPERSONATION_MAIN_PROMPT: &str = "You write for {{user}}, who is a person in a conversation. \
Write the next message of {{user}}, and only of {{user}}.";
/// What asks the model to add to a card; off unless somebody turns it on.
pub const ENHANCE_DEFINITIONS: &str = "Where you know more about {{char}} than is written here, use it. \
What is written here comes first.";

/// The short texts that stand around the entries of a prompt. A blank one is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PresetTexts {
    /// The last word while the model writes what a human says.
    pub impersonation_prompt: String,
    /// Where the real conversation begins.
    pub new_chat_prompt: String,
    /// The same in a group.
    pub new_group_chat_prompt: String,
    /// Goes before each block of example messages.
    pub new_example_chat_prompt: String,
    /// Ends the history of a group.
    pub group_nudge_prompt: String,
    /// Ends the history when a message is to be continued; `{{lastChatMessage}}` is that message.
    pub continue_nudge_prompt: String,
    /// Stands around all lore of one place; `{0}` is the lore.
    pub lore_format: String,
    /// Stands around the scenario.
    pub scenario_format: String,
    /// Stands around the personality.
    pub personality_format: String,
    /// Stands around the persona of the user.
    pub persona_format: String,
}

impl Default for PresetTexts {
    fn default() -> Self {
        let own = str::to_owned;
        Self {
            impersonation_prompt: own(
                "[Write the next message of {{user}}, in the voice in which \
                {{user}} has written so far. Write for nobody else.]",
            ),
            new_chat_prompt: own("[Start a new chat]"),
            new_group_chat_prompt: own("[Start a new group chat. Group members: {{group}}]"),
            new_example_chat_prompt: own("[Example messages]"),
            group_nudge_prompt: own("[Write the next reply only as {{char}}.]"),
            continue_nudge_prompt: own(
                "[Go on with the last message from where it ends. Repeat nothing of it.]",
            ),
            lore_format: own("{0}"),
            scenario_format: own("Scenario: {{scenario}}"),
            personality_format: own("Personality of {{char}}: {{personality}}"),
            persona_format: own("About {{user}}: {{persona}}"),
        }
    }
}
