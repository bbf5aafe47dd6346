//! The calls of `/v1/conversations`: logs of items that responses go on in.

use crate::app::App;
use crate::openai::body;
use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::far_files;
use crate::openai::fields::Fields;
use crate::openai::items;
use crate::openai::key::Caller;
use crate::openai::list;
use crate::openai::list::Asked;
use crate::openai::list::Page;
use crate::responses::compaction;
use crate::responses::conversation;
use crate::responses::conversation_item;
use crate::responses::history;
use crate::responses::names;
use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::web::Data;
use actix_web::web::Path;
use actix_web::web::Payload;
use sea_orm::ActiveModelTrait;
use sea_orm::DbErr;
use sea_orm::IntoActiveModel;
use serde_json::Value;
use serde_json::json;

/// So many items at once.
const MAX_ITEMS: usize = 20;

/// Begins a conversation, with items if there are some.
///
/// # Errors
/// 400.
pub async fn create(
    app: Data<App>,
    Caller(caller): Caller,
    http: HttpRequest,
    payload: Payload,
) -> Answer<HttpResponse> {
    let body = body::object_or_empty(&app, &caller, &http, payload).await?;
    let fields = Fields(&body);
    fields.only(&["metadata", "items"])?;
    let metadata = fields.metadata()?;
    let given = fields.list("items")?.map_or(&[][..], Vec::as_slice);
    let mut items = items::list("items", given, MAX_ITEMS)?;
    compaction::check(&app.models.cipher, caller.id(), &items)?;
    far_files::fetch(&app, caller.id(), "items", &mut items).await?;
    history::resolve(app.db.reader(), caller.id(), &mut items).await?;
    let row = conversation::Model {
        id: names::mint(names::CONVERSATION),
        user_id: caller.id(),
        metadata,
        next_position: 0,
        created_at: app.clock.now(),
        deleted_at: None,
    };
    let view = row.view();
    let written: Result<(), DbErr> = app
        .db
        .write(move |tx| {
            Box::pin(async move {
                let id = row.id.clone();
                row.into_active_model().insert(tx).await?;
                conversation::append(tx, &id, items).await.map(drop)
            })
        })
        .await;
    written?;
    Ok(HttpResponse::Ok().json(view))
}

/// A conversation.
///
/// # Errors
/// 404.
pub async fn show(
    app: Data<App>,
    Caller(caller): Caller,
    id: Path<String>,
) -> Answer<HttpResponse> {
    let row = find(&app, &caller, &id).await?;
    Ok(HttpResponse::Ok().json(row.view()))
}

/// Replaces what its owner noted on it.
///
/// # Errors
/// 404, 400.
pub async fn update(
    app: Data<App>,
    Caller(caller): Caller,
    http: HttpRequest,
    payload: Payload,
    id: Path<String>,
) -> Answer<HttpResponse> {
    let mut row = find(&app, &caller, &id).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let fields = Fields(&body);
    fields.only(&["metadata"])?;
    row.metadata = fields.metadata()?;
    let (id, metadata) = (row.id.clone(), row.metadata.clone());
    let written: Result<(), DbErr> = app
        .db
        .write(move |tx| Box::pin(async move { conversation::note(tx, &id, metadata).await }))
        .await;
    written?;
    Ok(HttpResponse::Ok().json(row.view()))
}

/// Deletes a conversation; its responses stay.
///
/// # Errors
/// 404.
pub async fn delete(
    app: Data<App>,
    Caller(caller): Caller,
    id: Path<String>,
) -> Answer<HttpResponse> {
    let row = find(&app, &caller, &id).await?;
    let gone = json!({ "id": row.id, "object": "conversation.deleted", "deleted": true });
    let now = app.clock.now();
    let written: Result<(), DbErr> = app
        .db
        .write(move |tx| Box::pin(async move { conversation::delete(tx, &row.id, now).await }))
        .await;
    written?;
    Ok(HttpResponse::Ok().json(gone))
}

/// Adds items to the end.
///
/// # Errors
/// 404, 400.
pub async fn append(
    app: Data<App>,
    Caller(caller): Caller,
    http: HttpRequest,
    payload: Payload,
    id: Path<String>,
) -> Answer<HttpResponse> {
    let row = find(&app, &caller, &id).await?;
    let body = body::object(&app, &caller, &http, payload).await?;
    let fields = Fields(&body);
    fields.only(&["items"])?;
    let given = fields.list("items")?.ok_or_else(|| {
        let message = "This parameter is required.";
        Problem::invalid("missing_required_parameter", "items", message)
    })?;
    let mut items = items::list("items", given, MAX_ITEMS)?;
    compaction::check(&app.models.cipher, caller.id(), &items)?;
    far_files::fetch(&app, caller.id(), "items", &mut items).await?;
    history::resolve(app.db.reader(), caller.id(), &mut items).await?;
    let written: Result<Option<Vec<Value>>, DbErr> = app
        .db
        .write(move |tx| Box::pin(async move { conversation::append(tx, &row.id, items).await }))
        .await;
    let added = written?.ok_or_else(Problem::not_found)?;
    Ok(HttpResponse::Ok().json(list::whole(added, false)))
}

/// The items of a conversation, a page of them.
///
/// # Errors
/// 404, 400.
pub async fn items(
    app: Data<App>,
    Caller(caller): Caller,
    http: HttpRequest,
    id: Path<String>,
) -> Answer<HttpResponse> {
    let row = find(&app, &caller, &id).await?;
    let asked = Page::read(&Asked::read(http.query_string()))?;
    let db = app.db.reader();
    let after = match &asked.after {
        Some(item) => {
            let found = conversation_item::find(db, &row.id, item).await?;
            Some(found.ok_or_else(list::unknown_place)?.position)
        }
        None => None,
    };
    let n_items = asked.limit + 1;
    let items = conversation_item::page(db, &row.id, asked.order.clone(), after, n_items).await?;
    let items = items.into_iter().map(|it| it.payload).collect();
    Ok(HttpResponse::Ok().json(asked.of(items)))
}

/// One item.
///
/// # Errors
/// 404.
pub async fn item(
    app: Data<App>,
    Caller(caller): Caller,
    path: Path<(String, String)>,
) -> Answer<HttpResponse> {
    let (id, item) = path.into_inner();
    let row = find(&app, &caller, &id).await?;
    let found = conversation_item::find(app.db.reader(), &row.id, &item).await?;
    let found = found.ok_or_else(Problem::not_found)?;
    Ok(HttpResponse::Ok().json(found.payload))
}

/// Takes one item away, and answers the conversation.
///
/// # Errors
/// 404.
pub async fn delete_item(
    app: Data<App>,
    Caller(caller): Caller,
    path: Path<(String, String)>,
) -> Answer<HttpResponse> {
    let (id, item) = path.into_inner();
    let row = find(&app, &caller, &id).await?;
    let view = row.view();
    let deleted: Result<bool, DbErr> = app
        .db
        .write(move |tx| {
            Box::pin(async move { conversation_item::delete(tx, &row.id, &item).await })
        })
        .await;
    match deleted? {
        true => Ok(HttpResponse::Ok().json(view)),
        false => Err(Problem::not_found()),
    }
}

async fn find(
    app: &App,
    caller: &crate::http::authentication::CurrentUser,
    id: &str,
) -> Answer<conversation::Model> {
    let found = conversation::of_user(app.db.reader(), caller.id(), id).await?;
    found.ok_or_else(Problem::not_found)
}
