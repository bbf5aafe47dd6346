//! Handlers of `/v1/threads/{id}/messages`: append, list, show, change and delete the messages of a
//! thread.

use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use responses_api::objects::{DeletedObject, List, ObjectType};
use responses_api::request::threads::thread_bodies;
use responses_api::request::threads::thread_messages::NewThreadMessage;
use responses_api::schemas::request_bodies::MetadataBody;
use responses_api::schemas::thread_bodies::NewThreadMessageBody;
use responses_api::threads::thread_message_object::ThreadMessageObject;

use crate::app::App;
use crate::responses::threads::{thread_message, thread_writer};
use crate::web::extract::authentication::CurrentUser;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::assistants::{message_files, object_lists, threads};
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::http::list_parameters::RangeParameters;
use crate::web::v1::pagination::ListQuery;
use crate::web::v1::parsing::body;

/// Appends a message to a thread.
///
/// # Errors
/// Returns 404 for an unknown thread, and 400 for an invalid body or while a run is active.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/messages",
    operation_id = "create_thread_message",
    tag = "v1",
    params(("id" = String, Path)),
    request_body = NewThreadMessageBody,
    responses((status = 200, body = ThreadMessageObject))
)]
pub async fn create(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let thread = threads::find(&app, &caller, &id).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let mut message = NewThreadMessage::parse(&body)?;
    drop(body);
    message_files::fetch_one(&app, caller.id(), &mut message).await?;
    let now = app.clock.now();
    let row = thread_writer::append(&app.db, thread.id, message, now).await?;
    Ok(HttpResponse::Ok().json(row.view()))
}

/// Returns a page of the messages of a thread; `run_id` selects those of one run.
///
/// # Errors
/// Returns 404 for an unknown thread and 400 for an invalid query.
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/messages",
    operation_id = "list_thread_messages",
    tag = "v1",
    params(("id" = String, Path), RangeParameters, ("run_id" = Option<String>, Query)),
    responses((status = 200, body = List<ThreadMessageObject>))
)]
pub async fn list(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let thread = threads::find(&app, &caller, &id).await?;
    let db = app.db.reader();
    let query = ListQuery::parse(http.query_string());
    let find = async |id: &str| thread_message::find_seq(db, &thread.id, id).await;
    let range = object_lists::range(&query, find).await?;
    let run = query.get("run_id");
    if run.is_some_and(|it| it.contains('\0')) {
        return Err(V1Error::wrong_value("run_id", "the id of a run"));
    }
    let slice = thread_message::list(db, &thread.id, run, range).await?;
    let views: Vec<ThreadMessageObject> =
        slice.rows.iter().map(thread_message::Model::view).collect();
    let list = List::new(views, slice.has_more, |it| Some(&it.id));
    Ok(HttpResponse::Ok().json(list))
}

/// Returns one message.
///
/// # Errors
/// Returns 404 for an unknown thread or message.
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/messages/{message_id}",
    operation_id = "show_thread_message",
    tag = "v1",
    params(("id" = String, Path), ("message_id" = String, Path)),
    responses((status = 200, body = ThreadMessageObject))
)]
pub async fn show(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    path: Path<(String, String)>,
) -> V1Result<HttpResponse> {
    let row = find(&app, &caller, &path).await?;
    Ok(HttpResponse::Ok().json(row.view()))
}

/// Replaces the metadata of a message.
///
/// # Errors
/// Returns 404 for an unknown thread or message, and 400 for an invalid body or while a run is active.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/messages/{message_id}",
    operation_id = "update_thread_message",
    tag = "v1",
    params(("id" = String, Path), ("message_id" = String, Path)),
    request_body = MetadataBody,
    responses((status = 200, body = ThreadMessageObject))
)]
pub async fn update(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
    path: Path<(String, String)>,
) -> V1Result<HttpResponse> {
    let mut row = find(&app, &caller, &path).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    if let Some(metadata) = thread_bodies::parse_message_change(&body)? {
        let now = app.clock.now();
        row = thread_writer::set_message_metadata(&app.db, row, metadata, now).await?;
    }
    Ok(HttpResponse::Ok().json(row.view()))
}

/// Deletes one message.
///
/// # Errors
/// Returns 404 for an unknown thread or message, and 400 while a run is active.
#[utoipa::path(
    delete,
    path = "/v1/threads/{id}/messages/{message_id}",
    operation_id = "delete_thread_message",
    tag = "v1",
    params(("id" = String, Path), ("message_id" = String, Path)),
    responses(
        (status = 200, body = DeletedObject),
        (status = 400, description = "`thread_has_active_run`: a run of the thread is active.")
    )
)]
pub async fn delete(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    path: Path<(String, String)>,
) -> V1Result<HttpResponse> {
    let row = find(&app, &caller, &path).await?;
    let deleted = DeletedObject::new(row.id.clone(), ObjectType::ThreadMessageDeleted);
    thread_writer::delete_message(&app.db, row, app.clock.now()).await?;
    Ok(HttpResponse::Ok().json(deleted))
}

async fn find(
    app: &App,
    caller: &CurrentUser,
    (thread, message): &(String, String),
) -> V1Result<thread_message::Model> {
    let thread = threads::find(app, caller, thread).await?;
    let found = thread_message::find(app.db.reader(), &thread.id, message).await?;
    found.ok_or_else(V1Error::not_found)
}
