//! Handlers of `/v1/threads/{id}/runs/{run_id}/steps`: list and show the steps of a run.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use responses_api::objects::List;
use responses_api::threads::run_objects::ThreadRunStepObject;

use crate::app::App;
use crate::db::backend::DbError;
use crate::responses::thread_runs::run_row_conversion;
use crate::responses::threads::thread_run_step;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::assistants::{object_lists, runs};
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::http::list_parameters::RangeParameters;
use crate::web::v1::pagination::ListQuery;

/// Returns a page of the steps of a run.
///
/// # Errors
/// Returns 404 for an unknown thread or run, and 400 for an invalid query.
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/runs/{run_id}/steps",
    operation_id = "list_thread_run_steps",
    tag = "v1",
    params(("id" = String, Path), ("run_id" = String, Path), RangeParameters),
    responses((status = 200, body = List<ThreadRunStepObject>))
)]
pub async fn list(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    path: Path<(String, String)>,
) -> V1Result<HttpResponse> {
    let run = runs::find(&app, &caller, &path).await?;
    let db = app.db.reader();
    let query = ListQuery::parse(http.query_string());
    let position = async |id: &str| -> Result<Option<i64>, DbError> {
        let found = thread_run_step::find(db, &run.id, id).await?;
        Ok(found.map(|it| it.position))
    };
    let range = object_lists::range(&query, position).await?;
    let slice = thread_run_step::list(db, &run.id, range).await?;
    let steps = slice.rows.into_iter();
    let steps = steps.map(|it| run_row_conversion::step_document(&run, it));
    let steps: Vec<ThreadRunStepObject> = steps.collect();
    let list = List::new(steps, slice.has_more, |it| Some(&it.id));
    Ok(HttpResponse::Ok().json(list))
}

/// Returns one step.
///
/// # Errors
/// Returns 404 for an unknown thread, run or step.
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/runs/{run_id}/steps/{step_id}",
    operation_id = "show_thread_run_step",
    tag = "v1",
    params(("id" = String, Path), ("run_id" = String, Path), ("step_id" = String, Path)),
    responses((status = 200, body = ThreadRunStepObject))
)]
pub async fn show(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    path: Path<(String, String, String)>,
) -> V1Result<HttpResponse> {
    let (thread, run, step) = path.into_inner();
    let run = runs::find(&app, &caller, &(thread, run)).await?;
    let found = thread_run_step::find(app.db.reader(), &run.id, &step).await?;
    let found = found.ok_or_else(V1Error::not_found)?;
    Ok(HttpResponse::Ok().json(run_row_conversion::step_document(&run, found)))
}
