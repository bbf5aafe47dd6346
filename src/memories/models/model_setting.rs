//! A model that the settings of a space name: `{provider_id, model}`.

use base::ids::ProviderId;
use serde::Deserialize;
use serde_json::Value;

/// A provider, and a model of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MemoryModelSetting {
    pub provider_id: ProviderId,
    /// `None`: the model in the settings of the provider.
    #[serde(default)]
    pub model: Option<String>,
}

impl MemoryModelSetting {
    /// Reads the setting, for example `settings.memory.model` of a space. Returns `None` if it is
    /// missing, null or invalid.
    pub fn from_json(setting: &Value) -> Option<Self> {
        let stated = Self::deserialize(setting).ok()?;
        let name = stated.model.as_deref().map(str::trim);
        let model = name.filter(|it| !it.is_empty()).map(str::to_owned);
        Some(Self { model, ..stated })
    }
}

/// Returns the settings of a space without its models: a file from another server names providers of
/// that server.
pub fn without_models(mut settings: Value) -> Value {
    let memory = settings.get_mut("memory").and_then(Value::as_object_mut);
    if let Some(memory) = memory {
        memory.remove("model");
    }
    settings
}

#[cfg(test)]
mod tests {
    use base::ids::ProviderId;
    use serde_json::json;

    use super::{MemoryModelSetting, without_models};

    #[test]
    fn a_setting_needs_a_provider() {
        let of = |it| MemoryModelSetting::from_json(&it);
        let provider_id = ProviderId(3);

        let model = Some("small".to_owned());
        assert_eq!(
            of(json!({"provider_id": 3, "model": " small "})),
            Some(MemoryModelSetting { provider_id, model })
        );
        let model = None;
        assert_eq!(
            of(json!({"provider_id": 3, "model": null})),
            Some(MemoryModelSetting { provider_id, model })
        );
        for invalid in [json!(null), json!({}), json!({"provider_id": "three"})] {
            assert_eq!(of(invalid), None);
        }
    }
    #[test]
    fn other_settings_are_kept_without_the_models() {
        let settings = json!({"a": 1, "memory": {"top_k": 3, "model": {"provider_id": 3}}});

        let without = without_models(settings);

        assert_eq!(without, json!({"a": 1, "memory": {"top_k": 3}}));
        assert_eq!(without_models(json!({})), json!({}));
    }
}
