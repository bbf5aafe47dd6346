//! Defines the complete preset with which a prompt is built, and its defaults: the order of its
//! entries, the texts around them, and the samplers.
//!
//! No I/O. Serializable as JSON: missing keys have defaults, and unknown keys are preserved.

use base::prompt_role::PromptRole;
use base::samplers::Samplers;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::instruct::context_template::{ContextTemplate, ReasoningTemplate};
use crate::instruct::instruct_template::InstructTemplate;
use crate::presets::cache_layout::CacheLayout;
use crate::presets::message_formats::{ContinuePostfix, ExampleFormat};
use crate::presets::preset_texts::{
    ENHANCE_DEFINITIONS, GROUP_MAIN_PROMPT, IMPERSONATION_MAIN_PROMPT, MAIN_PROMPT, PresetTexts,
};

/// The injection order of an entry without one.
pub const DEFAULT_ORDER: i64 = 100;
/// The injection depth of an entry without one, in messages.
pub const DEFAULT_DEPTH: i64 = 4;

/// All settings that a prompt is built with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preset {
    /// The entries of the prompt, first to last.
    #[serde(rename = "prompt_order")]
    pub order: Vec<PresetEntry>,
    /// The texts around the entries.
    #[serde(flatten)]
    pub texts: PresetTexts,
    /// Whether example messages are dropped to make room.
    pub examples: ExampleMessagesMode,
    /// How example messages are sent.
    pub example_format: ExampleFormat,
    /// Whether the stored reply begins with the prefill.
    pub show_prefill: bool,
    /// Appended to a message that the model continues.
    pub continue_postfix: ContinuePostfix,
    /// Where World Info that is not Constant is sent.
    pub cache_layout: CacheLayout,
    /// How the author of a message is named.
    pub names: NamesBehavior,
    /// The context window in tokens; `None`: the builder of the prompt decides.
    pub context_tokens: Option<i64>,
    /// The maximum number of tokens of a reply.
    pub max_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    /// Texts that end a reply; macros are expanded.
    pub stop: Vec<String>,
    /// Samplers that only some models support.
    #[serde(flatten)]
    pub samplers: Samplers,
    /// The sequences around messages in text completion; `None`: chosen by the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruct: Option<InstructTemplate>,
    /// How text completion arranges everything before the chat; `None`: that of the instruct template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextTemplate>,
    /// The tags with which the model marks its reasoning, besides the usual ones.
    #[serde(rename = "reasoning", skip_serializing_if = "Option::is_none")]
    pub reasoning_tags: Option<ReasoningTemplate>,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One entry of the prompt order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetEntry)]
pub struct PresetEntry {
    /// Unique within the preset.
    #[schema(min_length = 1, max_length = 200)]
    pub id: String,
    /// The name shown to users.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub label: String,
    /// What is inserted here. Null: only the text of the entry.
    #[serde(default)]
    pub slot: Option<PromptSlot>,
    /// The role under which the text is sent.
    #[serde(default = "system")]
    pub role: PromptRole,
    /// The text; used by the slots `main` and `post_history`, and without a slot.
    #[serde(default)]
    #[schema(max_length = 100_000)]
    pub text: String,
    #[serde(default = "yes")]
    pub enabled: bool,
    #[serde(default)]
    pub place: PromptPosition,
    /// The kinds of generation to which the entry applies; empty: all.
    #[serde(default)]
    #[schema(max_items = 6)]
    pub triggers: Vec<GenerationTrigger>,
    /// The card may not replace this text.
    #[serde(default)]
    pub forbid_overrides: bool,
    /// Marks a custom prompt as a built-in one. Such a prompt is not sent, because SillyTavern does not send it
    /// either.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub system_prompt: bool,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What is inserted in place of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetSlot)]
#[serde(rename_all = "snake_case")]
pub enum PromptSlot {
    /// The entry's text, unless the card has a system prompt.
    Main,
    LoreBefore,
    Persona,
    Description,
    Personality,
    Scenario,
    LoreAfter,
    /// Example messages, with the lore placed directly before and after them.
    Examples,
    /// The conversation, from the new-chat line to the nudge, including all entries with a depth.
    History,
    /// The entry's text, unless the card has post-history instructions.
    PostHistory,
}

/// The position of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetPlace)]
#[serde(rename_all = "snake_case", from = "PositionForm")]
pub enum PromptPosition {
    /// At its position in the order of the preset.
    #[default]
    Relative,
    /// Among the messages.
    InChat {
        /// The number of messages after it; 0: after all of them.
        #[schema(minimum = 0, maximum = 10_000)]
        depth: i64,
        /// At the same depth, the lower order comes first.
        #[schema(minimum = -10_000, maximum = 10_000)]
        order: i64,
    },
}

/// A position in JSON: a word or an object.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "Must be `relative`, or `in_chat` with `depth` and `order`."
)]
enum PositionForm {
    Word(RelativePosition),
    InChat { in_chat: InChatPosition },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RelativePosition {
    Relative,
}

#[derive(Deserialize)]
struct InChatPosition {
    depth: i64,
    order: i64,
}

impl From<PositionForm> for PromptPosition {
    fn from(form: PositionForm) -> Self {
        match form {
            PositionForm::Word(RelativePosition::Relative) => Self::Relative,
            PositionForm::InChat { in_chat } => Self::InChat {
                depth: in_chat.depth,
                order: in_chat.order,
            },
        }
    }
}

/// The kind of generation that a prompt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetTrigger)]
#[serde(rename_all = "snake_case")]
pub enum GenerationTrigger {
    Normal,
    Continue,
    Impersonate,
    Swipe,
    Regenerate,
    Quiet,
}

/// How example messages are handled when the prompt exceeds the context window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetExamples)]
#[serde(rename_all = "snake_case")]
pub enum ExampleMessagesMode {
    /// They are dropped before messages.
    #[default]
    GraduallyPushOut,
    /// Messages are dropped before them.
    AlwaysKeep,
    /// They are not sent.
    Disabled,
}

/// How the author of a message is named in the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetNames)]
#[serde(rename_all = "snake_case")]
pub enum NamesBehavior {
    /// In the way that suits the provider.
    #[default]
    Usual,
    /// Only if the conversation has several possible authors.
    InGroups,
    /// Always in the text.
    InText,
    /// Never.
    Never,
    /// The speaker's own messages have no name; all others are messages of the user with the name in the
    /// text. With the other values, the model sees the messages of all characters as its own.
    SpeakerOnly,
}

impl Default for Preset {
    fn default() -> Self {
        Self {
            order: default_order(),
            texts: PresetTexts::default(),
            examples: ExampleMessagesMode::default(),
            example_format: ExampleFormat::default(),
            show_prefill: false,
            continue_postfix: ContinuePostfix::default(),
            cache_layout: CacheLayout::default(),
            names: NamesBehavior::default(),
            context_tokens: None,
            max_tokens: None,
            temperature: None,
            top_p: None,
            stop: Vec::new(),
            samplers: Samplers::default(),
            instruct: None,
            context: None,
            reasoning_tags: None,
            extra: Map::new(),
        }
    }
}

impl Preset {
    /// Returns the first entry for `slot`.
    pub fn entry(&self, slot: PromptSlot) -> Option<&PresetEntry> {
        self.order.iter().find(|it| it.slot == Some(slot))
    }

    /// Returns the preset for an impersonation: the default main prompt, which would have the model
    /// write for a character, is replaced. A custom one is kept.
    pub fn for_impersonation(mut self) -> Self {
        self.replace_default_main_prompt(IMPERSONATION_MAIN_PROMPT);
        self
    }

    /// Returns the preset for a character of a group: the default main prompt is replaced by one that
    /// names no speaker. A custom one is kept, and so is the default one if no nudge names the speaker.
    pub fn for_group(mut self) -> Self {
        let nudge = self.texts.group_nudge_prompt.to_ascii_lowercase();
        if nudge.contains("{{char}}") {
            self.replace_default_main_prompt(GROUP_MAIN_PROMPT);
        }
        self
    }

    fn replace_default_main_prompt(&mut self, text: &str) {
        let main = self.order.iter_mut();
        for entry in main.filter(|it| it.slot == Some(PromptSlot::Main) && it.text == MAIN_PROMPT) {
            text.clone_into(&mut entry.text);
        }
    }
}

impl PresetEntry {
    /// Creates an entry for `slot`.
    pub fn from_slot(id: &str, label: &str, slot: PromptSlot) -> Self {
        Self {
            slot: Some(slot),
            ..Self::from_text(id, label, "")
        }
    }

    /// Creates an entry with `text`.
    pub fn from_text(id: &str, label: &str, text: &str) -> Self {
        Self {
            id: id.to_owned(),
            label: label.to_owned(),
            slot: None,
            role: PromptRole::System,
            text: text.to_owned(),
            enabled: true,
            place: PromptPosition::Relative,
            triggers: Vec::new(),
            forbid_overrides: false,
            system_prompt: false,
            extra: Map::new(),
        }
    }

    /// Returns whether the entry applies to this kind of generation.
    pub fn applies_to(&self, trigger: GenerationTrigger) -> bool {
        let is_sent = self.enabled && !self.system_prompt;
        is_sent && (self.triggers.is_empty() || self.triggers.contains(&trigger))
    }
}

/// The ids are those of SillyTavern's presets, so that entries keep them through import and export.
fn default_order() -> Vec<PresetEntry> {
    let slot = PresetEntry::from_slot;
    vec![
        PresetEntry {
            text: MAIN_PROMPT.to_owned(),
            ..slot("main", "Main prompt", PromptSlot::Main)
        },
        slot(
            "worldInfoBefore",
            "Lore before the character",
            PromptSlot::LoreBefore,
        ),
        slot("personaDescription", "Persona", PromptSlot::Persona),
        slot("charDescription", "Description", PromptSlot::Description),
        slot("charPersonality", "Personality", PromptSlot::Personality),
        slot("scenario", "Scenario", PromptSlot::Scenario),
        PresetEntry {
            enabled: false,
            ..PresetEntry::from_text(
                "enhanceDefinitions",
                "Enhance definitions",
                ENHANCE_DEFINITIONS,
            )
        },
        PresetEntry::from_text("nsfw", "Auxiliary prompt", ""),
        slot(
            "worldInfoAfter",
            "Lore after the character",
            PromptSlot::LoreAfter,
        ),
        slot("dialogueExamples", "Example messages", PromptSlot::Examples),
        slot("chatHistory", "Chat history", PromptSlot::History),
        slot(
            "jailbreak",
            "Post-history instructions",
            PromptSlot::PostHistory,
        ),
    ]
}

fn system() -> PromptRole {
    PromptRole::System
}

fn yes() -> bool {
    true
}

#[cfg(test)]
#[path = "complete_preset_tests.rs"]
mod tests;
