//! The part `detected` of a provider's settings: what the server has found out about its endpoint and
//! its models. An admin neither writes nor sends it.

use llm::provider_options::{BACKEND, DETECTED};
use serde_json::{Value, json};

use crate::providers::vision::VisionSource;

/// The key of the context windows that the list of models states, by model.
pub const LISTED_WINDOWS: &str = "context_tokens";
/// The key of the time at which the list was read, in milliseconds since 1970.
pub const LISTED_AT: &str = "listed_at";
/// The key of the corrections of token counts, by model.
pub const TOKEN_CORRECTIONS: &str = "token_corrections";
/// The key of the tokenizer that an admin has set. It is not detected; the corrections apply to its counts.
pub const TOKENIZER: &str = "tokenizer";
/// The maximum number of models about which one kind of fact is recorded.
const MAX_MODELS: usize = 50;

/// Returns new settings of a provider with what its list of models has stated, and with the corrections of
/// token counts, if the tokenizer is the same.
pub fn keep_listed(present: &Value, mut new: Value) -> Value {
    let has_same_tokenizer = present[TOKENIZER] == new[TOKENIZER];
    let keys = [
        VisionSource::List.key(),
        LISTED_WINDOWS,
        BACKEND,
        LISTED_AT,
        TOKEN_CORRECTIONS,
    ];
    for key in keys
        .into_iter()
        .filter(|it| has_same_tokenizer || *it != TOKEN_CORRECTIONS)
    {
        let listed = &present[DETECTED][key];
        if !listed.is_null() && new.is_object() {
            new[DETECTED][key] = listed.clone();
        }
    }
    new
}

/// Returns settings without what was detected.
pub fn without_detected(mut settings: Value) -> Value {
    if let Some(fields) = settings.as_object_mut() {
        fields.shift_remove(DETECTED);
    }
    settings
}

/// Returns settings with a fact about the endpoint.
pub fn with_fact(settings: &Value, key: &str, fact: Value) -> Value {
    let mut settings = match settings.is_object() {
        true => settings.clone(),
        false => json!({}),
    };
    settings[DETECTED][key] = fact;
    settings
}

/// Returns settings with facts about models. Of too many models, those that are recorded already and the
/// first new ones are kept.
pub fn with_models(
    settings: &Value,
    key: &str,
    facts: impl IntoIterator<Item = (String, Value)>,
) -> Value {
    let known = settings[DETECTED][key].as_object();
    let mut known = known.cloned().unwrap_or_default();
    for (model, fact) in facts {
        if known.contains_key(&model) || known.len() < MAX_MODELS {
            known.insert(model, fact);
        }
    }
    with_fact(settings, key, Value::Object(known))
}

#[cfg(test)]
mod tests {
    use llm::registry::ProviderKind;
    use serde_json::json;

    use super::{
        LISTED_WINDOWS, TOKEN_CORRECTIONS, keep_listed, with_fact, with_models, without_detected,
    };
    use crate::providers::vision;
    use crate::providers::vision::VisionSource;

    #[test]
    fn what_a_list_states_is_kept_when_the_settings_are_saved() {
        let settings = json!({"vision": "auto"});
        let (list, call) = (VisionSource::List.key(), VisionSource::Call.key());
        let has_vision =
            |settings, model| vision::has_vision(ProviderKind::OpenaiCompatible, settings, model);

        let listed = [
            ("a".to_owned(), json!(true)),
            ("b".to_owned(), json!(false)),
        ];
        let listed = with_models(&settings, list, listed);
        let listed = with_models(&listed, LISTED_WINDOWS, [("a".to_owned(), json!(32_768))]);
        let listed = with_fact(&listed, "backend", json!("vllm"));
        let called = with_models(&listed, call, [("a".to_owned(), json!(false))]);

        assert!(has_vision(&listed, "a") && !has_vision(&called, "a"));
        let saved = keep_listed(&called, settings.clone());
        assert_eq!(saved, listed, "only a call shows whether it still fails");
        assert_eq!(without_detected(called), settings);
    }

    #[test]
    fn corrections_are_forgotten_with_their_tokenizer() {
        let present = json!({"tokenizer": "qwen", "detected": {TOKEN_CORRECTIONS: {"a": 1.2}}});

        let kept = keep_listed(&present, json!({"tokenizer": "qwen", "top_k": 1}));
        let changed = keep_listed(&present, json!({"tokenizer": "llama3"}));

        assert_eq!(kept["detected"][TOKEN_CORRECTIONS]["a"], 1.2);
        assert_eq!(changed, json!({"tokenizer": "llama3"}));
    }

    #[test]
    fn facts_about_few_models_are_recorded() {
        let many = (0..100).map(|it| (it.to_string(), json!(it)));

        let settings = with_models(&json!(null), LISTED_WINDOWS, many);
        let changed = [("7".to_owned(), json!(1)), ("new".to_owned(), json!(1))];
        let settings = with_models(&settings, LISTED_WINDOWS, changed);

        let known = &settings["detected"][LISTED_WINDOWS];
        assert_eq!(known.as_object().unwrap().len(), 50);
        assert_eq!((&known["7"], known.get("new")), (&json!(1), None));
    }
}
