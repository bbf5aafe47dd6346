//! From a provider's settings to somebody who answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sea_orm::DeriveActiveEnum;
use sea_orm::EnumIter;
use sea_orm::sea_query::StringLen;
use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;

use crate::llm::egress::Egress;
use crate::llm::error::LlmError;
use crate::llm::openai_compatible::OpenaiCompatible;
use crate::llm::provider::Provider;
use crate::llm::scripted::Scripted;
use crate::llm::secret::Secret;

const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// What a row of `llm_providers`, or the environment, says about a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSpec {
    pub kind: ProviderKind,
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    /// Which model to ask; sent in [`Request::model`](crate::llm::request::Request::model).
    pub model: String,
}

/// Which protocol an endpoint speaks.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, EnumIter, DeriveActiveEnum, Serialize, Deserialize, ToSchema,
)]
#[sea_orm(
    rs_type = "String",
    db_type = "String(StringLen::N(32))",
    rename_all = "snake_case"
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
    /// The word in rows, JSON and logs.
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
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why settings lead to nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error(
        "Providers of the kind “{0}” cannot be used yet. \
         Most offer an OpenAI-compatible address; Ollama's is http://HOST:11434/v1."
    )]
    NotAvailable(ProviderKind),
    #[error("A provider of this kind needs a base URL.")]
    MissingBaseUrl,
    #[error(transparent)]
    Unusable(#[from] LlmError),
}

/// Makes providers that share one way out.
#[derive(Debug, Clone)]
pub struct Registry {
    pub egress: Egress,
    demo_pace: Duration,
}

impl Registry {
    /// The demo model speaks at this pace.
    pub fn new(egress: Egress, demo_pace: Duration) -> Self {
        Self { egress, demo_pace }
    }

    /// The provider that the settings describe.
    pub fn provider(&self, spec: &ProviderSpec) -> Result<Arc<dyn Provider>, RegistryError> {
        if spec.kind == ProviderKind::Demo {
            return Ok(Arc::new(Scripted::new(self.demo_pace)));
        }
        Ok(Arc::new(self.endpoint(spec)?))
    }

    /// The endpoint behind a provider, for those that have one: to list its models.
    pub fn endpoint(&self, spec: &ProviderSpec) -> Result<OpenaiCompatible, RegistryError> {
        let given = spec
            .base_url
            .as_deref()
            .map(str::trim)
            .filter(|it| !it.is_empty());
        let egress = self.egress.clone();
        let key = spec.api_key.clone();
        match spec.kind {
            ProviderKind::OpenaiCompatible => {
                let base_url = given.ok_or(RegistryError::MissingBaseUrl)?;
                let base_url = egress.base_url(base_url)?;
                Ok(OpenaiCompatible::new(egress, base_url, key))
            }
            ProviderKind::Openai => {
                let base_url = egress.base_url(given.unwrap_or(OPENAI_BASE_URL))?;
                Ok(OpenaiCompatible::openai(egress, base_url, key))
            }
            ProviderKind::Demo
            | ProviderKind::Anthropic
            | ProviderKind::Gemini
            | ProviderKind::Ollama => Err(RegistryError::NotAvailable(spec.kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::ProviderKind;
    use super::ProviderSpec;
    use super::Registry;
    use super::RegistryError;
    use crate::llm::egress::Egress;
    use crate::llm::egress::SystemNames;
    use sea_orm::ActiveEnum;
    use sea_orm::Iterable;

    fn found(kind: ProviderKind, base_url: Option<&str>) -> Result<&'static str, RegistryError> {
        let registry = Registry::new(
            Egress::new(Arc::new(SystemNames), false).unwrap(),
            Duration::ZERO,
        );
        let base_url = base_url.map(str::to_owned);
        let spec = ProviderSpec {
            kind,
            base_url,
            api_key: None,
            model: "m".to_owned(),
        };
        registry.provider(&spec).map(|it| it.kind())
    }

    #[test]
    fn a_kind_is_spelt_alike_in_rows_and_in_json() {
        for kind in ProviderKind::iter() {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert_eq!(kind.to_value(), kind.as_str());
        }
    }

    #[test]
    fn settings_lead_to_the_provider_of_their_kind() {
        assert_eq!(found(ProviderKind::Demo, None), Ok("demo"));
        assert_eq!(found(ProviderKind::Openai, None), Ok("openai"));
        assert_eq!(
            found(
                ProviderKind::OpenaiCompatible,
                Some("https://example.com/v1")
            ),
            Ok("openai_compatible")
        );
    }

    #[test]
    fn kinds_that_are_not_there_say_so() {
        for kind in [
            ProviderKind::Anthropic,
            ProviderKind::Gemini,
            ProviderKind::Ollama,
        ] {
            assert_eq!(found(kind, None), Err(RegistryError::NotAvailable(kind)));
        }
    }

    #[test]
    fn a_compatible_provider_needs_an_address_and_an_allowed_one() {
        let kind = ProviderKind::OpenaiCompatible;

        assert_eq!(found(kind, Some(" ")), Err(RegistryError::MissingBaseUrl));
        assert!(matches!(
            found(kind, Some("http://127.0.0.1:1/v1")),
            Err(RegistryError::Unusable(_))
        ));
    }
}
