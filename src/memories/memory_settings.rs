//! The settings of a space's memory, and those of a member: `settings.memory` of both.

use std::ops::RangeInclusive;

use base::ids::MembershipId;
use recall::search::RecallRules;
use serde_json::Value;

use crate::memories::models::model_setting::MemoryModelSetting;
use crate::spaces::membership;

/// The maximum share of a prompt that memories use, as a divisor of its tokens.
const MAX_PROMPT_SHARE: i64 = 8;
/// The maximum number of memories of a space, unless its settings state a smaller one. A node keeps all
/// memories of a space in main memory.
pub const MAX_MEMORIES: u64 = 100_000;

/// The settings, with defaults for those that are missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemorySettings {
    is_enabled: bool,
    learn: bool,
    recall: bool,
    top_k: usize,
    threshold: f32,
    token_budget: i64,
    max_memories: u64,
}

impl MemorySettings {
    /// Reads the settings of a space; invalid values are ignored.
    pub fn of_space(settings: &Value) -> Self {
        let memory = &settings["memory"];
        let flag = |key: &str| memory[key].as_bool().unwrap_or(true);
        let defaults = RecallRules::default();
        let top_k = memory["top_k"]
            .as_u64()
            .and_then(|it| usize::try_from(it).ok());
        Self {
            is_enabled: flag("enabled"),
            learn: flag("learn"),
            recall: flag("recall"),
            top_k: top_k.unwrap_or(defaults.top_k),
            // The precision of a setting between 0 and 1 does not matter.
            threshold: memory["threshold"]
                .as_f64()
                .map_or(defaults.threshold, |it| it as f32),
            token_budget: memory["token_budget"]
                .as_i64()
                .unwrap_or(defaults.token_budget),
            max_memories: memory["max_memories"]
                .as_u64()
                .filter(|it| (1..=MAX_MEMORIES).contains(it))
                .unwrap_or(MAX_MEMORIES),
        }
    }

    /// Returns the maximum number of memories, beyond which the least valuable ones are deleted.
    pub fn max_memories(&self) -> u64 {
        self.max_memories
    }

    /// Returns whether memories are made from messages.
    pub fn learns(&self) -> bool {
        self.is_enabled && self.learn
    }

    /// Returns whether prompts contain memories.
    pub fn recalls(&self) -> bool {
        self.is_enabled && self.recall
    }

    /// Returns the minimum score of a match, from 0 to 1.
    pub fn threshold(&self) -> f32 {
        self.threshold
    }

    /// Returns the rules of a search for a prompt of this many tokens.
    pub fn rules(&self, prompt_tokens: i64, cosine_range: (f32, f32)) -> RecallRules {
        RecallRules {
            top_k: self.top_k,
            threshold: self.threshold,
            token_budget: self.token_budget.min(prompt_tokens / MAX_PROMPT_SHARE),
            cosine_range,
        }
    }
}

/// The switches of a member, both on unless its settings turn them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberSwitches {
    /// Whether memories are made from its messages.
    pub learn: bool,
    /// Whether its prompts contain memories.
    pub recall: bool,
}

impl MemberSwitches {
    /// Reads the settings of a membership; invalid values are ignored.
    pub fn of_member(settings: &Value) -> Self {
        let flag = |key: &str| settings["memory"][key].as_bool().unwrap_or(true);
        Self {
            learn: flag("learn"),
            recall: flag("recall"),
        }
    }

    /// Returns the switches of a member; both are on if it is not among `members`.
    pub fn of(members: &[membership::Model], id: MembershipId) -> Self {
        let found = members.iter().find(|it| it.id == id);
        Self::of_member(found.map_or(&Value::Null, |it| &it.settings))
    }
}

/// The settings of summaries, with defaults for those that are missing.
#[derive(Clone, Debug, PartialEq)]
pub struct SummarySettings {
    pub is_enabled: bool,
    /// The maximum number of messages of a part.
    pub chunk_messages: u32,
    /// The maximum length of the running summary, in tokens.
    pub max_tokens: u32,
    pub model: Option<MemoryModelSetting>,
}

impl SummarySettings {
    /// Reads the settings of a space; invalid values are ignored.
    pub fn of_space(settings: &Value) -> Self {
        let memory = &settings["memory"];
        let summaries = &memory["summaries"];
        let is_on = |it: &Value| it["enabled"].as_bool().unwrap_or(true);
        let within = |key: &str, range: RangeInclusive<u32>| {
            let number = summaries[key]
                .as_u64()
                .and_then(|it| u32::try_from(it).ok());
            number.filter(|it| range.contains(it))
        };
        Self {
            is_enabled: is_on(memory) && is_on(summaries),
            chunk_messages: within("chunk_messages", 10..=100).unwrap_or(30),
            max_tokens: within("max_tokens", 100..=2_000).unwrap_or(600),
            model: MemoryModelSetting::from_json(&summaries["model"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MemberSwitches, MemorySettings, SummarySettings};

    #[test]
    fn the_memory_is_on_unless_it_is_switched_off() {
        let of = |memory: Value| {
            let settings = MemorySettings::of_space(&json!({ "memory": memory }));
            (settings.learns(), settings.recalls())
        };

        assert_eq!(of(json!(null)), (true, true));
        assert_eq!(of(json!({"enabled": false})), (false, false));
        assert_eq!(of(json!({"learn": false})), (false, true));
        assert_eq!(of(json!({"recall": false})), (true, false));
    }

    #[test]
    fn the_switches_of_a_member_are_on_unless_they_are_turned_off() {
        let of = |memory: Value| {
            let switches = MemberSwitches::of_member(&json!({ "memory": memory }));
            (switches.learn, switches.recall)
        };

        assert_eq!(of(json!(null)), (true, true));
        assert_eq!(of(json!({"learn": false, "recall": null})), (false, true));
        assert_eq!(of(json!({"learn": 0, "recall": false})), (true, false));
    }

    #[test]
    fn summaries_are_on_unless_they_or_the_memory_are_turned_off() {
        let is_enabled =
            |memory: Value| SummarySettings::of_space(&json!({ "memory": memory })).is_enabled;

        assert!(is_enabled(json!(null)));
        assert!(is_enabled(json!({"learn": false, "recall": false})));
        assert!(!is_enabled(json!({"enabled": false})));
        assert!(!is_enabled(json!({"summaries": {"enabled": false}})));
    }

    #[test]
    fn settings_of_summaries_outside_their_range_are_ignored() {
        let of = |summaries: Value| {
            let settings = json!({"memory": {"summaries": summaries}});
            let settings = SummarySettings::of_space(&settings);
            (settings.chunk_messages, settings.max_tokens)
        };

        assert_eq!(
            of(json!({"chunk_messages": 10, "max_tokens": 2_000})),
            (10, 2_000)
        );
        for (chunk, max) in [
            (json!(9), json!(99)),
            (json!(u64::MAX), json!(2_001)),
            (json!("x"), json!(null)),
        ] {
            assert_eq!(
                of(json!({"chunk_messages": chunk, "max_tokens": max})),
                (30, 600)
            );
        }
    }

    #[test]
    fn an_invalid_maximum_is_ignored() {
        let of = |max: Value| {
            let settings = json!({"memory": {"max_memories": max}});
            MemorySettings::of_space(&settings).max_memories()
        };

        assert_eq!(of(json!(7)), 7);
        for invalid in [json!(null), json!(0), json!(-1), json!(100_001), json!("7")] {
            assert_eq!(of(invalid), 100_000);
        }
    }

    #[test]
    fn memories_use_an_eighth_of_a_prompt_at_most() {
        let settings = MemorySettings::of_space(&json!({"memory": {"top_k": 3, "threshold": 0.5}}));

        let rules = settings.rules(8_000, (0.0, 1.0));
        assert_eq!(
            (rules.top_k, rules.threshold, rules.token_budget),
            (3, 0.5, 512)
        );
        assert_eq!(settings.rules(800, (0.0, 1.0)).token_budget, 100);
    }
}
