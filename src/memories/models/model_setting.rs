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

/// Returns the settings of a space without its models: a file from another installation names providers
/// of that installation.
pub fn without_models(mut settings: Value) -> Value {
    for (of, names) in [
        ("/memory", ["model", "embedding"].as_slice()),
        ("/memory/summaries", ["model"].as_slice()),
    ] {
        let found = settings.pointer_mut(of).and_then(Value::as_object_mut);
        if let Some(found) = found {
            names.iter().for_each(|it| drop(found.remove(*it)));
        }
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
        let model = json!({"provider_id": 3, "model": "small"});
        let summaries = json!({"model": model, "max_tokens": 300});
        let memory =
            json!({"top_k": 3, "model": model, "embedding": model, "summaries": summaries});

        let without = without_models(json!({"a": 1, "memory": memory}));

        let kept = json!({"top_k": 3, "summaries": {"max_tokens": 300}});
        assert_eq!(without, json!({"a": 1, "memory": kept}));
        assert_eq!(without_models(json!({})), json!({}));
    }
}
