//! Endpoints that report liveness (`/healthz`) and readiness (`/readyz`), with the state of the
//! database and of Redis.

use actix_web::HttpResponse;
use actix_web::http::header;
use actix_web::web::Data;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::db::health::{DAMAGED_MESSAGE, WriteState};
use crate::web::error::{ApiError, ErrorDetail};

/// The liveness status.
#[derive(Serialize, ToSchema)]
#[schema(as = Health)]
pub struct LivenessBody {
    /// `alive`.
    status: &'static str,
}

/// Whether the server accepts work, and the components that decide it.
#[derive(Serialize, ToSchema)]
#[schema(as = Readiness)]
pub struct ReadinessBody {
    /// `ready` or `not_ready`.
    status: &'static str,
    /// `connected`, or `away` if it does not respond.
    database: &'static str,
    /// `known` or `unknown`. With PostgreSQL: whether the offset between the clocks of this node
    /// and the database is known.
    clock: &'static str,
    /// `connected`, or `away`: events of other nodes are delayed. Null for a single node.
    redis: Option<&'static str>,
    /// `working`; `failing` from a failed write until a write probe succeeds; `damaged` until the
    /// restart when a page of the SQLite file could not be read.
    writes: &'static str,
}

/// The components, and the reason as a sentence.
#[derive(Serialize, ToSchema)]
pub struct NotReady<'a> {
    #[serde(flatten)]
    parts: ReadinessBody,
    error: ErrorDetail<'a>,
}

/// Returns 200 while the process is alive.
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "alive",
    tag = "server",
    security(),
    responses((status = 200, body = LivenessBody))
)]
pub async fn live() -> HttpResponse {
    HttpResponse::Ok().json(LivenessBody { status: "alive" })
}

/// Returns 200 while the server accepts work.
///
/// It is ready while the database responds, the last write or write probe succeeded, no damage was
/// found, and no shutdown was requested. Redis is not required: otherwise all nodes would become
/// not ready at the same time.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "server",
    security(),
    responses(
        (status = 200, body = ReadinessBody),
        (status = 503, body = NotReady<'_>, description = "`internal`: not ready, with the reason.")
    )
)]
pub async fn ready(app: Data<App>) -> HttpResponse {
    let answered = app.db.ping().await;
    if let Err(error) = &answered {
        tracing::warn!(%error, "not ready: the database does not respond");
    }
    // Read this after the query, because the query itself may have found damage.
    let state = app.db.health().state();
    let (writes, write_reason) = match state {
        WriteState::Working => ("working", None),
        WriteState::Failing(reason) => ("failing", Some(reason)),
        WriteState::Damaged => ("damaged", Some(DAMAGED_MESSAGE)),
    };
    let away = answered
        .is_err()
        .then_some("The database does not respond.");
    let is_known = app.engine.context().is_clock_synchronized();
    let lost = (!is_known).then_some("The database clock is not synchronized.");
    let closing = app.shutdown.draining.is_cancelled();
    let closing = closing.then_some("The server is shutting down.");
    // Migrations need no check: they run before the first connection is accepted.
    let bus = app.hub.bus();
    let redis = bus.state().map(|_| match bus.is_connected() {
        true => "connected",
        false => "away",
    });
    let mut parts = ReadinessBody {
        status: "ready",
        database: if away.is_some() { "away" } else { "connected" },
        clock: if is_known { "known" } else { "unknown" },
        redis,
        writes,
    };
    // Redis is not included: without it a node is late, but works.
    let Some(reason) = closing.or(write_reason).or(away).or(lost) else {
        return HttpResponse::Ok().json(parts);
    };
    parts.status = "not_ready";
    let error = ApiError::new(503, "internal", reason);
    HttpResponse::ServiceUnavailable()
        .insert_header((header::RETRY_AFTER, "1"))
        .json(NotReady {
            parts,
            error: error.body(None),
        })
}
