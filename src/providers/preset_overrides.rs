//! The options of a provider that a preset may override: whether a prompt is sent as messages or as one text,
//! and how the roles of its messages are arranged. Other options concern the account of the server, and only
//! an admin sets them.

use std::borrow::Cow;

use llm::compatibility::role_handling::RoleHandling;
use llm::text_completion::completion_api::ProviderMode;
use serde::Deserialize;
use serde_json::json;
use tavern::presets::complete_preset::Preset;
use tavern::presets::partial_preset::PartialPreset;
use utoipa::ToSchema;

use crate::providers::provider;

/// The keys of these options, in presets and in the settings of a provider.
const KEYS: [&str; 2] = ["mode", "role_handling"];

/// The overridden options in a preset. Missing ones are not overridden.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ProviderOverrides {
    /// Only for providers of the kind `openai_compatible`.
    #[serde(rename = "mode")]
    _mode: Option<ProviderMode>,
    /// Only for providers of the kinds `openai` and `openai_compatible`.
    #[serde(rename = "role_handling")]
    _role_handling: Option<RoleHandling>,
}

/// A preset with the options of a provider that it overrides.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = PresetDocument)]
pub struct PresetDocument {
    #[serde(flatten)]
    _preset: PartialPreset,
    #[serde(flatten)]
    _overrides: ProviderOverrides,
}

/// Returns the provider with the options that a resolved preset overrides. An option that was stored before
/// it was validated may be invalid: then it is not overridden.
pub fn apply<'a>(row: &'a provider::Model, preset: &Preset) -> Cow<'a, provider::Model> {
    let mut row = Cow::Borrowed(row);
    for key in KEYS {
        if let Some(value) = preset.extra.get(key)
            && row.settings[key] != *value
            && row.settings.is_object()
            && ProviderOverrides::deserialize(&json!({ (key): value })).is_ok()
        {
            row.to_mut().settings[key] = value.clone();
        }
    }
    row
}
