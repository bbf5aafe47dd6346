//! Defines the texts around the entries of a preset, such as instructions and templates, with their
//! defaults, and the default main prompts. Macros are expanded in all of them.

use serde::{Deserialize, Serialize};

/// The main prompt.
pub const MAIN_PROMPT: &str = "You are {{char}}, in a conversation with {{notChar}}. \
Write the next message of {{char}}, and only of {{char}}.";
/// The main prompt of a group. It is the same for all speakers, so that the prompt cache of a provider can
/// keep it; the group nudge at the end names the speaker.
pub const GROUP_MAIN_PROMPT: &str = "This is a conversation of {{group}} with {{users}}. \
Write the next message of the character whose turn it is, and only of that character.";
/// The main prompt of an impersonation.
pub const IMPERSONATION_MAIN_PROMPT: &str = "You write for {{user}}, who is a person in a conversation. \
Write the next message of {{user}}, and only of {{user}}.";
/// Asks the model to add to the card; disabled by default.
pub const ENHANCE_DEFINITIONS: &str = "Where you know more about {{char}} than is written here, use it. \
What is written here comes first.";

/// The short texts around the entries of a prompt. Blank ones are omitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PresetTexts {
    /// The last instruction of an impersonation.
    pub impersonation_prompt: String,
    /// Marks the start of the chat.
    pub new_chat_prompt: String,
    /// Marks the start of a group chat.
    pub new_group_chat_prompt: String,
    /// Precedes each block of example messages.
    pub new_example_chat_prompt: String,
    /// Follows the history of a group.
    pub group_nudge_prompt: String,
    /// Follows the history when a message is continued; `{{lastChatMessage}}` is that message.
    pub continue_nudge_prompt: String,
    /// The beginning of each reply, where the provider accepts one.
    pub assistant_prefill: String,
    /// The beginning of a text that the model writes for a user, where the provider accepts one.
    pub assistant_impersonation: String,
    /// Sent as a message of the user if the newest message is one of a character.
    pub replace_empty_message: String,
    /// The template for all lore of one position; `{0}` is the lore.
    pub lore_format: String,
    /// The template for the scenario.
    pub scenario_format: String,
    /// The template for the personality.
    pub personality_format: String,
    /// The template for the user's persona.
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
            assistant_prefill: String::new(),
            assistant_impersonation: String::new(),
            replace_empty_message: String::new(),
            lore_format: own("{0}"),
            scenario_format: own("Scenario: {{scenario}}"),
            personality_format: own("Personality of {{char}}: {{personality}}"),
            persona_format: own("About {{user}}: {{persona}}"),
        }
    }
}
