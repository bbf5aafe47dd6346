//! Endpoints that list, show and cancel runs (attempts to generate a text), and one for admins that
//! recovers the runs of crashed nodes.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path, Query};
use base::ids::{ConversationId, RunId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::runs::execution::recovery::RecoveryReport;
use crate::runs::reading::history::RunQuery;
use crate::runs::store::run;
use crate::runs::store::run_view::RunDocument;
use crate::spaces::permissions::Action;
use crate::web::api::conversation_actions::EmptyBody;
use crate::web::api::engine_error::api_error;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::{Admin, CurrentUser};
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;

/// Filters of a list of runs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RunFilter {
    /// Only runs with this status.
    #[param(inline)]
    status: Option<run::RunStatus>,
}

/// Lists the runs of a conversation, newest first.
#[utoipa::path(
    get,
    path = "/api/conversations/{conversation_id}/runs",
    tag = "runs",
    params(RunFilter, PageQuery<RunId>),
    responses((status = 200, body = PageOf<RunDocument>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ConversationId>,
    filter: Query<RunFilter>,
    page: PageQuery<RunId>,
) -> ApiResult<Json<PageOf<RunDocument>>> {
    let at = space_access::load_conversation_access(&app, &caller, id.into_inner()).await?;
    let (db, backend) = (app.db.reader(), app.db.backend());
    let wanted = RunQuery {
        status: filter.status,
        ..Default::default()
    };
    let found = wanted.list_in_conversation(db, backend, at.conversation.id, page);
    let found = found.await?.ok_or_else(|| {
        ApiError::new(
            400,
            "invalid_value",
            "The cursor is not a run of this list.",
        )
    })?;
    let viewer = at.viewer();
    Ok(Json(found.map(|it| it.document(viewer))))
}

/// Returns a run: why it was planned, its duration, and its result.
#[utoipa::path(
    get,
    path = "/api/runs/{run_id}",
    tag = "runs",
    responses((status = 200, body = RunDocument))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<RunId>,
) -> ApiResult<Json<RunDocument>> {
    let (run, at) = find_run(&app, &caller, id.into_inner()).await?;
    Ok(Json(run.document(at.viewer())))
}

/// The run that was canceled.
#[derive(Serialize, ToSchema)]
pub struct CanceledRun {
    pub run: RunDocument,
}

/// Cancels a run.
#[utoipa::path(
    post,
    path = "/api/runs/{run_id}/cancel",
    tag = "runs",
    request_body = Option<EmptyBody>,
    responses(
        (status = 202, body = CanceledRun),
        (status = 409, description = "`already_finished`.")
    )
)]
pub async fn cancel(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<RunId>,
    body: JsonBody<EmptyBody>,
) -> ApiResult<HttpResponse> {
    let (run, at) = find_run(&app, &caller, id.into_inner()).await?;
    at.require_write(Action::ManageConversation)?;
    let EmptyBody {} = body.read_or_default().await?;
    let scope = (run.conversation_id, at.viewer());
    let canceled = app.engine.cancel_run(scope, run.id).await;
    let run = canceled.map_err(api_error)?;
    Ok(HttpResponse::Accepted().json(CanceledRun { run }))
}

/// Recovers runs of crashed nodes immediately.
#[utoipa::path(
    post,
    path = "/api/admin/reap",
    tag = "admin",
    responses((status = 200, body = RecoveryReport))
)]
pub async fn reap(app: Data<App>, _admin: Admin) -> ApiResult<Json<RecoveryReport>> {
    let report = app.engine.run_recovery().await.map_err(api_error)?;
    Ok(Json(report))
}

async fn find_run(
    app: &App,
    caller: &CurrentUser,
    id: RunId,
) -> ApiResult<(run::Model, space_access::ConversationAccess)> {
    let found = run::find(app.db.reader(), id).await?;
    let run = found.ok_or_else(ApiError::not_found)?;
    let at = space_access::load_conversation_access(app, caller, run.conversation_id).await?;
    Ok((run, at))
}
