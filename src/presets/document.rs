//! What a turn goes by: the order of a prompt, the words around it, and the samplers.
//!
//! Pure, and JSON both ways. A key that is missing has its default; one that is not known is kept.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::llm::request::{PromptRole, Samplers};
use crate::presets::default_texts::{
    ENHANCE_DEFINITIONS, IMPERSONATION_MAIN_PROMPT, MAIN_PROMPT, PresetTexts,
};

/// Where an entry with a depth stands among its like, if it does not say.
pub const DEFAULT_ORDER: i64 = 100;
/// How deep an entry in the chat stands, if it does not say.
pub const DEFAULT_DEPTH: i64 = 4;

/// Everything that one turn goes by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preset {
    /// What stands in a prompt, first to last.
    #[serde(rename = "prompt_order")]
    pub order: Vec<PresetEntry>,
    /// The words around it.
    #[serde(flatten)]
    pub texts: PresetTexts,
    /// What becomes of example messages when it gets tight.
    pub examples: ExampleMessagesMode,
    /// How a model is told who said a line.
    pub names: NamesBehavior,
    /// The model's window, in tokens; `None` leaves it to the one who builds the prompt.
    pub context_tokens: Option<i64>,
    /// The most tokens an answer may have.
    pub max_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    /// Texts that end an answer; macros run in them.
    pub stop: Vec<String>,
    /// What only some models understand.
    #[serde(flatten)]
    pub samplers: Samplers,
    /// What we know nothing of.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One thing that stands in a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetEntry)]
pub struct PresetEntry {
    /// What tells it from the others of its preset.
    #[schema(min_length = 1, max_length = 200)]
    pub id: String,
    /// What people call it.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub label: String,
    /// What it stands for. `None`: its text, and nothing else.
    #[serde(default)]
    pub slot: Option<PromptSlot>,
    /// In whose name its text is said.
    #[serde(default = "system")]
    pub role: PromptRole,
    /// What it says, if its slot has a text of its own or it has none.
    #[serde(default)]
    #[schema(max_length = 100_000)]
    pub text: String,
    #[serde(default = "yes")]
    pub enabled: bool,
    #[serde(default)]
    pub place: PromptPosition,
    /// For what kinds of turns it is said; none: for all.
    #[serde(default)]
    #[schema(max_items = 6)]
    pub triggers: Vec<GenerationTrigger>,
    /// A card may not put its own words here.
    #[serde(default)]
    pub forbid_overrides: bool,
    /// What we know nothing of.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What is filled in where an entry stands.
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
    /// With the lore that asks to stand right before and after them.
    Examples,
    /// The conversation, from the new-chat line to the nudge, with all that stands at a depth.
    History,
    /// The entry's text, unless the card has post-history instructions.
    PostHistory,
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetPlace)]
#[serde(rename_all = "snake_case", from = "PositionForm")]
pub enum PromptPosition {
    /// Where the order of the preset has it.
    #[default]
    Relative,
    /// Among the messages.
    InChat {
        /// Before so many of the newest messages; 0: after all of them.
        #[schema(minimum = 0, maximum = 10_000)]
        depth: i64,
        /// At one depth the lower order comes first.
        #[schema(minimum = -10_000, maximum = 10_000)]
        order: i64,
    },
}

/// A place as it is written: bodies are read by shape, not by tag.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "This takes `relative`, or `in_chat` with `depth` and `order`."
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
    fn from(said: PositionForm) -> Self {
        match said {
            PositionForm::Word(RelativePosition::Relative) => Self::Relative,
            PositionForm::InChat { in_chat } => Self::InChat {
                depth: in_chat.depth,
                order: in_chat.order,
            },
        }
    }
}

/// What kind of turn a prompt is for.
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

/// What becomes of example messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetExamples)]
#[serde(rename_all = "snake_case")]
pub enum ExampleMessagesMode {
    /// They make room for what has been said.
    #[default]
    GraduallyPushOut,
    /// What has been said makes room for them.
    AlwaysKeep,
    /// They are not sent.
    Disabled,
}

/// How a model is told who said a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresetNames)]
#[serde(rename_all = "snake_case")]
pub enum NamesBehavior {
    /// As its provider does it best.
    #[default]
    Usual,
    /// Only where several could have said it.
    InGroups,
    /// In the text, always.
    InText,
    /// Not at all.
    Never,
}

impl Default for Preset {
    fn default() -> Self {
        Self {
            order: default_order(),
            texts: PresetTexts::default(),
            examples: ExampleMessagesMode::default(),
            names: NamesBehavior::default(),
            context_tokens: None,
            max_tokens: None,
            temperature: None,
            top_p: None,
            stop: Vec::new(),
            samplers: Samplers::default(),
            extra: Map::new(),
        }
    }
}

impl Preset {
    /// The first entry that stands for `slot`.
    pub fn entry(&self, slot: PromptSlot) -> Option<&PresetEntry> {
        self.order.iter().find(|it| it.slot == Some(slot))
    }

    /// The same preset while the model writes what a human says: the usual main prompt would have
    /// it write for a character. One that somebody chose stays.
    pub fn for_impersonation(mut self) -> Self {
        let main = self.order.iter_mut();
        for entry in main.filter(|it| it.slot == Some(PromptSlot::Main) && it.text == MAIN_PROMPT) {
            entry.text = IMPERSONATION_MAIN_PROMPT.to_owned();
        }
        self
    }
}

impl PresetEntry {
    /// An entry that stands for `slot`.
    pub fn from_slot(id: &str, label: &str, slot: PromptSlot) -> Self {
        Self {
            slot: Some(slot),
            ..Self::from_text(id, label, "")
        }
    }

    /// An entry that says `text`.
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
            extra: Map::new(),
        }
    }

    /// Is it said in a turn of this kind?
    pub fn applies_to(&self, trigger: GenerationTrigger) -> bool {
        self.enabled && (self.triggers.is_empty() || self.triggers.contains(&trigger))
    }
}

/// The ids are those of the presets in circulation, so that entries keep theirs in and out.
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
#[path = "document_tests.rs"]
mod tests;
