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
        Self::deserialize(setting).ok()
    }
}

#[cfg(test)]
mod tests {
    use base::ids::ProviderId;
    use serde_json::json;

    use super::MemoryModelSetting;

    #[test]
    fn a_setting_needs_a_provider() {
        let of = |it| MemoryModelSetting::from_json(&it);
        let provider_id = ProviderId(3);

        let model = Some("small".to_owned());
        assert_eq!(
            of(json!({"provider_id": 3, "model": "small"})),
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
}
