//! Endpoints for admins that list, create, change, delete and test model providers, list their
//! models, and find model servers on this machine. Other users can only list the labels of
//! providers.
//!
//! **Invariant:** an API key can be set, but is never returned.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path};
use base::ids::ProviderId;
use llm::error::LlmError;
use llm::model_list::{ListedModel, ModelList};
use llm::registry::{ProviderKind, RegistryError};
use llm::text_completion::detection;
use llm::{discovery, model_list};
use serde_json::json;
use tavern::instruct::template_choice;

use crate::app::App;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::providers::detected::model_lists::ModelListError;
use crate::providers::detected::{detected_facts, model_lists};
use crate::providers::provider;
use crate::providers::provider::NewProvider;
use crate::providers::provider_factory::ProviderError;
use crate::providers::provider_views::ProviderView;
use crate::web::api::provider_bodies::{
    CreateProvider, DiscoveredServerView, ModelListItem, ProviderDetail, ProviderListItem,
    ProviderTestFailure, ProviderTestResult, UpdateProvider,
};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::{Admin, CurrentUser};
use crate::web::extract::json_body::JsonBody;

/// Lists the providers: complete for an admin, only their labels for others.
#[utoipa::path(
    get,
    path = "/api/providers",
    tag = "providers",
    params(PageQuery),
    responses((status = 200, body = PageOf<ProviderListItem>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    page: PageQuery,
) -> ApiResult<Json<PageOf<ProviderListItem>>> {
    let found = provider::list(app.db.reader(), page).await?;
    let is_admin = caller.is_admin();
    Ok(Json(found.map(|it| match is_admin {
        true => ProviderListItem::Whole(it.view()),
        false => ProviderListItem::Sign(it.label()),
    })))
}

/// Creates a provider.
#[utoipa::path(
    post,
    path = "/api/providers",
    tag = "providers",
    request_body = CreateProvider,
    responses((status = 201, body = ProviderView))
)]
pub async fn create(
    app: Data<App>,
    _: Admin,
    body: JsonBody<UpdateProvider>,
) -> ApiResult<HttpResponse> {
    let wanted = body.read().await?.validate(&app)?;
    let missing = |field: &'static str| {
        let message = format!("A provider requires `{field}`.");
        ApiError::new(400, "missing_field", message).with_param(field)
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
    let made = provider::create(&app.db, &app.models.cipher, new, app.clock.now()).await?;
    app.embedding.request_for_changed_spaces().await?;
    Ok(HttpResponse::Created().json(made.view()))
}

/// Changes a provider. If the address changes, the key of the old address is removed.
#[utoipa::path(
    patch,
    path = "/api/providers/{provider_id}",
    operation_id = "change",
    tag = "providers",
    request_body = UpdateProvider,
    responses((status = 200, body = ProviderDetail))
)]
pub async fn update(
    app: Data<App>,
    _: Admin,
    id: Path<ProviderId>,
    body: JsonBody<UpdateProvider>,
) -> ApiResult<Json<ProviderDetail>> {
    let id = id.into_inner();
    let present = find_provider(&app, id).await?;
    let change = body.read().await?.validate(&app)?;
    let kind = change.kind.unwrap_or(present.kind);
    let base_url = change.base_url.clone().unwrap_or(present.base_url);
    if kind == ProviderKind::OpenaiCompatible && base_url.is_none() {
        let message = "A provider of this kind requires a base URL.";
        return Err(ApiError::invalid_value("base_url", message));
    }
    let changed = provider::update(&app.db, &app.models.cipher, id, change).await?;
    let changed = changed.ok_or_else(ApiError::not_found)?;
    app.embedding.request_for_changed_spaces().await?;
    Ok(Json(ProviderDetail {
        view: changed.provider.view(),
        api_key_cleared: changed.key_cleared,
    }))
}

/// Deletes a provider.
#[utoipa::path(
    delete,
    path = "/api/providers/{provider_id}",
    tag = "providers",
    responses((status = 204))
)]
pub async fn delete(app: Data<App>, _: Admin, id: Path<ProviderId>) -> ApiResult<HttpResponse> {
    match provider::delete(&app.db, id.into_inner()).await? {
        true => {
            app.embedding.request_for_changed_spaces().await?;
            Ok(HttpResponse::NoContent().finish())
        }
        false => Err(ApiError::not_found()),
    }
}

/// Tests a provider with a minimal request to its model.
#[utoipa::path(
    post,
    path = "/api/providers/{provider_id}/test",
    tag = "providers",
    responses((status = 200, body = ProviderTestResult))
)]
pub async fn test(
    app: Data<App>,
    _: Admin,
    id: Path<ProviderId>,
) -> ApiResult<Json<ProviderTestResult>> {
    let mut row = find_provider(&app, id.into_inner()).await?;
    detected_facts::forget(&app.db, row.id).await?;
    if row.kind.completes_text(&row.settings) {
        detect_completion_server(&app, &row).await?;
        row = find_provider(&app, row.id).await?;
    }
    let answer = match app.models.create(&row) {
        Ok(model) => {
            let name = row.model.clone();
            let probing = async move { model_list::probe(model.as_ref(), &name).await };
            let probed = run_on_main(&app, probing).await?;
            probed.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    // The list is more than what was asked for; a server without one still answers.
    if answer.is_ok() && row.kind != ProviderKind::Demo {
        let listed = load_list(&app, &row).await;
        if let Err(error) = listed {
            tracing::debug!(error = %error.message, "provider {} lists no models", row.id);
        }
    }
    Ok(Json(match answer {
        Ok(took) => ProviderTestResult {
            ok: true,
            latency_ms: Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            error: None,
        },
        Err(message) => ProviderTestResult {
            ok: false,
            latency_ms: None,
            error: Some(ProviderTestFailure {
                code: "upstream_error",
                message,
            }),
        },
    }))
}

/// Asks the server of a provider which text completion API and which template it has.
async fn detect_completion_server(app: &App, row: &provider::Model) -> ApiResult<()> {
    // The test itself reports settings that are incomplete.
    let Ok(spec) = row.spec(&app.models.cipher) else {
        return Ok(());
    };
    let registry = app.models.registry.clone();
    let asking = async move { detection::detect(&registry, &spec).await };
    if let Ok(found) = run_on_main(app, asking).await? {
        let template = found.chat_template.as_deref();
        let template = template.and_then(template_choice::by_chat_template);
        detected_facts::record_completion_server(&app.db, row.id, found.api, template).await?;
    }
    Ok(())
}

/// Lists the models that a provider's endpoint offers.
#[utoipa::path(
    get,
    path = "/api/providers/{provider_id}/models",
    operation_id = "models",
    tag = "providers",
    responses(
        (status = 200, body = PageOf<ModelListItem>),
        (status = 403),
        (status = 422, description = "`invalid_value`: this kind has no endpoint, or its settings are incomplete."),
        (status = 503, description = "`upstream_error`: the endpoint returned an error or no valid response; `internal`.")
    )
)]
pub async fn list_models(
    app: Data<App>,
    _: Admin,
    id: Path<ProviderId>,
) -> ApiResult<Json<PageOf<ModelListItem>>> {
    let row = find_provider(&app, id.into_inner()).await?;
    if row.kind == ProviderKind::Demo {
        let demo = ListedModel {
            id: row.model,
            vision: Some(false),
            context_tokens: None,
        };
        return Ok(Json(PageOf::complete(vec![demo.into()])));
    }
    let list = load_list(&app, &row).await?;
    let offered = list.models.into_iter().map(ModelListItem::from);
    Ok(Json(PageOf::complete(offered.collect())))
}

/// Searches this machine for Ollama, LM Studio, llama.cpp and KoboldCpp at their default ports.
#[utoipa::path(
    post,
    path = "/api/providers/discover",
    tag = "providers",
    responses(
        (status = 200, body = PageOf<DiscoveredServerView>),
        (status = 403, description = "`forbidden`: not an admin, or the server must not call private addresses.")
    )
)]
pub async fn discover(app: Data<App>, _: Admin) -> ApiResult<Json<PageOf<DiscoveredServerView>>> {
    if !app.config.allow_private_providers {
        return Err(ApiError::forbidden(
            "This server must not call private addresses, including its own machine. \
             TROUPE_ALLOW_PRIVATE_PROVIDERS=true allows it.",
        ));
    }
    let (registry, places) = (app.models.registry.clone(), app.server_addresses.clone());
    let looking = async move { discovery::probe_all(&registry, &places).await };
    let found = run_on_main(&app, looking).await?;
    Ok(Json(PageOf::complete(
        found.into_iter().map(DiscoveredServerView::from).collect(),
    )))
}

/// Loads the list of models of a provider's endpoint, and records what it states.
async fn load_list(app: &App, row: &provider::Model) -> ApiResult<ModelList> {
    let (db, models, row) = (app.db.clone(), app.models.clone(), row.clone());
    let now = app.clock.now();
    let listing = async move { model_lists::load(&db, &models, &row, now).await };
    Ok(run_on_main(app, listing).await??)
}

async fn find_provider(app: &App, id: ProviderId) -> ApiResult<provider::Model> {
    let found = provider::find(app.db.reader(), id).await?;
    found.ok_or_else(ApiError::not_found)
}

/// Runs the call on the main runtime, which owns the HTTP client's connections.
async fn run_on_main<T: Send + 'static>(
    app: &App,
    call: impl Future<Output = T> + Send + 'static,
) -> ApiResult<T> {
    app.shutdown.spawn(call).await.map_err(ApiError::internal)
}

fn upstream_error(error: LlmError) -> ApiError {
    ApiError::new(503, "upstream_error", error.to_string())
}

impl From<ModelListError> for ApiError {
    fn from(error: ModelListError) -> Self {
        match error {
            ModelListError::Provider(error) => error.into(),
            ModelListError::Call(error) => upstream_error(error),
            ModelListError::Database(error) => error.into(),
        }
    }
}

impl From<ProviderError> for ApiError {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::Registry(RegistryError::Unusable(error)) => upstream_error(error),
            ProviderError::Registry(error) => Self::new(422, "invalid_value", error.to_string()),
            ProviderError::Decrypt(error) => Self::internal(error),
        }
    }
}
