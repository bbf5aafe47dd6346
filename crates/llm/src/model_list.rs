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

/// Returns the model names of an endpoint in the order of its list.
pub async fn list_models(endpoint: &Endpoint) -> Result<Vec<String>, LlmError> {
    let (path, query) = endpoint.dialect().model_list_path();
    let list = timeout(TIMEOUT, endpoint.get(path, query, MAX_LIST_BYTES))
        .await
        .map_err(|_| timeout_error())??;
    parse_model_names(&list, endpoint.dialect()).ok_or_else(|| LlmError::Upstream {
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

fn parse_model_names(list: &[u8], dialect: &dyn Dialect) -> Option<Vec<String>> {
    let list: Value = serde_json::from_slice(list).ok()?;
    let entries = [list.get("data"), list.get("models"), Some(&list)];
    let entries = entries.into_iter().flatten().find_map(Value::as_array)?;
    let name = |entry: &Value| {
        let name = error::sanitize(&dialect.model_name(entry)?, None);
        (!name.is_empty() && name.chars().count() <= MAX_NAME_CHARS).then_some(name)
    };
    Some(entries.iter().filter_map(name).take(MAX_MODELS).collect())
}

#[cfg(test)]
mod tests {
    use super::parse_model_names;
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
            assert_eq!(
                parse_model_names(list.as_bytes(), &chat).unwrap(),
                ["a", "b"],
                "{list}"
            );
        }
        for no_list in ["", "{}", r#"{"data": 7}"#, "<html>"] {
            assert_eq!(
                parse_model_names(no_list.as_bytes(), &chat),
                None,
                "{no_list}"
            );
        }
    }
}
