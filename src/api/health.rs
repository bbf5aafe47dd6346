//! Whether the process lives, and whether it takes work.

use crate::app::App;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use actix_web::HttpResponse;
use actix_web::web::Data;
use sea_orm::ConnectionTrait;
use serde::Serialize;
use utoipa::ToSchema;

/// In one word.
#[derive(Serialize, ToSchema)]
#[schema(as = Health)]
pub struct Word {
    /// `alive`.
    status: &'static str,
}

/// Whether the server takes work, and hears the others.
#[derive(Serialize, ToSchema)]
pub struct Readiness {
    /// `ready`.
    status: &'static str,
    /// `connected`, or `away`: then other nodes are heard late. Null for one node by itself.
    redis: Option<&'static str>,
}

/// The process lives.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "server",
    security(),
    responses((status = 200, body = Word))
)]
pub async fn alive() -> HttpResponse {
    HttpResponse::Ok().json(Word { status: "alive" })
}

/// The server takes work.
///
/// The database answers, and nobody has asked the server to end. Without Redis it takes work all
/// the same: if it did not, all nodes would leave their proxy at once.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "server",
    security(),
    responses((status = 200, body = Readiness), (status = 503, description = "`internal`: not ready."))
)]
pub async fn ready(app: Data<App>) -> ApiResult<HttpResponse> {
    if app.shutdown.draining.is_cancelled() {
        return Err(not_ready("The server is closing."));
    }
    if let Err(error) = app.db.reader().execute_unprepared("select 1").await {
        tracing::warn!(%error, "not ready, the database does not answer: {error}");
        return Err(not_ready("The database does not answer."));
    }
    // The migrations are done before the first connection is taken.
    let bus = app.hub.bus();
    let redis = bus.line().map(|_| match bus.is_connected() {
        true => "connected",
        false => "away",
    });
    let status = "ready";
    Ok(HttpResponse::Ok().json(Readiness { status, redis }))
}

fn not_ready(message: &str) -> ApiError {
    let mut error = ApiError::new(503, "internal", message);
    error.retry_after = Some(1);
    error
}
