//! The options of a provider that affect only its API requests: the reasoning effort, and how long
//! Ollama keeps a model in memory. Also raises the token limit of a request by the maximum number
//! of reasoning tokens.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// API options of one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderOptions {
    /// How much the model should reason before its reply; `None` uses the model's default.
    pub reasoning: Option<ReasoningEffort>,
    /// How long Ollama keeps a model in memory after a call, in Ollama's format: `10m`, `-1`.
    pub keep_alive: Option<String>,
}

/// How much a model should reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ReasoningEffort)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    Off,
    Low,
    Medium,
    High,
}

impl ProviderOptions {
    /// Reads the options from the object `settings` of a provider; invalid values are ignored.
    pub fn from_settings(settings: &Value) -> Self {
        let keep_alive = settings["keep_alive"].as_str();
        Self {
            reasoning: serde_json::from_value(settings["reasoning"].clone()).unwrap_or(None),
            keep_alive: keep_alive.map(str::to_owned),
        }
    }

    /// Returns the token limit of a request plus the reasoning tokens: APIs count these toward the
    /// limit, but the limit of the request is meant for the reply only.
    pub fn add_reasoning_tokens(&self, max_tokens: Option<u32>) -> Option<u32> {
        let n_reasoning_tokens = self.reasoning.map_or(0, ReasoningEffort::max_tokens);
        max_tokens.map(|it| it.saturating_add(n_reasoning_tokens))
    }
}

impl ReasoningEffort {
    /// Returns the value that most APIs use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Returns the maximum number of reasoning tokens.
    pub fn max_tokens(self) -> u32 {
        match self {
            Self::Off => 0,
            Self::Low => 1_024,
            Self::Medium => 8_192,
            Self::High => 24_576,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ProviderOptions, ReasoningEffort};

    #[test]
    fn invalid_settings_are_ignored() {
        let read = |settings| ProviderOptions::from_settings(&settings);

        assert_eq!(
            read(json!({ "reasoning": "low", "keep_alive": "-1" })),
            ProviderOptions {
                reasoning: Some(ReasoningEffort::Low),
                keep_alive: Some("-1".to_owned()),
            }
        );
        for nonsense in [
            json!({}),
            json!(null),
            json!({ "reasoning": "much", "keep_alive": [] }),
            json!({ "reasoning": 7, "keep_alive": 7 }),
        ] {
            assert_eq!(
                read(nonsense.clone()),
                ProviderOptions::default(),
                "{nonsense}"
            );
        }
    }

    #[test]
    fn reasoning_tokens_are_added_to_the_length_limit() {
        let options = ProviderOptions {
            reasoning: Some(ReasoningEffort::Low),
            ..ProviderOptions::default()
        };

        assert_eq!(options.add_reasoning_tokens(Some(300)), Some(1_324));
        assert_eq!(options.add_reasoning_tokens(Some(u32::MAX)), Some(u32::MAX));
        assert_eq!(options.add_reasoning_tokens(None), None);
    }
}
