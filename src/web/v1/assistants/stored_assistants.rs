//! Handlers of `/v1/assistants`: create, list, show, change and delete stored settings for runs of
//! threads.

use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use responses_api::objects::{DeletedObject, List, ObjectType};
use responses_api::request::threads::assistant_bodies::{AssistantChange, NewAssistant};
use responses_api::schemas::thread_bodies::{AssistantChangeBody, NewAssistantBody};
use responses_api::threads::assistant_object::AssistantObject;

use crate::app::App;
use crate::responses::preparation;
use crate::responses::threads::assistant;
use crate::responses::tool_declarations::SERVER_RULES;
use crate::web::extract::authentication::CurrentUser;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::assistants::object_lists;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::http::list_parameters::RangeParameters;
use crate::web::v1::pagination::ListQuery;
use crate::web::v1::parsing::body;

/// Creates an assistant.
///
/// # Errors
/// Returns 400 for an invalid body and 404 for an unknown model.
#[utoipa::path(
    post,
    path = "/v1/assistants",
    operation_id = "create_assistant",
    tag = "v1",
    request_body = NewAssistantBody,
    responses(
        (status = 200, body = AssistantObject),
        (status = 404, description = "`model_not_found`: no model that the caller may use has this id.")
    )
)]
pub async fn create(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
) -> V1Result<HttpResponse> {
    let body = body::object(&app, &caller, &http, payload).await?;
    let new = NewAssistant::parse(&body, &SERVER_RULES)?;
    require_model(&app, &caller, &new.model).await?;
    let row = assistant::create(&app.db, caller.id(), new, app.clock.now()).await?;
    Ok(HttpResponse::Ok().json(row.view()))
}

/// Returns a page of the caller's assistants.
///
/// # Errors
/// Returns 400 for an invalid query.
#[utoipa::path(
    get,
    path = "/v1/assistants",
    operation_id = "list_assistants",
    tag = "v1",
    params(RangeParameters),
    responses((status = 200, body = List<AssistantObject>))
)]
pub async fn list(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
) -> V1Result<HttpResponse> {
    let (db, user) = (app.db.reader(), caller.id());
    let query = ListQuery::parse(http.query_string());
    let find = async |id: &str| assistant::find_position(db, user, id).await;
    let range = object_lists::range(&query, find).await?;
    let slice = assistant::list_for_user(db, user, range).await?;
    let views: Vec<AssistantObject> = slice.rows.iter().map(assistant::Model::view).collect();
    let list = List::new(views, slice.has_more, |it| Some(&it.id));
    Ok(HttpResponse::Ok().json(list))
}

/// Returns an assistant.
///
/// # Errors
/// Returns 404 if the caller has no such assistant.
#[utoipa::path(
    get,
    path = "/v1/assistants/{id}",
    operation_id = "show_assistant",
    tag = "v1",
    params(("id" = String, Path)),
    responses((status = 200, body = AssistantObject))
)]
pub async fn show(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let row = find(&app, &caller, &id).await?;
    Ok(HttpResponse::Ok().json(row.view()))
}

/// Changes the fields of an assistant that the body contains. Runs that exist keep their settings.
///
/// # Errors
/// Returns 404 for an unknown assistant or model, and 400 for an invalid body.
#[utoipa::path(
    post,
    path = "/v1/assistants/{id}",
    operation_id = "update_assistant",
    tag = "v1",
    params(("id" = String, Path)),
    request_body = AssistantChangeBody,
    responses((status = 200, body = AssistantObject))
)]
pub async fn update(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let row = find(&app, &caller, &id).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let change = AssistantChange::parse(&body, &SERVER_RULES)?;
    if let Some(model) = &change.model {
        require_model(&app, &caller, model).await?;
    }
    let changed = assistant::update(&app.db, row.id, change).await?;
    let changed = changed.ok_or_else(V1Error::not_found)?;
    Ok(HttpResponse::Ok().json(changed.view()))
}

/// Deletes an assistant; its runs are kept.
///
/// # Errors
/// Returns 404 if the caller has no such assistant.
#[utoipa::path(
    delete,
    path = "/v1/assistants/{id}",
    operation_id = "delete_assistant",
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
    assistant::delete(&app.db, row.id.clone(), app.clock.now()).await?;
    Ok(HttpResponse::Ok().json(DeletedObject::new(row.id, ObjectType::AssistantDeleted)))
}

async fn find(app: &App, caller: &CurrentUser, id: &str) -> V1Result<assistant::Model> {
    let found = assistant::find_for_user(app.db.reader(), caller.id(), id).await?;
    found.ok_or_else(V1Error::not_found)
}

/// Checks that the caller may use a model.
async fn require_model(app: &App, caller: &CurrentUser, model: &str) -> V1Result<()> {
    preparation::find_target(app.responses.services(), caller.id(), model).await?;
    Ok(())
}
