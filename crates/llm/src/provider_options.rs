//! The options of a provider that affect only its API requests: the reasoning effort, how roles are
//! arranged, what is added to a request or left out, and how long Ollama keeps a model in memory. Also
//! raises the token limit of a request by the maximum number of reasoning tokens.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::compatibility::backend::ModelBackend;
use crate::compatibility::refusals::Refusals;
use crate::compatibility::role_handling::{RoleHandling, SystemRole};
use crate::reasoning::effort::Effort;
use crate::request::Request;
use crate::text_completion::completion_api::{CompletionApi, ProviderMode};

/// The key of the settings under which the server records what it has detected about a provider.
pub const DETECTED: &str = "detected";
/// The key in it of the backend that the list of models stated.
pub const BACKEND: &str = "backend";
/// The key in it of the fields that the endpoint has refused, each with the time.
pub const REFUSED_FIELDS: &str = "refused_fields";
/// The key in it of the models that have refused the order of roles, each with the time.
pub const REFUSED_ROLE_ORDER: &str = "refused_role_order";
/// The key in it of the text completion API that the endpoint has.
pub const DETECTED_COMPLETION_API: &str = "text_completion_api";

/// API options of one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderOptions {
    /// How much the model should reason before its reply; `None` uses the model's default.
    pub reasoning: Option<ReasoningEffort>,
    /// How long Ollama keeps a model in memory after a call, in Ollama's format: `10m`, `-1`.
    pub keep_alive: Option<String>,
    pub role_handling: RoleHandling,
    pub system_role: SystemRole,
    /// Fields that are merged into the body of every request.
    pub extra_body: Map<String, Value>,
    pub stream_options: StreamOptions,
    pub prefill: Prefill,
    /// The samplers to send, by their names in requests; `None`: those that the backend knows.
    pub samplers: Option<BTreeSet<String>>,
    /// The backend that the list of models stated, else that of the host.
    pub backend: ModelBackend,
    pub mode: ProviderMode,
    /// Which API a text is sent to, in the mode of text completion.
    pub completion_api: CompletionApi,
    /// Fields that the endpoint has refused.
    pub refused_fields: BTreeSet<String>,
    /// Models that have refused the order of roles.
    pub refused_role_order: BTreeSet<String>,
    /// The host of the base URL; not from the settings.
    pub host: String,
    /// Whether the server continues a last message with `prefix: true`. Follows from its address, not
    /// from the settings.
    pub supports_prefix: bool,
}

/// Whether `stream_options` is sent, which asks for the token counts of a streamed response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = StreamOptions)]
#[serde(rename_all = "snake_case")]
pub enum StreamOptions {
    /// Until the endpoint refuses it.
    #[default]
    Auto,
    On,
    Off,
}

/// Whether the beginning of a reply is sent, for the model to continue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Prefill)]
#[serde(rename_all = "snake_case")]
pub enum Prefill {
    /// If the API or the backend is known to continue it.
    #[default]
    Auto,
    On,
    Off,
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
        let detected = &settings[DETECTED];
        Self {
            reasoning: read(&settings["reasoning"]),
            keep_alive: keep_alive.map(str::to_owned),
            role_handling: read(&settings["role_handling"]),
            system_role: read(&settings["system_role"]),
            extra_body: settings["extra_body"]
                .as_object()
                .cloned()
                .unwrap_or_default(),
            stream_options: read(&settings["stream_options"]),
            prefill: read(&settings["prefill"]),
            samplers: read(&settings["samplers"]),
            backend: read(&detected[BACKEND]),
            mode: read(&settings["mode"]),
            completion_api: read::<CompletionApi>(&settings["text_completion_api"])
                .or_detected(read(&detected[DETECTED_COMPLETION_API])),
            refused_fields: keys(&detected[REFUSED_FIELDS]),
            refused_role_order: keys(&detected[REFUSED_ROLE_ORDER]),
            host: String::new(),
            supports_prefix: false,
        }
    }

    /// Returns what is refused of a request of this model, as far as it is known.
    pub fn known_refusals(&self, model: &str) -> Refusals {
        let mut fields = self.refused_fields.clone();
        let name = "stream_options".to_owned();
        match self.stream_options {
            StreamOptions::Auto => false,
            StreamOptions::On => fields.remove(&name),
            StreamOptions::Off => fields.insert(name),
        };
        Refusals {
            pictures: false,
            role_order: self.refused_role_order.contains(model),
            fields,
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

fn read<T: Default + DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

fn keys(object: &Value) -> BTreeSet<String> {
    let fields = object.as_object();
    fields
        .map(|it| it.keys().cloned().collect())
        .unwrap_or_default()
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

    use super::{Prefill, ProviderOptions, ReasoningEffort};
    use crate::compatibility::backend::ModelBackend;
    use crate::compatibility::role_handling::{RoleHandling, SystemRole};
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
        let more = read(json!({
            "role_handling": "strict_alternation", "system_role": "user", "stream_options": "off",
            "extra_body": {"a": 1}, "samplers": ["top_k"], "prefill": "off", "detected": {"refused_fields": {"top_k": "2026-11-29"}, "backend": "vllm"},
        }));
        assert_eq!(more.role_handling, RoleHandling::StrictAlternation);
        assert_eq!(more.system_role, SystemRole::User);
        assert_eq!(more.extra_body["a"], 1);
        assert_eq!(more.samplers, Some(["top_k".to_owned()].into()));
        assert_eq!(
            (more.prefill, more.backend),
            (Prefill::Off, ModelBackend::Vllm)
        );
        let refused = more.known_refusals("m").fields;
        assert_eq!(Vec::from_iter(refused), ["stream_options", "top_k"]);
        for nonsense in [
            json!({}),
            json!(null),
            json!({ "reasoning": "much", "keep_alive": [] }),
            json!({ "reasoning": 7, "keep_alive": 7 }),
            json!({ "role_handling": 1, "extra_body": [], "detected": [], "samplers": "auto" }),
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
