//! Endpoints that list, create and revoke the caller's own API keys.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path};
use base::display_name;
use base::ids::ApiKeyId;
use realtime::envelope::{Envelope, SocketControl};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::api_key;
use crate::accounts::name_schemas::DisplayNameSchema;
use crate::app::App;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;

/// A new API key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewApiKey)]
pub struct CreateApiKey {
    #[schema(value_type = DisplayNameSchema)]
    name: String,
}

/// A new API key. Its text cannot be read again later.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiKeyWithText)]
pub struct CreatedApiKey {
    #[serde(flatten)]
    view: api_key::ApiKeyView,
    /// The key itself.
    key: String,
}

/// Lists the caller's API keys.
#[utoipa::path(
    get,
    path = "/api/api_keys",
    tag = "api_keys",
    params(PageQuery),
    responses((status = 200, body = PageOf<api_key::ApiKeyView>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    page: PageQuery,
) -> ApiResult<Json<PageOf<api_key::ApiKeyView>>> {
    let keys = api_key::list_for_user(app.db.reader(), caller.id(), page).await?;
    Ok(Json(keys.map(|it| it.view())))
}

/// Creates an API key. Only this response contains its text.
#[utoipa::path(
    post,
    path = "/api/api_keys",
    tag = "api_keys",
    request_body = CreateApiKey,
    responses((status = 201, body = CreatedApiKey))
)]
pub async fn create(
    app: Data<App>,
    caller: CurrentUser,
    body: JsonBody<CreateApiKey>,
) -> ApiResult<HttpResponse> {
    caller.require_registered()?;
    let body = body.read().await?;
    let name = display_name::parse(&body.name, 100)
        .map_err(|error| ApiError::invalid_value("name", error.to_string()))?;
    let (made, key) = api_key::create(&app.db, caller.id(), name, app.clock.now()).await?;
    let view = made.view();
    Ok(HttpResponse::Created().json(CreatedApiKey { view, key }))
}

/// Revokes an API key. Sockets that were opened with it are closed.
#[utoipa::path(
    delete,
    path = "/api/api_keys/{api_key_id}",
    tag = "api_keys",
    responses((status = 204))
)]
pub async fn revoke(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ApiKeyId>,
) -> ApiResult<HttpResponse> {
    let id = id.into_inner();
    if !api_key::revoke(&app.db, caller.id(), id, app.clock.now()).await? {
        return Err(ApiError::not_found());
    }
    // Closes the sockets that were opened with the key.
    app.hub.publish(Envelope::control(
        caller.id(),
        SocketControl::KeyRevoked(id),
    ));
    Ok(HttpResponse::NoContent().finish())
}
