//! Keys for one's own programs.

use crate::accounts::api_key;
use crate::accounts::names;
use crate::app::App;
use crate::http::auth::CurrentUser;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::http::json::Body;
use crate::http::page::Listing;
use crate::http::page::Page;
use crate::ids::ApiKeyId;
use crate::realtime::event::Envelope;
use crate::realtime::event::Order;
use actix_web::HttpResponse;
use actix_web::web::Data;
use actix_web::web::Json;
use actix_web::web::Path;
use serde::Deserialize;
use serde_json::json;

/// The body of a new key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    name: String,
}

/// `GET /api/api_keys`
#[utoipa::path(get, path = "/api/api_keys", tag = "api_keys")]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    page: Page,
) -> ApiResult<Json<Listing<api_key::View>>> {
    let keys = page
        .of(
            api_key::of_user(caller.id()),
            api_key::Column::Id,
            app.db.reader(),
        )
        .await?;
    Ok(Json(keys.map(|it| it.view())))
}

/// `POST /api/api_keys`: the one answer that holds the key.
#[utoipa::path(post, path = "/api/api_keys", tag = "api_keys")]
pub async fn create(
    app: Data<App>,
    caller: CurrentUser,
    body: Body<NewKey>,
) -> ApiResult<HttpResponse> {
    caller.must_be_no_guest()?;
    let body = body.read().await?;
    let name = names::shown(&body.name, 100)
        .map_err(|error| ApiError::invalid_value("name", error.to_string()))?;
    let (made, key) = api_key::create(&app.db, caller.id(), name, app.clock.now()).await?;
    let mut answer = json!(made.view());
    answer["key"] = json!(key);
    Ok(HttpResponse::Created().json(answer))
}

/// `DELETE /api/api_keys/{id}`
#[utoipa::path(delete, path = "/api/api_keys/{api_key_id}", tag = "api_keys")]
pub async fn revoke(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ApiKeyId>,
) -> ApiResult<HttpResponse> {
    let id = id.into_inner();
    if !api_key::revoke(&app.db, caller.id(), id, app.clock.now()).await? {
        return Err(ApiError::not_found());
    }
    // The sockets that it opened close.
    app.hub
        .publish(Envelope::order(caller.id(), Order::KeyRevoked(id)));
    Ok(HttpResponse::NoContent().finish())
}
