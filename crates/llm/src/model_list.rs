//! Lists the models of an endpoint, and tests a provider by requesting a short reply.

use std::time::Duration;

use base::prompt_role::PromptRole;
use futures::StreamExt;
use serde_json::Value;
use tokio::time::{Instant, timeout};

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
}

/// Returns the models of an endpoint in the order of its list.
pub async fn list_models(endpoint: &Endpoint) -> Result<Vec<ListedModel>, LlmError> {
    let (path, query) = endpoint.dialect().model_list_path();
    let list = timeout(TIMEOUT, endpoint.get(path, query, MAX_LIST_BYTES))
        .await
        .map_err(|_| timeout_error())??;
    parse_models(&list, endpoint.dialect()).ok_or_else(|| LlmError::Upstream {
        message: "The provider's response is not a list of models.".to_owned(),
    })
}

/// Requests one word and returns the time until the first delta.
pub async fn probe(provider: &dyn Provider, model: &str) -> Result<Duration, LlmError> {
    let request = Request {
        model: model.to_owned(),
        messages: vec![Message::new(PromptRole::User, "Say hello.")],
        max_tokens: Some(16),
        speaker: "Test".to_owned(),
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

fn parse_models(list: &[u8], dialect: &dyn Dialect) -> Option<Vec<ListedModel>> {
    let list: Value = serde_json::from_slice(list).ok()?;
    let entries = [list.get("data"), list.get("models"), Some(&list)];
    let entries = entries.into_iter().flatten().find_map(Value::as_array)?;
    let model = |entry: &Value| {
        let id = error::sanitize(&dialect.model_name(entry)?, None);
        let is_valid = !id.is_empty() && id.chars().count() <= MAX_NAME_CHARS;
        is_valid.then(|| ListedModel {
            id,
            vision: stated_vision(entry),
        })
    };
    Some(entries.iter().filter_map(model).take(MAX_MODELS).collect())
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
            let models = parse_models(list.as_bytes(), &chat).unwrap();
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

        let models = parse_models(list.as_bytes(), &chat).unwrap();

        let stated: Vec<Option<bool>> = models.into_iter().map(|it| it.vision).collect();
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(stated, [yes, no, yes, no, yes, yes, None]);
    }
}
