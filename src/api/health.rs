//! Whether the process lives, and whether it takes work.

use actix_web::HttpResponse;
use actix_web::http::header;
use actix_web::web::Data;
use sea_orm::ConnectionTrait;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::db::health::{DAMAGED_MESSAGE, WriteState};
use crate::http::error::{ApiError, ErrorDetail};

/// In one word.
#[derive(Serialize, ToSchema)]
#[schema(as = Health)]
pub struct LivenessBody {
    /// `alive`.
    status: &'static str,
}

/// Whether the server takes work, and the parts that decide it.
#[derive(Serialize, ToSchema)]
#[schema(as = Readiness)]
pub struct ReadinessBody {
    /// `ready` or `not_ready`.
    status: &'static str,
    /// `connected`, or `away`: it does not answer.
    database: &'static str,
    /// `known`, or `unknown`: with PostgreSQL, how far this node's clock is from the database's.
    clock: &'static str,
    /// `connected`, or `away`: then other nodes are heard late. Null for one node by itself.
    redis: Option<&'static str>,
    /// `working`; `failing` from a failed write until a write probe succeeds; `damaged` until the
    /// restart when a page of the SQLite file could not be read.
    writes: &'static str,
}

/// The parts, and the reason in a sentence.
#[derive(Serialize, ToSchema)]
pub struct NotReady<'a> {
    #[serde(flatten)]
    parts: ReadinessBody,
    error: ErrorDetail<'a>,
}

/// The process lives.
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

/// The server takes work.
///
/// The database answers, the last write or write probe succeeded, no damage was found, and nobody
/// has asked the server to end. Without Redis it takes work all the same: if it did not, all nodes
/// would leave their proxy at once.
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
    let answered = app.db.reader().execute_unprepared("select 1").await;
    if let Err(error) = &answered {
        tracing::warn!(%error, "not ready, the database does not answer: {error}");
    }
    // Read after the database: the question itself may have found damage.
    let state = app.db.health().state();
    let (writes, write_reason) = match state {
        WriteState::Working => ("working", None),
        WriteState::Failing(reason) => ("failing", Some(reason)),
        WriteState::Damaged => ("damaged", Some(DAMAGED_MESSAGE)),
    };
    let away = answered.is_err().then_some("The database does not answer.");
    let is_known = app.engine.context().is_clock_synchronized();
    let lost = (!is_known).then_some("The clock of the database is not known.");
    let closing = app.shutdown.draining.is_cancelled();
    let closing = closing.then_some("The server is closing.");
    // The migrations are done before the first connection is taken.
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
    // Redis is not among them: a node without it is late, not dead.
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
