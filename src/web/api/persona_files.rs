//! Endpoints that import and export the caller's personas as SillyTavern's persona backup.

use actix_web::HttpResponse;
use actix_web::http::header::{ContentDisposition, DispositionParam, DispositionType};
use actix_web::web::Data;
use serde::Serialize;
use tavern::import_warning;
use tavern::import_warning::ImportWarning;
use tavern::personas::persona_backup::{BackupPersona, PersonaBackupError};
use tavern::personas::{persona_archive, persona_backup};
use utoipa::ToSchema;

use crate::app::App;
use crate::personas::persona_store::NewPersona;
use crate::personas::{persona, persona_store};
use crate::web::api::{card_files, personas};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::upload;
use crate::web::extract::upload::PendingUpload;

/// How many personas were imported, with warnings about those that were not.
#[derive(Serialize, ToSchema)]
#[schema(as = ImportedPersonas)]
pub struct ImportedPersonasResponse {
    n_imported: usize,
    n_skipped: usize,
    /// Warnings as sentences.
    warnings: Vec<String>,
    /// The same warnings, in the same order, as codes.
    warnings_coded: Vec<ImportWarning>,
}

/// Imports a persona backup of SillyTavern, or an archive with a backup and the pictures of its
/// personas.
///
/// A persona whose name the caller has already is skipped. The default persona of the file becomes the
/// caller's, unless they have one.
#[utoipa::path(
    post,
    path = "/api/personas/import",
    tag = "personas",
    request_body(content = upload::UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 201, body = ImportedPersonasResponse),
        (status = 413, description = "`too_large`; `storage_full`."),
        (status = 415, description = "`unsupported_media_type`: a multipart form with a file is required."),
        (status = 422, description = "`unknown_file`, with the reason.")
    )
)]
pub async fn import(
    app: Data<App>,
    caller: CurrentUser,
    upload: PendingUpload,
) -> ApiResult<HttpResponse> {
    let file = upload.save(persona_archive::MAX_BYTES).await?.file;
    let read = card_files::run_blocking_limited(&app, || persona_archive::read(file)).await??;
    let found = read.backup;
    let with_pictures = found.personas.into_iter().zip(read.pictures);
    let new = with_pictures.map(|(it, picture)| NewPersona {
        name: it.name,
        title: it.title,
        description: it.description,
        placement: it.placement,
        is_default: it.is_default,
        picture,
    });
    let quota = personas::quota_of(&app, &caller);
    let now = app.clock.now();
    let created = persona_store::create_all(&app.db, quota, new.collect(), now).await?;
    let mut warnings = found.warnings;
    let known = created.known.iter().map(|name| {
        let sentence = format!("“{name}” was skipped: you have a persona with this name.");
        ImportWarning::new("persona_known", sentence).with("name", name.clone())
    });
    warnings.extend(known);
    let surplus = created.surplus.iter().map(|name| {
        let sentence = format!("“{name}” was skipped: you cannot have more personas.");
        ImportWarning::new("persona_surplus", sentence).with("name", name.clone())
    });
    warnings.extend(surplus);
    Ok(HttpResponse::Created().json(ImportedPersonasResponse {
        n_imported: created.n_created,
        n_skipped: found.n_skipped + created.known.len() + created.surplus.len(),
        warnings: import_warning::sentences(&warnings),
        warnings_coded: warnings,
    }))
}

/// Exports the caller's personas as a persona backup of SillyTavern, without their pictures.
#[utoipa::path(
    get,
    path = "/api/personas/export",
    tag = "personas",
    responses((
        status = 200,
        description = "The personas in SillyTavern's format.",
        body = Object,
        headers(("content-disposition" = String))
    ))
)]
pub async fn export(app: Data<App>, caller: CurrentUser) -> ApiResult<HttpResponse> {
    let own = persona::list_all(app.db.reader(), caller.id()).await?;
    let own: Vec<BackupPersona> = own
        .into_iter()
        .map(|it| BackupPersona {
            placement: it.placement(),
            name: it.name,
            title: it.title,
            description: it.description,
            is_default: it.is_default,
        })
        .collect();
    Ok(HttpResponse::Ok()
        .insert_header(ContentDisposition {
            disposition: DispositionType::Attachment,
            parameters: vec![DispositionParam::Filename("personas.json".to_owned())],
        })
        .json(persona_backup::write(&own)))
}

impl From<PersonaBackupError> for ApiError {
    fn from(error: PersonaBackupError) -> Self {
        Self::new(422, "unknown_file", error.to_string())
    }
}
