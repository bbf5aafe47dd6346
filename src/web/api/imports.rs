//! Endpoints that preview and import an uploaded chat file, and endpoints that show and cancel the
//! caller's imports of chats and spaces.

use std::collections::HashMap;

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::{ImportId, MembershipId, SpaceId};
use serde_json::{Map, Value};
use tavern::chats::chat_file;
use tavern::chats::chat_file::{ChatFile, ChatFileError};

use crate::app::App;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::chats::chat_authors::{AuthorChoice, AuthorMap};
use crate::conversations::chats::chat_import::ChatImport;
use crate::conversations::chats::import_writer::ChatImportError;
use crate::conversations::chats::{
    chat_import, chat_preview, import_finish, import_job, import_writer,
};
use crate::lorebooks::imported_lore;
use crate::spaces::permissions::Action;
use crate::spaces::{events, membership};
use crate::web::api::engine_error::api_error;
use crate::web::api::{card_files, risu_files};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::upload::{PendingUpload, TempFileUpload, UploadForm};
use crate::web::extract::{pagination, space_access};

/// The maximum size of a chat file, in bytes.
const MAX_CHAT_BYTES: u64 = 100 * 1024 * 1024;

/// More names than a preview shows.
const MAX_NAMES: usize = 200;

/// Imports a chat as a new conversation of the space: JSONL of SillyTavern, or JSON of Agnai,
/// KoboldAI, text-generation-webui, Character.AI or Risu. A file with several chats becomes several
/// conversations, of which the import names the first.
///
/// The response is sent when the upload is complete; `GET /api/imports/{import_id}` shows the
/// progress. The conversation is hidden until it is complete. Names are matched to memberships with
/// the same name; `names` overrides this with a JSON object from names to membership ids or `new`.
#[utoipa::path(
    post,
    path = "/api/spaces/{space_id}/import",
    operation_id = "chat",
    tag = "imports",
    params(("names" = Option<String>, Query, description = "A JSON object from names in the file to membership ids or `new`.")),
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 202, body = import_job::ImportView),
        (status = 409, description = "`import_running`: one at a time."),
        (status = 413, description = "`too_large`: more than 100 MiB."),
        (status = 415, description = "`unsupported_media_type`: a multipart form with a file is required."),
        (status = 422, description = "`unknown_file`: a JSON document that is not a chat, with its top-level keys; `not_a_chat`: no message; `too_large`: a JSON document of more than 5 MiB; `risu_module` or `risu_preset`: a binary file of Risu.")
    )
)]
pub async fn import(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    request: HttpRequest,
    upload: PendingUpload,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_write(Action::ManageConversation)?;
    let memberships = membership::list_for_space(app.db.reader(), at.space.id).await?;
    let chosen = parse_choices(
        pagination::parse_text(request.query_string(), "names")?,
        &memberships,
    )?;
    let file = upload.save(MAX_CHAT_BYTES).await?;
    let kind = import_job::ImportKind::Chat;
    let now = app.clock.now();
    // The texts need no more storage than the file; the quota is charged while the import runs.
    let bytes = i64::try_from(file.n_bytes).unwrap_or(i64::MAX);
    let quota = &app.engine.context().quota;
    quota
        .require(app.db.reader(), at.space.owner_id, bytes)
        .await
        .map_err(|error| api_error(error.into()))?;
    let (title, n_bytes) = (title_from_file_name(&file), file.n_bytes);
    let open = move || open_chat(file);
    let file = card_files::run_blocking_limited(&app, open).await??;
    let target = Some(at.space.id);
    let begun = import_writer::start(&app.db, caller.id(), kind, target, n_bytes, now);
    let job = begun.await.map_err(import_error)?;
    let view = job.view();
    let importer = at.membership.as_ref().map(|it| it.id);
    let chat = ChatImport {
        job,
        target: at.space.id,
        title,
        authors: AuthorMap::new(&memberships, importer, chosen),
        store_lore: imported_lore::store,
    };
    app.imports
        .spawn(view.id, run_import(app.clone(), chat, file));
    Ok(HttpResponse::Accepted().json(view))
}

/// Previews the import of a chat file into the space: its conversations, the members to whom the names
/// of its authors would be assigned, and what would be changed or left out. Nothing is stored.
#[utoipa::path(
    post,
    path = "/api/spaces/{space_id}/import/preview",
    operation_id = "preview_chat",
    tag = "imports",
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, body = chat_preview::ChatPreview),
        (status = 413, description = "`too_large`: more than 100 MiB."),
        (status = 415, description = "`unsupported_media_type`: a multipart form with a file is required."),
        (status = 422, description = "`unknown_file`: a JSON document that is not a chat, with its top-level keys; `not_a_chat`: no message; `too_large`: a JSON document of more than 5 MiB; `risu_module` or `risu_preset`: a binary file of Risu.")
    )
)]
pub async fn preview(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    upload: PendingUpload,
) -> ApiResult<Json<chat_preview::ChatPreview>> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_write(Action::ManageConversation)?;
    let memberships = membership::list_for_space(app.db.reader(), at.space.id).await?;
    let importer = at.membership.as_ref().map(|it| it.id);
    let authors = AuthorMap::new(&memberships, importer, HashMap::new());
    let file = upload.save(MAX_CHAT_BYTES).await?;
    let read = move || {
        let title = title_from_file_name(&file);
        let found = chat_preview::read(open_chat(file)?, title.as_deref(), authors);
        let found = found.map_err(ApiError::internal)?;
        match found.n_conversations {
            0 => Err(ApiError::from(ChatFileError::NoMessage)),
            _ => Ok(found),
        }
    };
    let mut found = card_files::run_blocking_limited(&app, read).await??;
    let effects = std::mem::take(&mut found.timed_effects);
    let db = app.db.reader();
    let assigned = imported_lore::assign_effects(db, caller.id(), &effects).await?;
    if assigned.n_effects_left_out > 0 {
        let warning = import_finish::effects_left_out(assigned.n_effects_left_out);
        found.report.warn(&[warning]);
    }
    Ok(Json(found))
}

/// Determines the kind of a chat file. Blocks.
fn open_chat(mut file: TempFileUpload) -> ApiResult<ChatFile> {
    risu_files::refuse_on_disk(&mut file)?;
    Ok(chat_file::open(file.file, file.n_bytes)?)
}

async fn run_import(app: Data<App>, chat: ChatImport, file: ChatFile) {
    // The import stores its result in its row and logs unexpected errors.
    let rows = chat_import::run(&app.imports, chat, file).await;
    for row in rows.unwrap_or_default() {
        match app.engine.conversation_view(row.id, Viewer::Outsider).await {
            Ok(view) => app
                .hub
                .publish(events::conversation_updated(view.space_id, &view)),
            Err(error) => tracing::error!(%error, "failed to announce an imported conversation"),
        }
    }
}

/// Returns the progress or the result of one of the caller's imports.
#[utoipa::path(
    get,
    path = "/api/imports/{import_id}",
    tag = "imports",
    responses((status = 200, body = import_job::ImportView), (status = 404))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ImportId>,
) -> ApiResult<Json<import_job::ImportView>> {
    let row = require_own(&app, &caller, id.into_inner()).await?;
    Ok(Json(row.view()))
}

/// Cancels one of the caller's imports and deletes what it created.
#[utoipa::path(
    delete,
    path = "/api/imports/{import_id}",
    tag = "imports",
    responses(
        (status = 204),
        (status = 404),
        (status = 409, description = "`already_finished`.")
    )
)]
pub async fn cancel(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<ImportId>,
) -> ApiResult<HttpResponse> {
    let row = require_own(&app, &caller, id.into_inner()).await?;
    cancel_import(&app, &row).await
}

/// Cancels an import and deletes what it created.
///
/// # Errors
/// Returns 409 `already_finished` when the import has ended.
pub async fn cancel_import(app: &App, row: &import_job::Model) -> ApiResult<HttpResponse> {
    let canceled = import_job::ImportStatus::Canceled;
    let report = Value::Object(Map::new());
    let now = app.clock.now();
    match import_job::abort(&app.db, row.id, canceled, report, now).await? {
        true => Ok(HttpResponse::NoContent().finish()),
        false => Err(ApiError::conflict(
            "already_finished",
            "This import has already ended.",
        )),
    }
}

async fn require_own(
    app: &App,
    caller: &CurrentUser,
    id: ImportId,
) -> ApiResult<import_job::Model> {
    let own = import_job::find_for_user(app.db.reader(), caller.id(), id).await?;
    own.ok_or_else(ApiError::not_found)
}

/// Parses the explicit assignments of names.
fn parse_choices(
    text: Option<String>,
    memberships: &[membership::Model],
) -> ApiResult<HashMap<String, AuthorChoice>> {
    let wrong = |message: &str| ApiError::new(400, "invalid_value", message).with_param("names");
    let Some(text) = text else {
        return Ok(HashMap::new());
    };
    let names: Map<String, Value> = serde_json::from_str(&text)
        .map_err(|_| wrong("Must be a JSON object from names to ids."))?;
    if names.len() > MAX_NAMES {
        return Err(wrong("Must not have more than 200 names."));
    }
    let choice = |(name, value): (String, Value)| {
        let choice = match (value.as_str(), value.as_i64().map(MembershipId)) {
            (Some("new"), _) => AuthorChoice::New,
            (_, Some(membership)) if memberships.iter().any(|it| it.id == membership) => {
                AuthorChoice::Membership(membership)
            }
            _ => return Err(wrong("This space has no such membership.")),
        };
        Ok((name, choice))
    };
    names.into_iter().map(choice).collect()
}

/// Returns the file name without its extension.
fn title_from_file_name(file: &TempFileUpload) -> Option<String> {
    let name = file.name.rsplit_once('.').map_or(&*file.name, |it| it.0);
    (!name.trim().is_empty()).then(|| name.to_owned())
}

impl From<ChatFileError> for ApiError {
    fn from(error: ChatFileError) -> Self {
        let code = match &error {
            ChatFileError::Unknown(_) => "unknown_file",
            ChatFileError::NoMessage => "not_a_chat",
            ChatFileError::TooLarge(_) => "too_large",
            ChatFileError::Io(_) => return Self::internal(error),
        };
        Self::new(422, code, error.to_string())
    }
}

/// Converts the error of an import that did not start.
pub fn import_error(error: ChatImportError) -> ApiError {
    match error {
        ChatImportError::AlreadyRunning => ApiError::conflict("import_running", error.to_string()),
        ChatImportError::Db(error) => error.into(),
        other => ApiError::internal(other),
    }
}
