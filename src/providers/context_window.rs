//! The context window of a provider's model, in tokens: as set by an admin, as stated by the provider's list
//! of models, or as known of the models of a vendor.

use llm::compatibility::context_window;
use llm::provider_options::DETECTED;
use llm::registry;
use llm::registry::ProviderKind;
use serde_json::{Value, json};

use crate::providers::detected::detected_settings::LISTED_WINDOWS;

/// The window if nothing is known.
pub const DEFAULT_CONTEXT_TOKENS: i64 = 8_192;
/// The key of the window in settings and presets.
const CONTEXT_TOKENS: &str = "context_tokens";

/// Returns the window of a model, if it is known.
pub fn find(
    kind: ProviderKind,
    base_url: Option<&str>,
    settings: &Value,
    model: &str,
) -> Option<i64> {
    let set = settings[CONTEXT_TOKENS].as_i64().filter(|it| *it > 0);
    let listed = || settings[DETECTED][LISTED_WINDOWS][model].as_i64();
    let of_vendor = || {
        let host = base_url.and_then(registry::host).unwrap_or_default();
        context_window::of_vendor(kind, &host, model).map(i64::from)
    };
    set.or_else(listed).or_else(of_vendor)
}

/// Returns the settings of a provider as the lowest layer of a preset, in which they have the window of
/// its model.
pub fn preset_layer(settings: &Value, window: Option<i64>) -> Value {
    let mut layer = settings.clone();
    if let (Some(window), Some(keys)) = (window, layer.as_object_mut()) {
        keys.insert(CONTEXT_TOKENS.to_owned(), json!(window));
    }
    layer
}

#[cfg(test)]
mod tests {
    use llm::registry::ProviderKind;
    use serde_json::json;

    use super::{find, preset_layer};

    #[test]
    fn an_admin_decides_then_the_list_then_the_name() {
        let find = |settings| find(ProviderKind::Openai, None, &settings, "gpt-4o");
        let detected = json!({"context_tokens": {"gpt-4o": 64_000}});

        assert_eq!(
            find(json!({"context_tokens": 9_000, "detected": detected})),
            Some(9_000)
        );
        assert_eq!(
            find(json!({"context_tokens": 0, "detected": detected})),
            Some(64_000)
        );
        assert_eq!(find(json!({})), Some(128_000));
    }

    #[test]
    fn the_name_of_a_local_model_says_nothing_about_the_window_of_its_server() {
        let local = Some("http://127.0.0.1:8080/v1");
        let kind = ProviderKind::OpenaiCompatible;

        assert_eq!(find(kind, local, &json!({}), "gpt-4o"), None);
    }

    #[test]
    fn presets_get_the_window() {
        let settings = json!({"temperature": 1});

        let layer = preset_layer(&settings, Some(64_000));

        assert_eq!(layer, json!({"temperature": 1, "context_tokens": 64_000}));
        assert_eq!(preset_layer(&settings, None), settings);
    }
}
