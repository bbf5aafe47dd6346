//! Endpoints that export a whole space as a ZIP file, and import such a file as a new space of the
//! caller.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use base::ids::SpaceId;

use crate::app::App;
use crate::conversations::chats::{import_job, import_writer};
use crate::space_transfer::export::export_events::ExportError;
use crate::space_transfer::export::export_writer;
use crate::space_transfer::limits::TransferLimits;
use crate::space_transfer::lorebook_transfer::VisibleLorebooks;
use crate::space_transfer::space_import;
use crate::space_transfer::space_import::SpaceImport;
use crate::spaces::permissions::Action;
use crate::web::api::downloads;
use crate::web::api::imports::import_error;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::space_access;
use crate::web::extract::upload::{PendingUpload, UploadForm};

/// Exports a space: rules, memberships, cards with images, lorebooks, presets, and all
/// conversations with branches, swipes and dates. It contains no keys, passwords, invites, deleted
/// data, or lorebooks and memories that the caller may not read. Macro variables and ended runs are
/// included; queued and running runs are not.
#[utoipa::path(
    get,
    path = "/api/spaces/{space_id}/export",
    tag = "spaces",
    responses((
        status = 200,
        description = "A ZIP file.",
        content_type = "application/zip",
        body = String,
        headers(("content-disposition" = String))
    ), (status = 403), (
        status = 503,
        description = "`unavailable`: too many exports are in progress."
    ), (
        status = 422,
        description = "`space_too_large`: no server with the same limits could import the file."
    ))
)]
pub async fn export(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_action(Action::Configure)?;
    let now = app.clock.now();
    let reader = match caller.is_admin() {
        true => VisibleLorebooks::Admin,
        false => VisibleLorebooks::User(caller.id()),
    };
    let reader = (reader, at.membership.as_ref().map(|it| it.id));
    let (db, limits) = (&app.db, transfer_limits(&app));
    let turn = downloads::acquire_space_permit().await?;
    let packed =
        export_writer::export_space(db, &app.shutdown, &at.space, reader, limits, now).await;
    let packed = packed.map_err(|error| export_error(&app, error))?;
    drop(turn);
    let named = downloads::attachment(&at.space.name, "troupe.zip");
    downloads::file_response(packed.file, named, "application/zip")
}

fn transfer_limits(app: &App) -> TransferLimits {
    TransferLimits::from_mib(app.config.max_space_mib)
}

/// Converts an export error.
fn export_error(app: &App, error: ExportError) -> ApiError {
    match error {
        ExportError::TooLarge => {
            let most = app.config.max_space_mib;
            let message = format!(
                "The file of this space would exceed the limit of {most} MiB. The operator of this \
                 server can raise it (TROUPE_MAX_SPACE_MIB)."
            );
            ApiError::new(422, "space_too_large", message)
        }
        error => ApiError::internal(error),
    }
}

/// Imports a space file as a space of the caller.
///
/// The response is sent when the upload is complete; `GET /api/imports/{import_id}` shows the
/// progress. Other people's memberships are inactive and keep their names; their own memories are not
/// imported and are listed in the report. Cards, lorebooks and presets are added to the caller's library.
#[utoipa::path(
    post,
    path = "/api/spaces/import",
    tag = "imports",
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 202, body = import_job::ImportView),
        (status = 409, description = "`import_running`: one at a time."),
        (status = 413, description = "`too_large`: larger than this server's limit; the default is 100 MiB."),
        (status = 415, description = "`unsupported_media_type`: a multipart form with a file is required.")
    )
)]
pub async fn import(
    app: Data<App>,
    caller: CurrentUser,
    upload: PendingUpload,
) -> ApiResult<HttpResponse> {
    caller.require_registered()?;
    let file = upload.save(transfer_limits(&app).max_file_bytes).await?;
    let kind = import_job::ImportKind::Space;
    let now = app.clock.now();
    let begun = import_writer::start(&app.db, caller.id(), kind, None, file.n_bytes, now);
    let job = begun.await.map_err(import_error)?;
    let view = job.view();
    let arrival = SpaceImport {
        job,
        owner: caller.user.clone(),
        quota_bytes: app.config.limits.stored_bytes,
        file: file.file,
        n_bytes: file.n_bytes,
        limits: transfer_limits(&app),
    };
    let tools = app.imports.clone();
    app.imports.spawn(view.id, async move {
        // The import stores its result in its row and logs unexpected errors.
        let _ = space_import::run(&tools, arrival).await;
    });
    Ok(HttpResponse::Accepted().json(view))
}
