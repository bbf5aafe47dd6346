//! What the engine is asked: which entries enter the prompt of one turn.

use serde::{Deserialize, Serialize};

use crate::lore::engine_lorebook::Lorebook;
use crate::lore::timed_effects::TimedEffects;

/// One turn, as far as lore is concerned.
pub struct ScanRequest<'a> {
    /// By precedence: conversation, persona, then those of the space and the speaker.
    pub lorebooks: &'a [Lorebook],
    pub settings: ScanSettings,
    /// What has been said and is seen by the speaker, newest first.
    pub messages: &'a [ScannedMessage<'a>],
    /// How many messages the timeline has before this turn.
    pub n_messages: i64,
    /// How many of them an AI wrote, greetings included.
    pub n_replies: i64,
    /// Texts that every entry looks at: an author's note that allows it.
    pub extra_texts: &'a [&'a str],
    /// Texts that an entry looks at if it says so.
    pub texts: MatchTexts<'a>,
    pub speaker: ScanSpeaker<'a>,
    pub trigger: ScanTrigger,
    /// What earlier turns left: see [`crate::lore::outcome::Outcome::timed`].
    pub timed_effects: &'a TimedEffects,
    /// Runs the macros of a key or a text.
    pub expand: &'a dyn Fn(&str) -> String,
    /// How many tokens a text has.
    pub count_tokens: &'a dyn Fn(&str) -> i64,
    /// From which all chance comes.
    pub seed: u64,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScannedMessage<'a> {
    pub seq: i64,
    pub name: &'a str,
    pub text: &'a str,
}

/// Texts that an entry looks at if it says so; blank: there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchTexts<'a> {
    pub persona: &'a str,
    pub description: &'a str,
    pub personality: &'a str,
    pub depth_prompt: &'a str,
    pub scenario: &'a str,
    pub creator_notes: &'a str,
}

/// Who is about to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanSpeaker<'a> {
    /// The display name, the card's name, a nickname.
    pub names: &'a [&'a str],
    /// Of the card.
    pub tags: &'a [&'a str],
}

/// The kind of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanTrigger {
    #[default]
    Normal,
    /// The model writes for a human.
    Impersonate,
    Swipe,
    Regenerate,
    Continue,
    /// Nobody sees what comes of it.
    Quiet,
}

impl ScanTrigger {
    /// The word in the `triggers` of an entry.
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

/// How lore is found; `world_info` in the settings of a space.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ScanSettings {
    /// How many messages are looked at.
    pub scan_depth: usize,
    /// How much of the prompt lore may take.
    pub token_budget_percent: i64,
    /// The most tokens that lore may take; 0: as many as the percentage gives.
    pub token_budget_cap: i64,
    /// May the words of an entry wake others?
    pub recursive: bool,
    /// How often the books are gone through; 0: until nothing more wakes.
    pub max_steps: usize,
    /// Look further back until so many entries are awake.
    pub min_activations: usize,
    /// How far back that goes; 0: to the beginning.
    pub min_activations_depth: usize,
    pub case_sensitive: bool,
    pub whole_words: bool,
    /// Words end where ASCII letters, digits and underscores do.
    pub ascii_words: bool,
    /// Are names of speakers looked at?
    pub include_names: bool,
    /// In a group the entry with most keys found wins.
    pub group_scoring: bool,
    pub insertion_strategy: LoreInsertionStrategy,
    /// The most tokens that lore takes: what the two budgets come to. Nobody sets it.
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
    /// The settings of a space, for a prompt of at most `room` tokens. They were judged when they
    /// were set; what cannot be read all the same is as if it had not been set.
    pub fn from_space_settings(settings: &serde_json::Value, max_tokens: i64) -> Self {
        let mut stated = settings.get("world_info").cloned().unwrap_or_default();
        // Null is as usual.
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

/// Whose entries come first when they compete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoreInsertionStrategy {
    /// By their order alone.
    SortedEvenly,
    #[default]
    CharacterLoreFirst,
    /// Those of the space.
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
