//! Lists the models of an endpoint, and tests a provider by requesting a short reply.

use std::time::Duration;

use base::prompt_role::PromptRole;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::compatibility::backend::ModelBackend;
use crate::compatibility::context_window;
use crate::delta::Delta;
use crate::dialect::Dialect;
use crate::endpoint::Endpoint;
use crate::error::LlmError;
use crate::openai_chat::error;
use crate::provider::Provider;
use crate::request::{Message, Request};

/// Time limit of a call, because a user waits for the result.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_LIST_BYTES: usize = 4 * 1024 * 1024;
const MAX_MODELS: usize = 2_000;
const MAX_NAME_CHARS: usize = 200;

/// A model of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    pub id: String,
    /// Whether it accepts images, if the list states it.
    pub vision: Option<bool>,
    /// Its context window in tokens, if the server states it.
    pub context_tokens: Option<u32>,
}

/// The models of an endpoint in the order of its list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelList {
    pub models: Vec<ListedModel>,
    /// The backend, if the list states it.
    pub backend: Option<ModelBackend>,
}

/// Returns the models of an endpoint.
///
/// # Errors
/// Returns an error when the endpoint cannot be reached, does not answer in time, or answers with
/// something else than a list.
pub async fn list_models(endpoint: &Endpoint) -> Result<ModelList, LlmError> {
    let (path, query) = endpoint.dialect().model_list_path();
    let list = timeout(TIMEOUT, endpoint.get(path, query, MAX_LIST_BYTES))
        .await
        .map_err(|_| timeout_error())??;
    let list = parse_models(&list, endpoint.dialect());
    let mut list = list.ok_or_else(|| LlmError::Upstream {
        message: "The provider's response is not a list of models.".to_owned(),
    })?;
    let unknown = list
        .models
        .iter_mut()
        .filter(|it| it.context_tokens.is_none());
    let unknown: Vec<&mut ListedModel> = unknown.collect();
    if let (Some(backend), false) = (list.backend, unknown.is_empty()) {
        let served = timeout(TIMEOUT, served_window(endpoint, backend)).await;
        let served = served.ok().flatten();
        unknown
            .into_iter()
            .for_each(|it| it.context_tokens = served);
    }
    Ok(list)
}

/// Returns the context window that a local server states outside of its list of models: it is the same
/// for all of them.
async fn served_window(endpoint: &Endpoint, backend: ModelBackend) -> Option<u32> {
    let (path, field) = match backend {
        ModelBackend::LlamaCpp => ("/props", "/default_generation_settings/n_ctx"),
        ModelBackend::KoboldCpp => ("/api/extra/true_max_context_length", "/value"),
        _ => return None,
    };
    let answer = endpoint.get_from_origin(path, MAX_LIST_BYTES).await.ok()?;
    let answer: Value = serde_json::from_slice(&answer).ok()?;
    let window = json!({"context_length": answer.pointer(field)?});
    context_window::stated(&window)
}

/// Requests one word and returns the time until the first delta.
pub async fn probe(provider: &dyn Provider, model: &str) -> Result<Duration, LlmError> {
    let request = Request {
        model: model.to_owned(),
        messages: vec![Message::new(PromptRole::User, "Say hello.")],
        max_tokens: Some(16),
        speaker: "Test".to_owned(),
        prompt_text: provider.completes_text().then(|| "Say hello.".to_owned()),
        ..Request::default()
    };
    let started = Instant::now();
    timeout(TIMEOUT, wait_for_first_delta(provider, &request))
        .await
        .map_err(|_| timeout_error())??;
    Ok(started.elapsed())
}

async fn wait_for_first_delta(provider: &dyn Provider, request: &Request) -> Result<(), LlmError> {
    let mut stream = provider.stream(request).await?;
    while let Some(delta) = stream.next().await {
        if matches!(
            delta?,
            Delta::Text(_)
                | Delta::Refusal(_)
                | Delta::Reasoning(_)
                | Delta::ReasoningIn(..)
                | Delta::ToolCall(_)
                | Delta::End(_)
        ) {
            return Ok(());
        }
    }
    Err(LlmError::Disconnected {
        message: "The provider's response was cut off.".to_owned(),
    })
}

fn timeout_error() -> LlmError {
    LlmError::Unreachable {
        message: format!(
            "The provider did not answer within {} seconds.",
            TIMEOUT.as_secs()
        ),
    }
}

fn parse_models(list: &[u8], dialect: &dyn Dialect) -> Option<ModelList> {
    let list: Value = serde_json::from_slice(list).ok()?;
    let entries = [list.get("data"), list.get("models"), Some(&list)];
    let entries = entries.into_iter().flatten().find_map(Value::as_array)?;
    let model = |entry: &Value| {
        let id = error::sanitize(&dialect.model_name(entry)?, None);
        let is_valid = !id.is_empty() && id.chars().count() <= MAX_NAME_CHARS;
        is_valid.then(|| ListedModel {
            id,
            vision: stated_vision(entry),
            context_tokens: context_window::stated(entry),
        })
    };
    Some(ModelList {
        models: entries.iter().filter_map(model).take(MAX_MODELS).collect(),
        backend: ModelBackend::of_list(entries),
    })
}

/// Returns whether an entry says that its model accepts images, in one of the forms of OpenRouter, Mistral,
/// Anthropic, llama.cpp and LM Studio.
fn stated_vision(entry: &Value) -> Option<bool> {
    let contains = |list: &Value, words: &[&str]| {
        let list = list.as_array()?;
        let has = |it: &Value| it.as_str().is_some_and(|it| words.contains(&it));
        Some(list.iter().any(has))
    };
    let modalities = &entry["architecture"]["input_modalities"];
    let capabilities = &entry["capabilities"];
    contains(modalities, &["image"])
        .or_else(|| contains(&entry["input_modalities"], &["image"]))
        .or_else(|| capabilities["vision"].as_bool())
        .or_else(|| capabilities["image_input"]["supported"].as_bool())
        .or_else(|| contains(capabilities, &["vision", "multimodal"]))
        .or_else(|| (entry["type"] == "vlm").then_some(true))
}

#[cfg(test)]
mod tests {
    use super::parse_models;
    use crate::openai_chat::dialect::OpenAiChat;
    use crate::openai_chat::variant::ChatVariant;
    use crate::provider_options::ProviderOptions;

    #[test]
    fn a_model_list_is_parsed_in_every_known_format() {
        let chat = OpenAiChat {
            variant: ChatVariant::Compatible,
            options: ProviderOptions::default(),
        };
        for list in [
            r#"{"object": "list", "data": [{"id": "a"}, {"id": "b"}, {"id": 7}, null]}"#,
            r#"{"models": [{"name": "a"}, {"name": "b"}]}"#,
            r#"[{"id": "a"}, "b"]"#,
        ] {
            let models = parse_models(list.as_bytes(), &chat).unwrap().models;
            let names: Vec<&str> = models.iter().map(|it| it.id.as_str()).collect();
            assert_eq!(names, ["a", "b"], "{list}");
        }
        for no_list in ["", "{}", r#"{"data": 7}"#, "<html>"] {
            assert_eq!(parse_models(no_list.as_bytes(), &chat), None, "{no_list}");
        }
    }

    #[test]
    fn a_list_may_state_which_models_see() {
        let chat = OpenAiChat {
            variant: ChatVariant::Compatible,
            options: ProviderOptions::default(),
        };
        let list = r#"{"data": [
            {"id": "a", "architecture": {"input_modalities": ["text", "image"]}},
            {"id": "b", "architecture": {"input_modalities": ["text"]}},
            {"id": "c", "capabilities": {"vision": true}},
            {"id": "d", "capabilities": ["completion"]},
            {"id": "e", "capabilities": ["completion", "multimodal"]},
            {"id": "f", "type": "vlm"},
            {"id": "g"}
        ]}"#;

        let models = parse_models(list.as_bytes(), &chat).unwrap().models;

        let stated: Vec<Option<bool>> = models.into_iter().map(|it| it.vision).collect();
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(stated, [yes, no, yes, no, yes, yes, None]);
    }
}
