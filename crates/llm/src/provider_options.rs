//! The options of a provider that affect only its API requests: the reasoning effort, and how long
//! Ollama keeps a model in memory. Also raises the token limit of a request by the maximum number
//! of reasoning tokens.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::reasoning::effort::Effort;
use crate::request::Request;

/// API options of one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderOptions {
    /// How much the model should reason before its reply; `None` uses the model's default.
    pub reasoning: Option<ReasoningEffort>,
    /// How long Ollama keeps a model in memory after a call, in Ollama's format: `10m`, `-1`.
    pub keep_alive: Option<String>,
    /// Whether the server continues a last message with `prefix: true`. Follows from its address, not
    /// from the settings.
    pub supports_prefix: bool,
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
            supports_prefix: false,
        }
    }

    /// Returns how much the model should reason for a request: what the request states, otherwise the
    /// setting.
    pub fn effort(&self, request: &Request) -> Option<Effort> {
        request.effort.or(self.reasoning.map(Effort::from))
    }

    /// Returns whether the model is asked to reason for a request.
    pub fn reasons(&self, request: &Request) -> bool {
        self.effort(request).is_some_and(|it| it > Effort::None)
    }

    /// Returns the token limit to send for a request. APIs count reasoning tokens toward it. The limit
    /// of a request that states an effort includes them; otherwise the limit is meant for the reply
    /// only, and the reasoning tokens of the setting are added.
    pub fn token_limit(&self, request: &Request) -> Option<u32> {
        let added = self.reasoning.filter(|_| request.effort.is_none());
        let limit = request.max_tokens?;
        Some(added.map_or(limit, |it| Effort::from(it).add_tokens(limit)))
    }
}

impl From<ReasoningEffort> for Effort {
    fn from(setting: ReasoningEffort) -> Self {
        match setting {
            ReasoningEffort::Off => Self::None,
            ReasoningEffort::Low => Self::Low,
            ReasoningEffort::Medium => Self::Medium,
            ReasoningEffort::High => Self::High,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ProviderOptions, ReasoningEffort};
    use crate::reasoning::effort::Effort;
    use crate::request::Request;

    #[test]
    fn invalid_settings_are_ignored() {
        let read = |settings| ProviderOptions::from_settings(&settings);

        assert_eq!(
            read(json!({ "reasoning": "low", "keep_alive": "-1" })),
            ProviderOptions {
                reasoning: Some(ReasoningEffort::Low),
                keep_alive: Some("-1".to_owned()),
                ..ProviderOptions::default()
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
    fn reasoning_tokens_of_the_setting_are_added_to_the_length_limit() {
        let options = ProviderOptions {
            reasoning: Some(ReasoningEffort::Low),
            ..ProviderOptions::default()
        };
        let limit = |max_tokens, effort| {
            options.token_limit(&Request {
                max_tokens,
                effort,
                ..Request::default()
            })
        };

        assert_eq!(limit(Some(300), None), Some(1_324));
        assert_eq!(limit(Some(u32::MAX), None), Some(u32::MAX));
        assert_eq!(limit(None, None), None);
        assert_eq!(limit(Some(300), Some(Effort::High)), Some(300));
    }
}
