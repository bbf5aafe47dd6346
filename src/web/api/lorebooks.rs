//! Endpoints that list, create, show, change, delete, import and export the caller's lorebooks.

use actix_web::HttpResponse;
use actix_web::http::header::{ContentDisposition, DispositionParam, DispositionType};
use actix_web::web::{Data, Json, Path};
use base::ids::LorebookId;
use tavern::import_warning;
use tavern::lorebook_files::file;

use crate::app::App;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::lorebooks::{lorebook, lorebook_entry};
use crate::web::api::lorebook_bodies::{
    CreateLorebook, ImportedLorebookResponse, LorebookDetail, UpdateLorebook,
};
use crate::web::api::lorebook_entry_bodies::EntryView;
use crate::web::api::risu_files;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::upload::{PendingUpload, UploadForm};

/// Lists the caller's lorebooks.
#[utoipa::path(
    get,
    path = "/api/lorebooks",
    tag = "lorebooks",
    params(PageQuery),
    responses((status = 200, body = PageOf<lorebook::LorebookView>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    page: PageQuery,
) -> ApiResult<Json<PageOf<lorebook::LorebookView>>> {
    let db = app.db.reader();
    let found = lorebook::list_for_owner(db, caller.id(), page).await?;
    let n_entries = lorebook::count_entries(db, found.data.iter().map(|it| it.id)).await?;
    Ok(Json(found.map(|it| {
        let n = n_entries.get(&it.id).copied();
        it.view(n.unwrap_or(0))
    })))
}

/// Creates a lorebook in the caller's library.
#[utoipa::path(
    post,
    path = "/api/lorebooks",
    tag = "lorebooks",
    request_body = CreateLorebook,
    responses(
        (status = 201, body = LorebookDetail),
        (status = 422, description = "`too_large`; `invalid_value`.")
    )
)]
pub async fn create(
    app: Data<App>,
    caller: CurrentUser,
    body: JsonBody<CreateLorebook>,
) -> ApiResult<HttpResponse> {
    let draft = body.read().await?.parse()?;
    let made = lorebook::create(&app.db, caller.id(), draft, app.clock.now()).await?;
    Ok(HttpResponse::Created().json(load_detail(&app, made).await?))
}

/// Imports a lorebook file into the caller's library: a SillyTavern world, the lorebook of a card,
/// or one of Agnai, Risu or NovelAI.
#[utoipa::path(
    post,
    path = "/api/lorebooks/import",
    tag = "lorebooks",
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 201, body = ImportedLorebookResponse),
        (status = 413, description = "`too_large`."),
        (status = 415, description = "`unsupported_media_type`: a multipart form with a file is required."),
        (status = 422, description = "`not_a_lorebook`, with the reason; `too_large`; `risu_module` or `risu_preset`: a binary file of Risu.")
    )
)]
pub async fn import(
    app: Data<App>,
    caller: CurrentUser,
    upload: PendingUpload,
) -> ApiResult<HttpResponse> {
    let file = upload.read(file::MAX_BYTES as u64).await?;
    risu_files::refuse_in_memory(&file)?;
    let work = move || file::read(&file.bytes, &file.name);
    let read = app.shutdown.main().spawn_blocking(work).await;
    let draft = read.map_err(ApiError::internal)??;
    let warnings = draft.warnings.clone();
    let made = lorebook::create(&app.db, caller.id(), draft, app.clock.now()).await?;
    Ok(HttpResponse::Created().json(ImportedLorebookResponse {
        lorebook: load_detail(&app, made).await?,
        warnings: import_warning::sentences(&warnings),
        warnings_coded: warnings,
    }))
}

/// Returns one of the caller's lorebooks with its entries.
#[utoipa::path(
    get,
    path = r"/api/lorebooks/{lorebook_id:\d+}",
    tag = "lorebooks",
    responses((status = 200, body = LorebookDetail))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<LorebookId>,
) -> ApiResult<Json<LorebookDetail>> {
    let found = require_own(&app, &caller, id.into_inner()).await?;
    Ok(Json(load_detail(&app, found).await?))
}

/// Changes the name and settings of a lorebook.
#[utoipa::path(
    patch,
    path = r"/api/lorebooks/{lorebook_id:\d+}",
    operation_id = "change",
    tag = "lorebooks",
    request_body = UpdateLorebook,
    responses((status = 200, body = lorebook::LorebookView))
)]
pub async fn update(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<LorebookId>,
    body: JsonBody<UpdateLorebook>,
) -> ApiResult<Json<lorebook::LorebookView>> {
    let present = require_own(&app, &caller, id.into_inner()).await?;
    let (name, document) = body.read().await?.apply_to(present.fields())?;
    let now = app.clock.now();
    let changed = lorebook::update(&app.db, present.id, name, Some(document), now).await?;
    let n_entries = lorebook::count_entries(app.db.reader(), [changed.id]).await?;
    Ok(Json(changed.view(n_entries.values().sum())))
}

/// Deletes a lorebook and its links.
#[utoipa::path(
    delete,
    path = r"/api/lorebooks/{lorebook_id:\d+}",
    tag = "lorebooks",
    responses((status = 204))
)]
pub async fn delete(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<LorebookId>,
) -> ApiResult<HttpResponse> {
    let present = require_own(&app, &caller, id.into_inner()).await?;
    lorebook::delete(&app.db, present.id).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Exports a lorebook as a SillyTavern world file.
#[utoipa::path(
    get,
    path = "/api/lorebooks/{lorebook_id}/export",
    tag = "lorebooks",
    responses((
        status = 200,
        description = "A world file.",
        body = Object,
        headers(("content-disposition" = String))
    ))
)]
pub async fn export(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<LorebookId>,
) -> ApiResult<HttpResponse> {
    let found = require_own(&app, &caller, id.into_inner()).await?;
    let rows = lorebook_entry::list_for_lorebook(app.db.reader(), found.id).await?;
    let entries: Vec<_> = rows.iter().map(lorebook_entry::Model::fields).collect();
    let world = file::to_world_info(&found.name, &found.fields(), &entries);
    let name = found.name.chars().take(60);
    let name: String = name
        .map(|it| if it.is_alphanumeric() { it } else { '_' })
        .collect();
    Ok(HttpResponse::Ok()
        .insert_header(ContentDisposition {
            disposition: DispositionType::Attachment,
            parameters: vec![DispositionParam::Filename(format!("{name}.json"))],
        })
        .json(world))
}

/// Loads the entries of a lorebook.
///
/// # Errors
/// Returns 500 when the database fails.
pub async fn load_detail(app: &App, book: lorebook::Model) -> ApiResult<LorebookDetail> {
    let rows = lorebook_entry::list_for_lorebook(app.db.reader(), book.id).await?;
    Ok(LorebookDetail {
        book: book.view(rows.len() as u64),
        entries: rows.iter().map(EntryView::from_model).collect(),
    })
}

/// Loads a lorebook that the caller may read and change: their own, or any for an admin.
///
/// # Errors
/// Returns 404 when it does not exist or is another user's.
pub async fn require_own(
    app: &App,
    caller: &CurrentUser,
    id: LorebookId,
) -> ApiResult<lorebook::Model> {
    let found = lorebook::find(app.db.reader(), id).await?;
    let may = |it: &lorebook::Model| caller.is_admin() || it.owner_id == Some(caller.id());
    found.filter(may).ok_or_else(ApiError::not_found)
}
