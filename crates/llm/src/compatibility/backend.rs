//! The software behind an OpenAI-compatible endpoint, as far as it determines which samplers and
//! flags a request may contain. Known from the host of a vendor, or from the list of models.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Asks the chat template not to begin a new message.
const CONTINUATION: [(&str, bool); 2] = [
    ("add_generation_prompt", false),
    ("continue_final_message", true),
];
/// KoboldCpp has its own name for it; it ignores the others.
const KOBOLD_CONTINUATION: [(&str, bool); 1] = [("continue_assistant_turn", true)];

/// The software that answers the requests of an endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelBackend {
    LlamaCpp,
    KoboldCpp,
    Vllm,
    TabbyApi,
    OpenRouter,
    Mistral,
    /// Any other server.
    #[default]
    Other,
}

impl ModelBackend {
    /// Returns the backend of a vendor's host; `Other` if the host is none of them.
    pub fn of_host(host: &str) -> Self {
        match host {
            "openrouter.ai" => Self::OpenRouter,
            "api.mistral.ai" => Self::Mistral,
            _ => Self::Other,
        }
    }

    /// Returns the backend that a list of models states in the field `owned_by` of its entries.
    pub fn of_list(entries: &[Value]) -> Option<Self> {
        let owner = entries.first()?["owned_by"].as_str()?;
        match owner.to_ascii_lowercase().as_str() {
            "llamacpp" => Some(Self::LlamaCpp),
            "koboldcpp" => Some(Self::KoboldCpp),
            "vllm" => Some(Self::Vllm),
            "tabbyapi" => Some(Self::TabbyApi),
            _ => None,
        }
    }

    /// Returns the fields of a request whose last message the model continues; none if the backend
    /// cannot be asked to.
    pub fn continuation_flags(self) -> &'static [(&'static str, bool)] {
        match self {
            Self::LlamaCpp | Self::Vllm => &CONTINUATION,
            Self::KoboldCpp => &KOBOLD_CONTINUATION,
            // Mistral has `prefix` in the message itself.
            Self::Mistral | Self::TabbyApi | Self::OpenRouter | Self::Other => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ModelBackend;

    #[test]
    fn a_list_states_its_backend() {
        for (owner, backend) in [
            ("llamacpp", Some(ModelBackend::LlamaCpp)),
            ("koboldcpp", Some(ModelBackend::KoboldCpp)),
            ("vllm", Some(ModelBackend::Vllm)),
            ("tabbyAPI", Some(ModelBackend::TabbyApi)),
            ("organization-owner", None),
        ] {
            let entries = [json!({"id": "m", "owned_by": owner})];
            assert_eq!(ModelBackend::of_list(&entries), backend, "{owner}");
        }
        assert_eq!(ModelBackend::of_list(&[]), None);
        assert_eq!(ModelBackend::of_list(&[json!("m")]), None);
    }

    #[test]
    fn vendors_are_known_by_their_host() {
        assert_eq!(
            ModelBackend::of_host("openrouter.ai"),
            ModelBackend::OpenRouter
        );
        assert_eq!(
            ModelBackend::of_host("api.mistral.ai"),
            ModelBackend::Mistral
        );
        assert_eq!(
            ModelBackend::of_host("notopenrouter.ai"),
            ModelBackend::Other
        );
    }
}
