//! Handlers of `/v1/conversations`: create, show, change and delete stored lists of items that
//! responses continue, and append, list, show and delete their items.

use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use responses_api::item::visible;
use responses_api::objects::{Conversation, DeletedObject, List, ObjectType};
use responses_api::request::conversation_bodies;
use responses_api::request::conversation_bodies::NewApiConversation;
use responses_api::schemas::output_items::OtherItem;
use responses_api::schemas::request_bodies::{MetadataBody, NewConversationBody, NewItemsBody};

use crate::app::App;
use crate::responses::input::{history, summary_items};
use crate::responses::store::api_conversation::ConversationRange;
use crate::responses::store::api_conversation_item::ItemRange;
use crate::responses::store::{api_conversation, api_conversation_item};
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::http::idempotency;
use crate::web::v1::http::idempotency::IdempotencyCheck;
use crate::web::v1::http::list_parameters::ListParameters;
use crate::web::v1::pagination;
use crate::web::v1::pagination::{ListPage, ListQuery};
use crate::web::v1::parsing::{body, remote_files};

/// The endpoint that creates a conversation.
const CREATE: &str = "POST /v1/conversations";

/// Creates a conversation, with initial items if the request has any.
///
/// # Errors
/// Returns 400 for an invalid body.
#[utoipa::path(
    post,
    path = "/v1/conversations",
    operation_id = "create_conversation",
    tag = "v1",
    params((
        "Idempotency-Key" = Option<String>,
        Header,
        max_length = 255,
        description = "The same request with the same key returns the same conversation for 24 hours."
    )),
    request_body = Option<NewConversationBody>,
    responses((status = 200, body = Conversation), (status = 409))
)]
pub async fn create(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
) -> V1Result<HttpResponse> {
    let body = body::object_or_empty(&app, &caller, &http, payload).await?;
    let claim = match idempotency::find(&app, &caller, &http, CREATE, &body).await? {
        IdempotencyCheck::New(claim) => claim,
        IdempotencyCheck::Repeated(id) => {
            let row = find(&app, &caller, &id).await?;
            return Ok(HttpResponse::Ok().json(row.view()));
        }
    };
    let NewApiConversation {
        metadata,
        mut items,
    } = NewApiConversation::parse(&body)?;
    summary_items::require_readable(&app.models.cipher, caller.id(), &items)?;
    remote_files::fetch(&app, caller.id(), "items", &mut items).await?;
    history::resolve_references(app.db.reader(), caller.id(), &mut items).await?;
    let now = app.clock.now();
    let content = (metadata.into(), items);
    let row = api_conversation::create(&app.db, caller.id(), content, claim, now).await?;
    let row = row.ok_or_else(V1Error::key_in_use)?;
    Ok(HttpResponse::Ok().json(row.view()))
}

/// Returns a page of the caller's conversations.
///
/// # Errors
/// Returns 400 for an invalid query.
#[utoipa::path(
    get,
    path = "/v1/conversations",
    operation_id = "list_conversations",
    tag = "v1",
    params(ListParameters),
    responses((status = 200, body = List<Conversation>))
)]
pub async fn list(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
) -> V1Result<HttpResponse> {
    let page = ListPage::from_query(&ListQuery::parse(http.query_string()))?;
    let db = app.db.reader();
    let after = match &page.after {
        Some(id) => {
            let found = api_conversation::find_for_user(db, caller.id(), id).await?;
            Some(found.ok_or_else(pagination::unknown_cursor)?.id)
        }
        None => None,
    };
    let range = ConversationRange {
        after,
        is_descending: page.is_descending,
        limit: page.limit + 1,
    };
    let mut rows = api_conversation::list_for_user(db, caller.id(), range).await?;
    let has_more = rows.len() > page.limit;
    rows.truncate(page.limit);
    let all = rows.iter().map(api_conversation::Model::view).collect();
    let list = List::new(all, has_more, |it: &Conversation| Some(it.id()));
    Ok(HttpResponse::Ok().json(list))
}

/// Returns a conversation.
///
/// # Errors
/// Returns 404 if the caller has no such conversation.
#[utoipa::path(
    get,
    path = "/v1/conversations/{id}",
    operation_id = "show_conversation",
    tag = "v1",
    params(("id" = String, Path)),
    responses((status = 200, body = Conversation))
)]
pub async fn show(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let row = find(&app, &caller, &id).await?;
    Ok(HttpResponse::Ok().json(row.view()))
}

/// Replaces the metadata of a conversation.
///
/// # Errors
/// Returns 404 for an unknown conversation and 400 for an invalid body.
#[utoipa::path(
    post,
    path = "/v1/conversations/{id}",
    operation_id = "update_conversation",
    tag = "v1",
    params(("id" = String, Path)),
    request_body = MetadataBody,
    responses((status = 200, body = Conversation))
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
    row.metadata = conversation_bodies::parse_metadata(&body)?.into();
    let (id, metadata) = (row.id.clone(), row.metadata.clone());
    api_conversation::set_metadata(&app.db, id, metadata).await?;
    Ok(HttpResponse::Ok().json(row.view()))
}

/// Deletes a conversation; its responses are kept.
///
/// # Errors
/// Returns 404 if the caller has no such conversation.
#[utoipa::path(
    delete,
    path = "/v1/conversations/{id}",
    operation_id = "delete_conversation",
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
    api_conversation::delete(&app.db, row.id.clone(), app.clock.now()).await?;
    Ok(HttpResponse::Ok().json(DeletedObject::new(row.id, ObjectType::ConversationDeleted)))
}

/// Appends items to a conversation.
///
/// # Errors
/// Returns 404 for an unknown conversation and 400 for an invalid body.
#[utoipa::path(
    post,
    path = "/v1/conversations/{id}/items",
    operation_id = "append_items",
    tag = "v1",
    params(("id" = String, Path)),
    request_body = NewItemsBody,
    responses((status = 200, body = List<OtherItem>))
)]
pub async fn append(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    payload: Payload,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let row = find(&app, &caller, &id).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let mut items = conversation_bodies::parse_items(&body)?;
    summary_items::require_readable(&app.models.cipher, caller.id(), &items)?;
    remote_files::fetch(&app, caller.id(), "items", &mut items).await?;
    history::resolve_references(app.db.reader(), caller.id(), &mut items).await?;
    let added = api_conversation::append(&app.db, row.id, items).await?;
    let added = added.ok_or_else(V1Error::not_found)?;
    Ok(HttpResponse::Ok().json(pagination::list_items(added, false)))
}

/// Returns a page of the items of a conversation.
///
/// # Errors
/// Returns 404 for an unknown conversation and 400 for an invalid query.
#[utoipa::path(
    get,
    path = "/v1/conversations/{id}/items",
    operation_id = "list_items",
    tag = "v1",
    params(("id" = String, Path), ListParameters),
    responses((status = 200, body = List<OtherItem>))
)]
pub async fn list_items(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    http: HttpRequest,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let row = find(&app, &caller, &id).await?;
    let page = ListPage::from_query(&ListQuery::parse(http.query_string()))?;
    let db = app.db.reader();
    let after = match &page.after {
        Some(item) => {
            let found = api_conversation_item::find(db, &row.id, item).await?;
            Some(found.ok_or_else(pagination::unknown_cursor)?.position)
        }
        None => None,
    };
    let range = ItemRange {
        after,
        is_descending: page.is_descending,
        limit: page.limit + 1,
    };
    let items = api_conversation_item::list_range(db, &row.id, range).await?;
    let items = items.into_iter().map(|it| visible(it.payload)).collect();
    Ok(HttpResponse::Ok().json(page.to_list(items)))
}

/// Returns one item.
///
/// # Errors
/// Returns 404 for an unknown conversation or item.
#[utoipa::path(
    get,
    path = "/v1/conversations/{id}/items/{item_id}",
    operation_id = "show_item",
    tag = "v1",
    params(("id" = String, Path), ("item_id" = String, Path)),
    responses((status = 200, body = OtherItem))
)]
pub async fn show_item(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    path: Path<(String, String)>,
) -> V1Result<HttpResponse> {
    let (id, item) = path.into_inner();
    let row = find(&app, &caller, &id).await?;
    let found = api_conversation_item::find(app.db.reader(), &row.id, &item).await?;
    let found = found.ok_or_else(V1Error::not_found)?;
    Ok(HttpResponse::Ok().json(visible(found.payload)))
}

/// Deletes one item and returns the conversation.
///
/// # Errors
/// Returns 404 for an unknown conversation or item.
#[utoipa::path(
    delete,
    path = "/v1/conversations/{id}/items/{item_id}",
    operation_id = "delete_item",
    tag = "v1",
    params(("id" = String, Path), ("item_id" = String, Path)),
    responses((status = 200, body = Conversation))
)]
pub async fn delete_item(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    path: Path<(String, String)>,
) -> V1Result<HttpResponse> {
    let (id, item) = path.into_inner();
    let row = find(&app, &caller, &id).await?;
    match api_conversation_item::delete(&app.db, &row.id, &item).await? {
        true => Ok(HttpResponse::Ok().json(row.view())),
        false => Err(V1Error::not_found()),
    }
}

async fn find(
    app: &App,
    caller: &crate::web::extract::authentication::CurrentUser,
    id: &str,
) -> V1Result<api_conversation::Model> {
    let found = api_conversation::find_for_user(app.db.reader(), caller.id(), id).await?;
    found.ok_or_else(V1Error::not_found)
}
