//! Handlers of `/v1/threads`: create, show, change and delete threads.

use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use responses_api::objects::{DeletedObject, ObjectType};
use responses_api::request::threads::thread_bodies;
use responses_api::request::threads::thread_bodies::NewThread;
use responses_api::schemas::thread_bodies::{NewThreadBody, ThreadChangeBody};
use responses_api::threads::thread_object::ThreadObject;

use crate::app::App;
use crate::responses::threads::{thread, thread_writer};
use crate::web::extract::authentication::CurrentUser;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::assistants::message_files;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::body;

/// Creates a thread, with messages if the request has any.
///
/// # Errors
/// Returns 400 for an invalid body.
#[utoipa::path(
    post,
    path = "/v1/threads",
    operation_id = "create_thread",
    tag = "v1",
    request_body = Option<NewThreadBody>,
    responses((status = 200, body = ThreadObject))
)]
pub async fn create(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
) -> V1Result<HttpResponse> {
    let body = body::object_or_empty(&app, &caller, &http, payload).await?;
    let mut new = NewThread::parse(&body)?;
    drop(body);
    message_files::fetch(&app, caller.id(), "messages", &mut new.messages).await?;
    let row = thread_writer::create(&app.db, caller.id(), new, app.clock.now()).await?;
    Ok(HttpResponse::Ok().json(row.view()))
}

/// Returns a thread.
///
/// # Errors
/// Returns 404 if the caller has no such thread.
#[utoipa::path(
    get,
    path = "/v1/threads/{id}",
    operation_id = "show_thread",
    tag = "v1",
    params(("id" = String, Path)),
    responses((status = 200, body = ThreadObject))
)]
pub async fn show(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let row = find(&app, &caller, &id).await?;
    Ok(HttpResponse::Ok().json(row.view()))
}

/// Replaces the metadata of a thread.
///
/// # Errors
/// Returns 404 for an unknown thread and 400 for an invalid body.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}",
    operation_id = "update_thread",
    tag = "v1",
    params(("id" = String, Path)),
    request_body = ThreadChangeBody,
    responses((status = 200, body = ThreadObject))
)]
pub async fn update(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let mut row = find(&app, &caller, &id).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    if let Some(metadata) = thread_bodies::parse_thread_change(&body)? {
        let now = app.clock.now();
        row = thread_writer::set_thread_metadata(&app.db, row.id, metadata, now).await?;
    }
    Ok(HttpResponse::Ok().json(row.view()))
}

/// Deletes a thread with its messages and runs.
///
/// # Errors
/// Returns 404 if the caller has no such thread.
#[utoipa::path(
    delete,
    path = "/v1/threads/{id}",
    operation_id = "delete_thread",
    tag = "v1",
    params(("id" = String, Path)),
    responses((status = 200, body = DeletedObject))
)]
pub async fn delete(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let row = find(&app, &caller, &id).await?;
    thread_writer::delete_thread(&app.db, row.id.clone(), app.clock.now()).await?;
    Ok(HttpResponse::Ok().json(DeletedObject::new(row.id, ObjectType::ThreadDeleted)))
}

/// Finds a thread of the caller.
///
/// # Errors
/// Returns 404 if the caller has no such thread.
pub async fn find(app: &App, caller: &CurrentUser, id: &str) -> V1Result<thread::Model> {
    let found = thread::find_for_user(app.db.reader(), caller.id(), id).await?;
    found.ok_or_else(V1Error::not_found)
}
