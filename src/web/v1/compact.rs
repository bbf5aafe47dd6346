//! Handler of `POST /v1/responses/compact`: reads the request, fetches the files that it names by
//! URL, and returns the messages of the client and a summary of everything else. Stores nothing.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use responses_api::request::create_response::CompactExchange;
use responses_api::response::Compaction;
use responses_api::schemas::request_bodies::CompactBody;

use crate::app::App;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::error::V1Result;
use crate::web::v1::parsing::{body, remote_files};
use crate::web::v1::responses;

/// Compacts an exchange. Nothing is stored.
///
/// # Errors
/// Returns 400 for an invalid request and 502 when the model fails.
#[utoipa::path(
    post,
    path = "/v1/responses/compact",
    operation_id = "compact_exchange",
    tag = "v1",
    request_body = CompactBody,
    responses((status = 200, body = Compaction), (status = 403), (status = 404, description = "`model_not_found`: no model that the caller may use has this id."), (status = 409), (status = 502))
)]
pub async fn compact(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
) -> V1Result<HttpResponse> {
    responses::require_rate_limit(&app, &caller).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let mut request = CompactExchange::parse(&body)?;
    drop(body);
    remote_files::fetch(&app, caller.id(), "input", &mut request.input).await?;
    let document = app.responses.compact(caller.id(), request.into()).await?;
    Ok(HttpResponse::Ok().json(document))
}
