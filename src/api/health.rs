//! Whether the process lives, and whether it takes work.

use crate::app::App;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use actix_web::HttpResponse;
use actix_web::web::Data;
use sea_orm::ConnectionTrait;
use serde_json::json;

/// `GET /healthz`: the process lives.
#[utoipa::path(get, path = "/healthz", tag = "server")]
pub async fn alive() -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "alive"}))
}

/// `GET /readyz`: the database answers, and nobody has asked us to end. The migrations are done
/// before the first connection is taken.
#[utoipa::path(get, path = "/readyz", tag = "server")]
pub async fn ready(app: Data<App>) -> ApiResult<HttpResponse> {
    if app.shutdown.draining.is_cancelled() {
        return Err(not_ready("The server is closing."));
    }
    if let Err(error) = app.db.reader().execute_unprepared("select 1").await {
        tracing::warn!(%error, "not ready, the database does not answer: {error}");
        return Err(not_ready("The database does not answer."));
    }
    Ok(HttpResponse::Ok().json(json!({"status": "ready"})))
}

fn not_ready(message: &str) -> ApiError {
    let mut error = ApiError::new(503, "internal", message);
    error.retry_after = Some(1);
    error
}
