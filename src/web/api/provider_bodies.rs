//! Defines the request and response bodies of the endpoints for model providers, and validates the
//! requests.

use std::borrow::Cow;

use base::display_name;
use llm::discovery::DiscoveredServer;
use llm::model_list::ListedModel;
use llm::registry::ProviderKind;
use llm::secret::Secret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::openapi::schema::{AnyOfBuilder, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

use crate::accounts::name_schemas::{DisplayNameSchema, TitleSchema};
use crate::app::App;
use crate::providers::provider::ProviderChange;
use crate::providers::provider_views::{ProviderLabel, ProviderView};
use crate::web::api::provider_settings;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::json_body as body;
use crate::web::openapi::endpoint::NamedSchema;

const MAX_MODEL_CHARS: usize = 200;
const MAX_KEY_CHARS: usize = 4_000;

/// Changes to a provider.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = ProviderChange)]
pub struct UpdateProvider {
    #[serde(deserialize_with = "body::present")]
    #[schema(value_type = DisplayNameSchema)]
    name: Option<String>,
    #[serde(deserialize_with = "body::present")]
    #[schema(nullable = false)]
    kind: Option<ProviderKind>,
    #[serde(deserialize_with = "body::nullable")]
    #[schema(schema_with = nullable_url_schema)]
    base_url: Option<Option<String>>,
    #[serde(deserialize_with = "body::nullable")]
    #[schema(value_type = Option<String>, format = Password, max_length = 4_000, pattern = r"^\s*[!-~]*\s*$")]
    api_key: Option<Option<String>>,
    #[serde(deserialize_with = "body::present")]
    #[schema(value_type = TitleSchema)]
    model: Option<String>,
    #[serde(deserialize_with = "body::present")]
    #[schema(nullable = false)]
    is_default: Option<bool>,
    #[serde(deserialize_with = "body::present")]
    #[schema(nullable = false)]
    disabled: Option<bool>,
    #[serde(deserialize_with = "body::present")]
    #[schema(value_type = provider_settings::KnownProviderSettings)]
    settings: Option<Map<String, Value>>,
}

/// A new provider: it requires a name, a model and, for most kinds, a base URL.
pub struct CreateProvider;

impl PartialSchema for CreateProvider {
    fn schema() -> RefOr<Schema> {
        let kind = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(KINDS_WITH_FIXED_ADDRESS.map(|it| json!(it))));
        let compatible = create_schema(&["name", "model", "base_url"])
            .property("base_url", url_schema().schema_type(Type::String));
        let other = create_schema(&["name", "model", "kind"]).property("kind", kind);
        AnyOfBuilder::new()
            .item(compatible)
            .item(other)
            .description(Some(
                "A new provider. The kind `openai_compatible` requires `base_url`.",
            ))
            .into()
    }
}

fn url_schema() -> ObjectBuilder {
    ObjectBuilder::new().format(Some(SchemaFormat::Custom("uri".to_owned())))
}

/// The schema of a URL that may be null; a blank text counts as null.
fn nullable_url_schema() -> Schema {
    let nullable = SchemaType::from_iter([Type::String, Type::Null]);
    let blank = ObjectBuilder::new().schema_type(Type::String);
    AnyOfBuilder::new()
        .item(url_schema().schema_type(nullable))
        .item(blank.enum_values(Some([""])))
        .into()
}

/// Kinds with a default address, which need no base URL.
const KINDS_WITH_FIXED_ADDRESS: [ProviderKind; 5] = [
    ProviderKind::Demo,
    ProviderKind::Openai,
    ProviderKind::Anthropic,
    ProviderKind::Gemini,
    ProviderKind::Ollama,
];

/// The schema of [`UpdateProvider`] with required fields.
fn create_schema(required: &[&str]) -> ObjectBuilder {
    let schema = match UpdateProvider::schema() {
        RefOr::T(Schema::Object(it)) => ObjectBuilder::from(it).description(None::<String>),
        _ => ObjectBuilder::new(),
    };
    required
        .iter()
        .fold(schema, |it, field| it.required(*field))
}

impl ToSchema for CreateProvider {
    fn name() -> Cow<'static, str> {
        "NewProvider".into()
    }

    fn schemas(schemas: &mut Vec<NamedSchema>) {
        UpdateProvider::schemas(schemas);
    }
}

/// A provider in a list: complete for an admin, only its label for others.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = ListedProvider)]
pub enum ProviderListItem {
    Whole(ProviderView),
    Sign(ProviderLabel),
}

/// A provider after a change.
#[derive(Serialize, ToSchema)]
#[schema(as = ChangedProvider)]
pub struct ProviderDetail {
    #[serde(flatten)]
    pub view: ProviderView,
    /// Whether the key was removed, because it belonged to the old address.
    pub api_key_cleared: bool,
}

/// The result of a test request.
#[derive(Serialize, ToSchema)]
#[schema(as = ProviderTest)]
pub struct ProviderTestResult {
    pub ok: bool,
    /// The duration of the request in milliseconds.
    pub latency_ms: Option<u64>,
    pub error: Option<ProviderTestFailure>,
}

/// The reason why a provider did not answer.
#[derive(Serialize, ToSchema)]
#[schema(as = ProviderFailure)]
pub struct ProviderTestFailure {
    pub code: &'static str,
    pub message: String,
}

/// A model server that was found on this machine.
#[derive(Serialize, ToSchema)]
#[schema(as = FoundServer)]
pub struct DiscoveredServerView {
    pub name: &'static str,
    pub kind: ProviderKind,
    pub base_url: String,
    pub models: Vec<ModelListItem>,
}

/// A model that an endpoint offers.
#[derive(Serialize, ToSchema)]
#[schema(as = OfferedModel)]
pub struct ModelListItem {
    pub id: String,
    /// Whether it accepts pictures; null if the endpoint does not state it.
    pub vision: Option<bool>,
    /// Its context window in tokens; null if the endpoint does not state it.
    pub context_tokens: Option<u32>,
}

impl From<ListedModel> for ModelListItem {
    fn from(listed: ListedModel) -> Self {
        Self {
            id: listed.id,
            vision: listed.vision,
            context_tokens: listed.context_tokens,
        }
    }
}

impl From<DiscoveredServer> for DiscoveredServerView {
    fn from(found: DiscoveredServer) -> Self {
        let models = found.models.into_iter().map(ModelListItem::from);
        Self {
            name: found.name,
            kind: found.kind,
            base_url: found.base_url,
            models: models.collect(),
        }
    }
}

impl UpdateProvider {
    /// Validates every value of the change.
    ///
    /// # Errors
    /// Returns 422 for an invalid value, naming the field.
    pub fn validate(self, app: &App) -> ApiResult<ProviderChange> {
        Ok(ProviderChange {
            name: self.name.as_deref().map(parse_name).transpose()?,
            kind: self.kind,
            base_url: match self.base_url {
                Some(url) => Some(parse_base_url(app, url)?),
                None => None,
            },
            api_key: self.api_key.map(parse_api_key).transpose()?,
            model: self.model.as_deref().map(parse_model).transpose()?,
            is_default: self.is_default,
            disabled: self.disabled,
            settings: self.settings.map(provider_settings::parse).transpose()?,
        })
    }
}

fn parse_name(text: &str) -> ApiResult<String> {
    display_name::parse(text, 100)
        .map_err(|error| ApiError::invalid_value("name", error.to_string()))
}

fn parse_model(text: &str) -> ApiResult<String> {
    display_name::parse(text, MAX_MODEL_CHARS)
        .map_err(|error| ApiError::invalid_value("model", error.to_string()))
}

fn parse_base_url(app: &App, url: Option<String>) -> ApiResult<Option<String>> {
    let url = url
        .map(|it| it.trim().to_owned())
        .filter(|it| !it.is_empty());
    if let Some(url) = &url {
        app.models
            .registry
            .outbound_client
            .parse_base_url(url)
            .map_err(|error| ApiError::invalid_value("base_url", error.to_string()))?;
    }
    Ok(url)
}

fn parse_api_key(text: Option<String>) -> ApiResult<Option<Secret>> {
    let Some(text) = text.filter(|it| !it.trim().is_empty()) else {
        return Ok(None);
    };
    // The key is sent in a header, which allows only visible ASCII.
    if !text.trim().chars().all(|it| it.is_ascii_graphic()) {
        let message = "Must be visible ASCII characters without spaces.";
        return Err(ApiError::invalid_value("api_key", message));
    }
    if text.chars().count() > MAX_KEY_CHARS {
        let message = format!("Must have at most {MAX_KEY_CHARS} characters.");
        return Err(ApiError::invalid_value("api_key", message));
    }
    Ok(Some(Secret::new(&text)))
}
