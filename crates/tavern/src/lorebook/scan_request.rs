//! Defines the input of the lorebook engine for one prompt: lorebooks, messages, other texts, and
//! the World Info settings, which are parsed from the settings of a space.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::lorebook::engine_lorebook::Lorebook;
use crate::lorebook::timed_effects::TimedEffects;
use crate::presets::complete_preset::GenerationTrigger;

/// The input of one scan.
pub struct ScanRequest<'a> {
    /// By precedence: conversation, persona, then space and speaker.
    pub lorebooks: &'a [Lorebook],
    pub settings: ScanSettings,
    /// The messages visible to the speaker, newest first.
    pub messages: &'a [ScannedMessage<'a>],
    /// The number of messages in the timeline before this prompt.
    pub n_messages: i64,
    /// The number of messages written by an AI, greetings included.
    pub n_replies: i64,
    /// Texts that every entry searches: an author's note that allows scanning.
    pub extra_texts: &'a [&'a str],
    /// Texts that an entry searches if it requests them.
    pub texts: MatchTexts<'a>,
    pub speaker: ScanSpeaker<'a>,
    pub trigger: ScanTrigger,
    /// The effects of earlier scans: see [`crate::lorebook::scan_result::ScanResult::timed_effects`].
    pub timed_effects: &'a TimedEffects,
    /// The entries that the caller activates without a key, unless another rule excludes them: their keys, as
    /// [`crate::lorebook::compiled_entry::entry_key`] returns them.
    pub external_activations: &'a HashSet<String>,
    /// Expands the macros of a key or content.
    pub expand: &'a dyn Fn(&str) -> String,
    /// Returns the number of tokens of a text.
    pub count_tokens: &'a dyn Fn(&str) -> i64,
    /// The source of all randomness.
    pub seed: u64,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScannedMessage<'a> {
    pub seq: i64,
    pub name: &'a str,
    pub text: &'a str,
}

/// Texts that an entry searches if it requests them; blank if missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchTexts<'a> {
    pub persona: &'a str,
    pub description: &'a str,
    pub personality: &'a str,
    pub depth_prompt: &'a str,
    pub scenario: &'a str,
    pub creator_notes: &'a str,
}

/// The character that is about to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanSpeaker<'a> {
    /// The display name, the card's name, a nickname.
    pub names: &'a [&'a str],
    /// The tags of the card.
    pub tags: &'a [&'a str],
}

/// The generation trigger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanTrigger {
    #[default]
    Normal,
    /// The model writes for the user.
    Impersonate,
    Swipe,
    Regenerate,
    Continue,
    /// The result is not shown to users.
    Quiet,
}

impl From<GenerationTrigger> for ScanTrigger {
    fn from(trigger: GenerationTrigger) -> Self {
        match trigger {
            GenerationTrigger::Normal => Self::Normal,
            GenerationTrigger::Continue => Self::Continue,
            GenerationTrigger::Impersonate => Self::Impersonate,
            GenerationTrigger::Swipe => Self::Swipe,
            GenerationTrigger::Regenerate => Self::Regenerate,
            GenerationTrigger::Quiet => Self::Quiet,
        }
    }
}

impl ScanTrigger {
    /// Returns the word in the `triggers` of an entry.
    pub fn code(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Impersonate => "impersonate",
            Self::Swipe => "swipe",
            Self::Regenerate => "regenerate",
            Self::Continue => "continue",
            Self::Quiet => "quiet",
        }
    }
}

/// The World Info settings: `world_info` in the settings of a space.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ScanSettings {
    /// The number of messages to scan.
    pub scan_depth: usize,
    /// The share of the prompt for lore, in percent.
    pub token_budget_percent: i64,
    /// The maximum number of tokens for lore; 0: only the percentage applies.
    pub token_budget_cap: i64,
    /// Whether the content of entries may activate others.
    pub recursive: bool,
    /// The maximum number of passes: the first one and those for recursion. Only the limit of the
    /// engine applies if it is 0, or if `min_activations` is set.
    pub max_steps: usize,
    /// The scan depth grows until this many entries are active.
    pub min_activations: usize,
    /// The limit for that growth, in messages; 0: the whole conversation.
    pub min_activations_depth: usize,
    pub case_sensitive: bool,
    pub whole_words: bool,
    /// Only ASCII letters, digits and underscores are word characters.
    pub ascii_words: bool,
    /// Whether the names of speakers are scanned.
    pub include_names: bool,
    /// In an inclusion group the entry with the most matched keys wins.
    pub group_scoring: bool,
    pub insertion_strategy: LoreInsertionStrategy,
    /// The maximum number of tokens for lore, computed from the two budgets; not a setting.
    #[serde(skip)]
    pub budget: i64,
}

impl Default for ScanSettings {
    fn default() -> Self {
        Self {
            scan_depth: 2,
            token_budget_percent: 25,
            token_budget_cap: 0,
            recursive: false,
            max_steps: 3,
            min_activations: 0,
            min_activations_depth: 0,
            case_sensitive: false,
            whole_words: false,
            ascii_words: false,
            include_names: true,
            group_scoring: false,
            insertion_strategy: LoreInsertionStrategy::default(),
            budget: i64::MAX,
        }
    }
}

impl ScanSettings {
    /// Returns the settings of a space for a prompt of at most `max_tokens`. They were validated
    /// when they were stored; an invalid value is replaced by its default.
    pub fn from_space_settings(settings: &serde_json::Value, max_tokens: i64) -> Self {
        let mut stated = settings.get("world_info").cloned().unwrap_or_default();
        // A null means the default.
        if let Some(stated) = stated.as_object_mut() {
            stated.retain(|_, it| !it.is_null());
        }
        let mut settings: Self = serde_json::from_value(stated).unwrap_or_default();
        let share = max_tokens
            .max(0)
            .saturating_mul(settings.token_budget_percent)
            / 100;
        settings.budget = match settings.token_budget_cap {
            0 => share.max(1),
            cap => share.clamp(1, cap.max(1)),
        };
        settings
    }
}

/// Which lorebooks come first when entries compete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoreInsertionStrategy {
    /// By insertion order only.
    SortedEvenly,
    #[default]
    CharacterLoreFirst,
    /// The lorebooks of the space first.
    GlobalLoreFirst,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{LoreInsertionStrategy, ScanSettings};

    #[test]
    fn the_budget_is_a_capped_share_of_the_prompt() {
        let budget =
            |world| ScanSettings::from_space_settings(&json!({"world_info": world}), 1_000).budget;

        assert_eq!(budget(json!({})), 250);
        assert_eq!(budget(json!({"token_budget_percent": 50})), 500);
        assert_eq!(budget(json!({"token_budget_cap": 100})), 100);
        assert_eq!(budget(json!({"token_budget_percent": 0})), 1);
        assert_eq!(ScanSettings::from_space_settings(&json!({}), -5).budget, 1);
    }

    #[test]
    fn null_or_missing_settings_have_their_defaults() {
        let stated = json!({"world_info": {"scan_depth": null, "recursive": true, "insertion_strategy": "sorted_evenly", "x": 1}});
        let settings = ScanSettings::from_space_settings(&stated, 100);

        assert_eq!((settings.scan_depth, settings.recursive), (2, true));
        assert_eq!(
            settings.insertion_strategy,
            LoreInsertionStrategy::SortedEvenly
        );
    }
}
