//! Models: an admin puts them on the shelf, everybody reads the labels.
//!
//! **Invariant:** a key is written, never read back.

use crate::accounts::names;
use crate::app::App;
use crate::http::auth::Admin;
use crate::http::auth::CurrentUser;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::http::json as body;
use crate::http::json::Body;
use crate::http::page::Page;
use crate::ids::ProviderId;
use crate::llm::catalog;
use crate::llm::error::LlmError;
use crate::llm::registry::ProviderKind;
use crate::llm::registry::RegistryError;
use crate::llm::secret::Secret;
use crate::providers::models::ModelError;
use crate::providers::provider;
use crate::providers::provider::Change;
use crate::providers::provider::NewProvider;
use actix_web::HttpResponse;
use actix_web::web::Data;
use actix_web::web::Path;
use sea_orm::EntityTrait;
use serde::Deserialize;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

const MAX_MODEL_CHARS: usize = 200;
const MAX_KEY_CHARS: usize = 4_000;

/// What one sets of a provider: the body of a new one and of a change.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wanted {
    #[serde(deserialize_with = "body::present")]
    name: Option<String>,
    #[serde(deserialize_with = "body::present")]
    kind: Option<ProviderKind>,
    #[serde(deserialize_with = "body::nullable")]
    base_url: Option<Option<String>>,
    #[serde(deserialize_with = "body::nullable")]
    api_key: Option<Option<String>>,
    #[serde(deserialize_with = "body::present")]
    model: Option<String>,
    #[serde(deserialize_with = "body::present")]
    is_default: Option<bool>,
    #[serde(deserialize_with = "body::present")]
    disabled: Option<bool>,
    #[serde(deserialize_with = "body::present")]
    settings: Option<Map<String, Value>>,
}

impl Wanted {
    /// The change, every value judged.
    fn judged(self, app: &App) -> ApiResult<Change> {
        Ok(Change {
            name: self.name.as_deref().map(name).transpose()?,
            kind: self.kind,
            base_url: match self.base_url {
                Some(url) => Some(base_url(app, url)?),
                None => None,
            },
            api_key: self.api_key.map(api_key).transpose()?,
            model: self.model.as_deref().map(model).transpose()?,
            is_default: self.is_default,
            disabled: self.disabled,
            settings: self.settings.map(Value::Object),
        })
    }
}

fn name(text: &str) -> ApiResult<String> {
    names::shown(text, 100).map_err(|error| ApiError::invalid_value("name", error.to_string()))
}

fn model(text: &str) -> ApiResult<String> {
    names::shown(text, MAX_MODEL_CHARS)
        .map_err(|error| ApiError::invalid_value("model", error.to_string()))
}

fn base_url(app: &App, url: Option<String>) -> ApiResult<Option<String>> {
    let url = url
        .map(|it| it.trim().to_owned())
        .filter(|it| !it.is_empty());
    if let Some(url) = &url {
        app.models
            .registry
            .egress
            .base_url(url)
            .map_err(|error| ApiError::invalid_value("base_url", error.to_string()))?;
    }
    Ok(url)
}

fn api_key(text: Option<String>) -> ApiResult<Option<Secret>> {
    let Some(text) = text.filter(|it| !it.trim().is_empty()) else {
        return Ok(None);
    };
    // It travels in a header: anything else than visible ASCII could not be sent.
    let fits = text.trim().chars().all(|it| it.is_ascii_graphic());
    match fits && text.len() <= MAX_KEY_CHARS {
        true => Ok(Some(Secret::new(&text))),
        false => Err(ApiError::invalid_value(
            "api_key",
            "A key takes visible ASCII characters, no blanks inside.",
        )),
    }
}

/// `GET /api/providers`
#[utoipa::path(get, path = "/api/providers", tag = "providers")]
pub async fn list(app: Data<App>, caller: CurrentUser, page: Page) -> ApiResult<HttpResponse> {
    let select = provider::Entity::find();
    let found = page
        .of(select, provider::Column::Id, app.db.reader())
        .await?;
    Ok(match caller.is_admin() {
        true => HttpResponse::Ok().json(found.map(|it| it.view())),
        false => HttpResponse::Ok().json(found.map(|it| it.sign())),
    })
}

/// `POST /api/providers`
#[utoipa::path(post, path = "/api/providers", tag = "providers")]
pub async fn create(app: Data<App>, _: Admin, body: Body<Wanted>) -> ApiResult<HttpResponse> {
    let wanted = body.read().await?.judged(&app)?;
    let missing = |field: &'static str| {
        let message = format!("A provider takes a `{field}`.");
        ApiError::new(400, "missing_field", message).about(field)
    };
    let kind = wanted.kind.unwrap_or(ProviderKind::OpenaiCompatible);
    let base_url = wanted.base_url.flatten();
    if kind == ProviderKind::OpenaiCompatible && base_url.is_none() {
        return Err(missing("base_url"));
    }
    let new = NewProvider {
        name: wanted.name.ok_or_else(|| missing("name"))?,
        kind,
        base_url,
        api_key: wanted.api_key.flatten(),
        model: wanted.model.ok_or_else(|| missing("model"))?,
        is_default: wanted.is_default.unwrap_or(false),
        disabled: wanted.disabled.unwrap_or(false),
        settings: wanted.settings.unwrap_or_else(|| json!({})),
    };
    let made = provider::create(&app.db, &app.models.sealer, new, app.clock.now()).await?;
    Ok(HttpResponse::Created().json(made.view()))
}

/// `PATCH /api/providers/{id}`: `api_key_cleared` tells that the key was for the old address.
#[utoipa::path(patch, path = "/api/providers/{provider_id}", tag = "providers")]
pub async fn change(
    app: Data<App>,
    _: Admin,
    id: Path<ProviderId>,
    body: Body<Wanted>,
) -> ApiResult<HttpResponse> {
    let id = id.into_inner();
    let present = find(&app, id).await?;
    let change = body.read().await?.judged(&app)?;
    let kind = change.kind.unwrap_or(present.kind);
    let base_url = change.base_url.clone().unwrap_or(present.base_url);
    if kind == ProviderKind::OpenaiCompatible && base_url.is_none() {
        let message = "A provider of this kind needs a base URL.";
        return Err(ApiError::invalid_value("base_url", message));
    }
    let changed = provider::update(&app.db, &app.models.sealer, id, change).await?;
    let changed = changed.ok_or_else(ApiError::not_found)?;
    let mut answer = json!(changed.provider.view());
    answer["api_key_cleared"] = json!(changed.key_cleared);
    Ok(HttpResponse::Ok().json(answer))
}

/// `DELETE /api/providers/{id}`
#[utoipa::path(delete, path = "/api/providers/{provider_id}", tag = "providers")]
pub async fn delete(app: Data<App>, _: Admin, id: Path<ProviderId>) -> ApiResult<HttpResponse> {
    match provider::delete(&app.db, id.into_inner()).await? {
        true => Ok(HttpResponse::NoContent().finish()),
        false => Err(ApiError::not_found()),
    }
}

/// `POST /api/providers/{id}/test`: asks for one word. `ok` tells whether it came.
#[utoipa::path(post, path = "/api/providers/{provider_id}/test", tag = "providers")]
pub async fn test(app: Data<App>, _: Admin, id: Path<ProviderId>) -> ApiResult<HttpResponse> {
    let row = find(&app, id.into_inner()).await?;
    let answer = match app.models.provider(&row) {
        Ok(model) => on_main(&app, async move {
            catalog::probe(model.as_ref(), &row.model).await
        })
        .await?
        .map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    Ok(HttpResponse::Ok().json(match answer {
        Ok(took) => json!({
            "ok": true,
            "latency_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "error": null,
        }),
        Err(message) => json!({
            "ok": false,
            "latency_ms": null,
            "error": {"code": "upstream_error", "message": message},
        }),
    }))
}

/// `GET /api/providers/{id}/models`
#[utoipa::path(get, path = "/api/providers/{provider_id}/models", tag = "providers")]
pub async fn models(app: Data<App>, _: Admin, id: Path<ProviderId>) -> ApiResult<HttpResponse> {
    let row = find(&app, id.into_inner()).await?;
    let names = match row.kind {
        ProviderKind::Demo => vec![row.model],
        _ => {
            let spec = row.spec(&app.models.sealer).map_err(ModelError::from)?;
            let endpoint = app.models.registry.endpoint(&spec);
            let endpoint = endpoint.map_err(ModelError::from)?;
            let listing = async move { catalog::list_models(&endpoint).await };
            on_main(&app, listing).await?.map_err(unavailable)?
        }
    };
    let data: Vec<Value> = names.iter().map(|id| json!({ "id": id })).collect();
    Ok(HttpResponse::Ok().json(json!({"data": data, "has_more": false})))
}

async fn find(app: &App, id: ProviderId) -> ApiResult<provider::Model> {
    let found = provider::Entity::find_by_id(id)
        .one(app.db.reader())
        .await?;
    found.ok_or_else(ApiError::not_found)
}

/// The client's connections belong to the main runtime, so calls are made there.
async fn on_main<T: Send + 'static>(
    app: &App,
    call: impl Future<Output = T> + Send + 'static,
) -> ApiResult<T> {
    app.shutdown.spawn(call).await.map_err(ApiError::internal)
}

fn unavailable(error: LlmError) -> ApiError {
    ApiError::new(503, "upstream_error", error.to_string())
}

impl From<ModelError> for ApiError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Registry(RegistryError::Unusable(error)) => unavailable(error),
            ModelError::Registry(error) => Self::new(422, "invalid_value", error.to_string()),
            ModelError::Seal(error) => Self::internal(error),
        }
    }
}
