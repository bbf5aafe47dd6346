//! Endpoints that list, create, show, change and delete the entries of a lorebook.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path};
use base::ids::{LorebookEntryId, LorebookId};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::app::App;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::lorebooks::lorebook_entry;
use crate::lorebooks::lorebook_entry::AddEntryError;
use crate::web::api::lorebook_entry_bodies::{EntryView, LorebookEntryBody};
use crate::web::api::{lorebook_entry_bodies, lorebooks};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;

/// The path parameters of one entry.
#[derive(Clone, Copy, Deserialize)]
pub struct EntryPath {
    lorebook_id: LorebookId,
    lorebook_entry_id: LorebookEntryId,
}

/// Lists the entries of a lorebook; a page has at most 2 MiB.
#[utoipa::path(
    get,
    path = "/api/lorebooks/{lorebook_id}/entries",
    operation_id = "entries",
    tag = "lorebooks",
    params(PageQuery),
    responses((status = 200, body = PageOf<EntryView>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    book: Path<LorebookId>,
    page: PageQuery,
) -> ApiResult<Json<PageOf<EntryView>>> {
    let book = lorebooks::require_own(&app, &caller, book.into_inner()).await?;
    let found = lorebook_entry::list_page_for_lorebook(app.db.reader(), book.id, page).await?;
    Ok(Json(found.map(|it| EntryView::from_model(&it))))
}

/// Creates an entry in a lorebook.
#[utoipa::path(
    post,
    path = "/api/lorebooks/{lorebook_id}/entries",
    operation_id = "write_entry",
    tag = "lorebooks",
    request_body = LorebookEntryBody,
    responses(
        (status = 201, body = EntryView),
        (status = 409, description = "`lorebook_full`."),
        (status = 422, description = "`too_large`; `invalid_value`.")
    )
)]
pub async fn create_entry(
    app: Data<App>,
    caller: CurrentUser,
    book: Path<LorebookId>,
    body: JsonBody<Map<String, Value>>,
) -> ApiResult<HttpResponse> {
    let book = lorebooks::require_own(&app, &caller, book.into_inner()).await?;
    let entry = lorebook_entry_bodies::merge_entry(Map::new(), body.read().await?)?;
    let made = lorebook_entry::create(&app.db, book.id, entry).await?;
    Ok(HttpResponse::Created().json(EntryView::from_model(&made)))
}

/// Returns an entry of a lorebook.
#[utoipa::path(
    get,
    path = "/api/lorebooks/{lorebook_id}/entries/{lorebook_entry_id}",
    operation_id = "entry",
    tag = "lorebooks",
    responses((status = 200, body = EntryView))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    at: Path<EntryPath>,
) -> ApiResult<Json<EntryView>> {
    let found = require_own(&app, &caller, at.into_inner()).await?;
    Ok(Json(EntryView::from_model(&found)))
}

/// Changes some fields of an entry and of its extensions; the others are kept.
#[utoipa::path(
    patch,
    path = "/api/lorebooks/{lorebook_id}/entries/{lorebook_entry_id}",
    operation_id = "rewrite_entry",
    tag = "lorebooks",
    request_body = LorebookEntryBody,
    responses(
        (status = 200, body = EntryView),
        (status = 422, description = "`too_large`; `invalid_value`.")
    )
)]
pub async fn update_entry(
    app: Data<App>,
    caller: CurrentUser,
    at: Path<EntryPath>,
    body: JsonBody<Map<String, Value>>,
) -> ApiResult<Json<EntryView>> {
    let present = require_own(&app, &caller, at.into_inner()).await?;
    let entry = lorebook_entry_bodies::merge_entry(present.fields(), body.read().await?)?;
    let changed = lorebook_entry::update(&app.db, present.id, entry).await?;
    Ok(Json(EntryView::from_model(&changed)))
}

/// Deletes an entry.
#[utoipa::path(
    delete,
    path = "/api/lorebooks/{lorebook_id}/entries/{lorebook_entry_id}",
    operation_id = "strike_entry",
    tag = "lorebooks",
    responses((status = 204))
)]
pub async fn delete_entry(
    app: Data<App>,
    caller: CurrentUser,
    at: Path<EntryPath>,
) -> ApiResult<HttpResponse> {
    let present = require_own(&app, &caller, at.into_inner()).await?;
    lorebook_entry::delete(&app.db, present.id).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Loads an entry of a lorebook that the caller may change.
async fn require_own(
    app: &App,
    caller: &CurrentUser,
    at: EntryPath,
) -> ApiResult<lorebook_entry::Model> {
    let book = lorebooks::require_own(app, caller, at.lorebook_id).await?;
    let (db, entry) = (app.db.reader(), at.lorebook_entry_id);
    let found = lorebook_entry::find_in_lorebook(db, book.id, entry).await?;
    found.ok_or_else(ApiError::not_found)
}

impl From<AddEntryError> for ApiError {
    fn from(error: AddEntryError) -> Self {
        match error {
            AddEntryError::LimitReached => {
                Self::conflict("lorebook_full", format!("The lorebook is full: {error}."))
            }
            AddEntryError::Db(error) => error.into(),
        }
    }
}
