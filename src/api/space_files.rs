//! Whole spaces as files.

use crate::api::exports::attachment;
use crate::api::imports::refusal;
use crate::api::imports::tools;
use crate::app::App;
use crate::conversations::import_job;
use crate::conversations::import_rows;
use crate::http::auth::CurrentUser;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::http::seat;
use crate::http::upload::Form;
use crate::http::upload::Upload;
use crate::ids::SpaceId;
use crate::spaces::permissions::Act;
use crate::transfers::arrival;
use crate::transfers::arrival::Arrival;
use crate::transfers::books::Reader;
use crate::transfers::pack;
use crate::transfers::unpack;
use actix_web::HttpResponse;
use actix_web::web::Bytes;
use actix_web::web::Data;
use actix_web::web::Path;
use futures::stream;
use tokio::io::AsyncReadExt;

/// How much of a file is held while it is sent.
const PIECE_BYTES: usize = 64 * 1024;

/// A whole space as a file: rules, seats, cards with their pictures, lorebooks, presets, and every
/// conversation with its branches, versions and dates. No key, no password and no invite is in it,
/// nothing that was deleted, and no lorebook that one may not read.
#[utoipa::path(
    get,
    path = "/api/spaces/{space_id}/export",
    tag = "spaces",
    responses((
        status = 200,
        description = "A zip.",
        content_type = "application/zip",
        body = String,
        headers(("content-disposition" = String))
    ), (status = 403))
)]
pub async fn export(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
) -> ApiResult<HttpResponse> {
    let at = seat::in_space(&app, &caller, space.into_inner()).await?;
    at.may(Act::Configure)?;
    let now = app.clock.now();
    let reader = match caller.is_admin() {
        true => Reader::Admin,
        false => Reader::User(caller.id()),
    };
    let file = pack::pack(app.db.reader(), &app.shutdown, &at.space, reader, now).await;
    let file = tokio::fs::File::from_std(file.map_err(ApiError::internal)?);
    let pieces = stream::try_unfold(file, |mut file| async move {
        let mut piece = vec![0; PIECE_BYTES];
        let n_read = file.read(&mut piece).await?;
        piece.truncate(n_read);
        let piece = (n_read > 0).then(|| (Bytes::from(piece), file));
        Ok::<_, std::io::Error>(piece)
    });
    Ok(HttpResponse::Ok()
        .insert_header(attachment(&at.space.name, "troupe.zip"))
        .content_type("application/zip")
        .streaming(pieces))
}

/// Brings in a space from such a file, as one's own.
///
/// The answer comes when the file is here; `GET /api/imports/{import_id}` tells how far it is. Other
/// people's seats are empty and keep their names; cards, lorebooks and presets go on one's own shelf.
#[utoipa::path(
    post,
    path = "/api/spaces/import",
    tag = "imports",
    request_body(content = Form, content_type = "multipart/form-data"),
    responses(
        (status = 202, body = import_job::View),
        (status = 409, description = "`import_running`: one at a time."),
        (status = 413, description = "`too_large`: more than 100 MiB."),
        (status = 415, description = "`unsupported_media_type`: this takes a form with a file.")
    )
)]
pub async fn import(
    app: Data<App>,
    caller: CurrentUser,
    upload: Upload,
) -> ApiResult<HttpResponse> {
    caller.must_be_no_guest()?;
    let file = upload.save(unpack::MAX_FILE).await?;
    let kind = import_job::Kind::Space;
    let now = app.clock.now();
    let begun = import_rows::begin(&app.db, caller.id(), kind, None, file.n_bytes, now);
    let job = begun.await.map_err(refusal)?;
    let view = job.view();
    let arrival = Arrival {
        job,
        owner: caller.user.clone(),
        limit: app.config.limits.stored_bytes,
        file: file.file,
        n_bytes: file.n_bytes,
    };
    let tools = tools(&app);
    app.shutdown.spawn(async move {
        // Its row tells how it ended, and the log where it should not have.
        let _ = arrival::bring_in(&tools, arrival).await;
    });
    Ok(HttpResponse::Accepted().json(view))
}
