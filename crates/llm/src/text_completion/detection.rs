//! Asks a model server which text completion API it has and which chat template its model uses.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::endpoint::Endpoint;
use crate::provider_options::ProviderOptions;
use crate::registry::{ProviderRegistry, ProviderSpec, RegistryError};
use crate::text_completion::completion_api::CompletionApi;

/// A server responds quickly, and a user waits for the result.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Chat templates of models have up to a few ten thousand characters.
const MAX_BYTES: usize = 1024 * 1024;

/// What a server says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedServer {
    pub api: CompletionApi,
    /// The chat template of its model.
    pub chat_template: Option<String>,
}

/// Asks the server of these settings. A server that answers neither as KoboldCpp nor as llama.cpp has
/// OpenAI's API.
///
/// # Errors
/// Returns an error when the settings are incomplete or their address must not be called.
pub async fn detect(
    registry: &ProviderRegistry,
    spec: &ProviderSpec,
) -> Result<DetectedServer, RegistryError> {
    // The paths begin at the root of the server.
    let spec = ProviderSpec {
        options: ProviderOptions {
            completion_api: CompletionApi::Koboldcpp,
            ..spec.options.clone()
        },
        ..spec.clone()
    };
    let endpoint = registry.endpoint(&spec)?;
    let (version, props) = tokio::join!(
        get(&endpoint, "/api/extra/version"),
        get(&endpoint, "/props")
    );
    // Newer versions of KoboldCpp answer both.
    let is_koboldcpp = version.is_some_and(|it| it["result"] == "KoboldCpp");
    let is_llama_cpp = props
        .as_ref()
        .is_some_and(|it| it["default_generation_settings"].is_object());
    let chat_template = props.as_ref().and_then(|it| it["chat_template"].as_str());
    Ok(DetectedServer {
        api: match (is_koboldcpp, is_llama_cpp) {
            (true, _) => CompletionApi::Koboldcpp,
            (false, true) => CompletionApi::LlamaCpp,
            (false, false) => CompletionApi::Openai,
        },
        chat_template: chat_template.map(str::to_owned),
    })
}

async fn get(endpoint: &Endpoint, path: &str) -> Option<Value> {
    let answer = timeout(TIMEOUT, endpoint.get(path, None, MAX_BYTES)).await;
    serde_json::from_slice(&answer.ok()?.ok()?).ok()
}
