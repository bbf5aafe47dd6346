//! Builds providers from their settings, and defines the kinds of providers with their default base
//! URLs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use outbound_http::client::OutboundClient;
use reqwest::Url;
#[cfg(feature = "sea-orm")]
use sea_orm::sea_query::StringLen;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::anthropic::dialect::Anthropic;
use crate::compatibility::backend::ModelBackend;
use crate::compatibility::request_headers;
use crate::demo::model::DemoModel;
use crate::dialect::Dialect;
use crate::endpoint::Endpoint;
use crate::error::LlmError;
use crate::gemini::dialect::Gemini;
use crate::ollama::dialect::Ollama;
use crate::openai_chat::dialect::OpenAiChat;
use crate::openai_chat::variant::ChatVariant;
use crate::provider::Provider;
use crate::provider_options::ProviderOptions;
use crate::secret::Secret;
use crate::text_completion::completion_api::ProviderMode;
use crate::text_completion::dialect::TextCompletion;

/// Settings of a provider, from a row of `llm_providers` or from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSpec {
    pub kind: ProviderKind,
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    /// The model to request, for [`Request::model`](crate::request::Request::model).
    pub model: String,
    pub options: ProviderOptions,
    /// Headers that are added to each request.
    pub extra_headers: Vec<(String, Secret)>,
}

/// The API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(
    feature = "sea-orm",
    derive(sea_orm::EnumIter, sea_orm::DeriveActiveEnum),
    sea_orm(
        rs_type = "String",
        db_type = "String(StringLen::N(32))",
        rename_all = "snake_case"
    )
)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    Demo,
    OpenaiCompatible,
    Openai,
    Anthropic,
    Gemini,
    Ollama,
}

impl ProviderKind {
    /// Returns the value for rows, JSON and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::OpenaiCompatible => "openai_compatible",
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Returns the base URL that is used if the settings contain none.
    pub fn default_base_url(self) -> Option<&'static str> {
        match self {
            Self::Demo | Self::OpenaiCompatible => None,
            Self::Openai => Some("https://api.openai.com/v1"),
            Self::Anthropic => Some("https://api.anthropic.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta"),
            Self::Ollama => Some("http://127.0.0.1:11434"),
        }
    }

    /// Returns whether models of this kind can embed texts.
    pub fn has_embeddings(self) -> bool {
        let dialect = self.dialect(ProviderOptions::default());
        dialect.is_some_and(|it| it.embeddings_path().is_some())
    }

    /// Returns whether a provider of this kind with these settings gets one text instead of messages.
    pub fn completes_text(self, settings: &Value) -> bool {
        let dialect = self.dialect(ProviderOptions::from_settings(settings));
        dialect.is_some_and(|it| it.completes_text())
    }

    /// Returns the API of this kind; the demo model has none, because it needs no network.
    fn dialect(self, options: ProviderOptions) -> Option<Arc<dyn Dialect>> {
        let chat = |flavor, tuning| {
            Arc::new(OpenAiChat {
                variant: flavor,
                options: tuning,
            })
        };
        Some(match self {
            Self::Demo => return None,
            Self::OpenaiCompatible if options.mode == ProviderMode::TextCompletion => {
                Arc::new(TextCompletion::new(options))
            }
            Self::OpenaiCompatible => chat(ChatVariant::Compatible, options),
            Self::Openai => chat(ChatVariant::Openai, options),
            Self::Anthropic => Arc::new(Anthropic { options }),
            Self::Gemini => Arc::new(Gemini { options }),
            Self::Ollama => Arc::new(Ollama { options }),
        })
    }
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why no provider can be built from settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("The demo model is built into the server and has no address.")]
    NoEndpoint,
    #[error("A provider of this kind needs a base URL.")]
    MissingBaseUrl,
    #[error(transparent)]
    Unusable(#[from] LlmError),
}

/// Builds providers that share one HTTP client.
#[derive(Debug, Clone)]
pub struct ProviderRegistry {
    pub outbound_client: OutboundClient,
    public_url: Option<String>,
    demo_typing_speed: Duration,
}

impl ProviderRegistry {
    /// Creates a registry; `demo_typing_speed` is the demo model's pause between words, `public_url` the
    /// address of this server, which is sent to OpenRouter.
    pub fn new(
        outbound_client: OutboundClient,
        demo_typing_speed: Duration,
        public_url: Option<String>,
    ) -> Self {
        Self {
            outbound_client,
            public_url,
            demo_typing_speed,
        }
    }

    /// Builds the provider of these settings.
    pub fn provider(&self, spec: &ProviderSpec) -> Result<Arc<dyn Provider>, RegistryError> {
        if spec.kind == ProviderKind::Demo {
            return Ok(Arc::new(DemoModel::new(self.demo_typing_speed)));
        }
        Ok(Arc::new(self.endpoint(spec)?))
    }

    /// Returns the endpoint of a provider, to list its models. The demo model has none.
    pub fn endpoint(&self, spec: &ProviderSpec) -> Result<Endpoint, RegistryError> {
        let given = spec.base_url.as_deref().map(str::trim);
        let base_url = given
            .filter(|it| !it.is_empty())
            .or(spec.kind.default_base_url());
        let host = base_url.and_then(host).unwrap_or_default();
        let options = ProviderOptions {
            supports_prefix: base_url.is_some_and(supports_prefix),
            backend: match ModelBackend::of_host(&host) {
                ModelBackend::Other => spec.options.backend,
                vendor => vendor,
            },
            host,
            ..spec.options.clone()
        };
        let public_url = self.public_url.as_deref();
        let headers = request_headers::build(options.backend, public_url, &spec.extra_headers);
        let dialect = spec.kind.dialect(options);
        let dialect = dialect.ok_or(RegistryError::NoEndpoint)?;
        let base_url = base_url.ok_or(RegistryError::MissingBaseUrl)?;
        let key = spec.api_key.clone();
        let client = self.outbound_client.clone();
        Ok(Endpoint::new(client, base_url, key, dialect)?.with_headers(headers))
    }
}

/// Returns the host of a base URL.
pub fn host(base_url: &str) -> Option<String> {
    let url = Url::parse(base_url).ok()?;
    url.host_str().map(str::to_owned)
}

/// Returns whether the vendor at this address continues a last message with `prefix: true`: Mistral,
/// and DeepSeek at its beta address.
fn supports_prefix(base_url: &str) -> bool {
    let Ok(url) = Url::parse(base_url) else {
        return false;
    };
    match url.host_str() {
        Some("api.mistral.ai") => true,
        Some("api.deepseek.com") => url.path().trim_matches('/').starts_with("beta"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use outbound_http::client::{OutboundClient, SystemResolver};

    use super::{ProviderKind, ProviderRegistry, ProviderSpec, RegistryError, supports_prefix};
    use crate::provider_options::ProviderOptions;

    fn provider_kind(
        kind: ProviderKind,
        base_url: Option<&str>,
    ) -> Result<&'static str, RegistryError> {
        let registry = ProviderRegistry::new(
            OutboundClient::new(Arc::new(SystemResolver), false).unwrap(),
            Duration::ZERO,
            None,
        );
        let base_url = base_url.map(str::to_owned);
        let spec = ProviderSpec {
            kind,
            base_url,
            api_key: None,
            model: "m".to_owned(),
            options: ProviderOptions::default(),
            extra_headers: Vec::new(),
        };
        registry.provider(&spec).map(|it| it.kind())
    }

    #[test]
    fn only_some_vendors_continue_the_last_message() {
        assert!(supports_prefix("https://api.mistral.ai/v1"));
        assert!(supports_prefix("https://api.deepseek.com/beta"));
        for other in [
            "https://api.deepseek.com/v1",
            "https://example.com/beta",
            "?",
        ] {
            assert!(!supports_prefix(other), "{other}");
        }
    }

    #[test]
    fn only_some_kinds_have_embeddings() {
        let kinds = [
            ProviderKind::OpenaiCompatible,
            ProviderKind::Openai,
            ProviderKind::Gemini,
            ProviderKind::Ollama,
        ];
        assert!(kinds.iter().all(|it| it.has_embeddings()));
        assert!(!ProviderKind::Demo.has_embeddings() && !ProviderKind::Anthropic.has_embeddings());
    }

    #[test]
    fn a_provider_kind_has_the_same_spelling_in_rows_and_in_json() {
        for kind in [
            ProviderKind::Demo,
            ProviderKind::OpenaiCompatible,
            ProviderKind::Openai,
            ProviderKind::Anthropic,
            ProviderKind::Gemini,
            ProviderKind::Ollama,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            #[cfg(feature = "sea-orm")]
            assert_eq!(sea_orm::ActiveEnum::to_value(&kind), kind.as_str());
        }
    }

    #[test]
    fn settings_build_the_provider_of_their_kind() {
        assert_eq!(provider_kind(ProviderKind::Demo, None), Ok("demo"));
        for kind in [
            ProviderKind::Openai,
            ProviderKind::Anthropic,
            ProviderKind::Gemini,
        ] {
            assert_eq!(provider_kind(kind, None), Ok(kind.as_str()));
        }
        assert_eq!(
            provider_kind(
                ProviderKind::OpenaiCompatible,
                Some("https://example.com/v1")
            ),
            Ok("openai_compatible")
        );
    }

    #[test]
    fn a_compatible_provider_needs_an_allowed_base_url() {
        let kind = ProviderKind::OpenaiCompatible;

        assert_eq!(
            provider_kind(kind, Some(" ")),
            Err(RegistryError::MissingBaseUrl)
        );
        assert!(matches!(
            provider_kind(kind, Some("http://127.0.0.1:1/v1")),
            Err(RegistryError::Unusable(_))
        ));
        // Its default address is on this machine.
        assert!(matches!(
            provider_kind(ProviderKind::Ollama, None),
            Err(RegistryError::Unusable(_))
        ));
    }
}
