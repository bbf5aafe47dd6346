//! Endpoints that export the memories of a space as JSON Lines, and import such a file.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path};
use base::ids::SpaceId;

use crate::app::App;
use crate::memories::error::MemoryError;
use crate::memories::pruning::maximum;
use crate::memories::transfer::import_report::MemoryImportReport;
use crate::memories::transfer::memory_import::MemoryImporter;
use crate::memories::transfer::named_members::NamedMembers;
use crate::memories::transfer::{memory_export, memory_import};
use crate::spaces::membership;
use crate::spaces::permissions::Action;
use crate::web::api::downloads;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::space_access;
use crate::web::extract::upload::{PendingUpload, UploadForm};

/// The maximum size of a file of memories, in bytes: 100,000 of them have less than 64 MiB unless they
/// are unusually long.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Exports the memories of a space that the caller may see: those of everyone, of the characters and of
/// the caller.
///
/// Each line is a JSON object with `content`, `kind`, `importance`, `owner` and `about` (names of members,
/// or null), `created_at` and `pinned`.
#[utoipa::path(
    get,
    path = "/api/spaces/{space_id}/memories/export",
    tag = "memories",
    responses((
        status = 200,
        description = "JSON Lines, the oldest memory first.",
        content_type = "application/x-ndjson",
        body = String,
        headers(("content-disposition" = String))
    ), (status = 403), (
        status = 503,
        description = "`unavailable`: too many exports are in progress."
    ))
)]
pub async fn export(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_action(Action::ManageConversation)?;
    let viewer = at.membership.as_ref().map(|it| it.id);
    let turn = downloads::acquire_memory_permit().await?;
    let file = memory_export::export_file(&app.db, at.space.id, viewer).await;
    drop(turn);
    let named = downloads::attachment(&at.space.name, "memories.jsonl");
    downloads::file_response(file.map_err(memory_error)?, named, "application/x-ndjson")
}

/// Imports memories from JSON Lines, as an export writes them. Only `content` is required.
///
/// A line that cannot be imported does not affect the others; the report says why. `owner` must be the
/// name of a character or of the caller, or missing, then the memory is everyone's. If no member has the name in `about`, the
/// memory is imported without it. Memories beyond the maximum of the space are deleted afterwards, the
/// least valuable first.
#[utoipa::path(
    post,
    path = "/api/spaces/{space_id}/memories/import",
    tag = "memories",
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, body = MemoryImportReport),
        (status = 413, description = "`too_large`: more than 64 MiB."),
        (status = 415, description = "`unsupported_media_type`: a multipart form with a file is required."),
        (status = 503, description = "`unavailable`: too many imports are in progress.")
    )
)]
pub async fn import(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    upload: PendingUpload,
) -> ApiResult<Json<MemoryImportReport>> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_write(Action::Moderate)?;
    let file = upload.save(MAX_FILE_BYTES).await?.file;
    let _turn = downloads::acquire_memory_permit().await?;
    let members = membership::list_for_space(app.db.reader(), at.space.id).await?;
    let names = NamedMembers::new(&members, at.membership.as_ref().map(|it| it.id));
    let importer = MemoryImporter::new(app.db.clone(), at.space.id, names, caller.id());
    let report = memory_import::import_file(importer, file, &app.clock, &app.shutdown).await;
    let (space, now) = (&at.space, app.clock.now());
    let events = &app.engine.context().memory_events;
    // Also after an error: what was stored before it is kept.
    events.memories_changed(space.id, space.memory_version + 1);
    let report = report.map_err(memory_error)?;
    if maximum::enforce(&app.db, space.id, &space.settings, now).await? > 0 {
        events.memories_changed(space.id, space.memory_version + 1);
    }
    Ok(Json(report))
}

fn memory_error(error: MemoryError) -> ApiError {
    match error {
        MemoryError::Database(error) => error.into(),
        error => ApiError::internal(error),
    }
}
