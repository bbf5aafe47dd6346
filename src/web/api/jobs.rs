//! Endpoints that list, show and cancel the caller's background jobs, including imports; also
//! builds the response of endpoints that start a job.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path};
use base::ids::{ImportId, JobId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::conversations::chats::import_job;
use crate::conversations::jobs::{job, job_view};
use crate::db::reading::page::PageOf;
use crate::web::api::imports;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;

/// A background job that was started.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobStarted {
    pub job: job_view::JobView,
}

/// Returns 202 with the running job.
pub fn accepted_response(job: &job::Model) -> HttpResponse {
    HttpResponse::Accepted().json(JobStarted { job: job.view() })
}

/// Lists the caller's newest jobs and imports: those in progress, and those that ended in the last
/// seven days.
#[utoipa::path(
    get,
    path = "/api/jobs",
    tag = "jobs",
    responses((status = 200, body = PageOf<job_view::JobView>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
) -> ApiResult<Json<PageOf<job_view::JobView>>> {
    let views = job_view::list_for_user(app.db.reader(), caller.id()).await?;
    Ok(Json(PageOf::complete(views)))
}

/// Returns the progress or the result of one of the caller's jobs or imports.
#[utoipa::path(
    get,
    path = "/api/jobs/{job_id}",
    tag = "jobs",
    responses((status = 200, body = job_view::JobView), (status = 404))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<JobId>,
) -> ApiResult<Json<job_view::JobView>> {
    let view = match find_own(&app, &caller, id.into_inner()).await? {
        OwnJob::Job(row) => row.view(),
        OwnJob::Import(row) => job_view::import_as_job(&row),
    };
    Ok(Json(view))
}

/// Cancels one of the caller's branch jobs or imports and deletes what it created. A deletion
/// cannot be canceled.
#[utoipa::path(
    delete,
    path = "/api/jobs/{job_id}",
    tag = "jobs",
    responses(
        (status = 204),
        (status = 404),
        (status = 409, description = "`already_finished`, also for a deletion.")
    )
)]
pub async fn cancel(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<JobId>,
) -> ApiResult<HttpResponse> {
    let row = match find_own(&app, &caller, id.into_inner()).await? {
        OwnJob::Job(row) => row,
        OwnJob::Import(row) => return imports::cancel_import(&app, &row).await,
    };
    if !job::cancel(&app.db, row.id, app.clock.now()).await? {
        let message = "This job has ended, or is a deletion, which cannot be canceled.";
        return Err(ApiError::conflict("already_finished", message));
    }
    let canceled = job::find_for_user(app.db.reader(), caller.id(), row.id).await?;
    if let Some(event) = canceled.as_ref().and_then(job::Model::update_event) {
        app.hub.publish(event);
    }
    Ok(HttpResponse::NoContent().finish())
}

enum OwnJob {
    Job(Box<job::Model>),
    Import(Box<import_job::Model>),
}

async fn find_own(app: &App, caller: &CurrentUser, id: JobId) -> ApiResult<OwnJob> {
    let db = app.db.reader();
    if let Some(row) = job::find_for_user(db, caller.id(), id).await? {
        return Ok(OwnJob::Job(Box::new(row)));
    }
    let own = import_job::find_for_user(db, caller.id(), ImportId(id.0)).await?;
    let own = own.ok_or_else(ApiError::not_found)?;
    Ok(OwnJob::Import(Box::new(own)))
}
