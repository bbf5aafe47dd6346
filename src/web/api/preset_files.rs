//! Endpoints that preview and import a preset file and export a preset, in SillyTavern's format or in
//! Troupe's.

use std::str::FromStr;

use actix_web::http::header::{ContentDisposition, DispositionParam, DispositionType};
use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use base::display_name;
use base::ids::PresetId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tavern::import_warning;
use tavern::import_warning::ImportWarning;
use tavern::presets::preset_file;
use tavern::presets::preset_file::{ImportedPreset, PresetFormat, PresetImportError};
use tavern::regex_scripts::script_view::RegexScriptView;
use tavern::regex_scripts::{script_list, script_view};
use utoipa::ToSchema;

use crate::app::App;
use crate::presets::preset;
use crate::providers::preset_overrides::ProviderOverrides;
use crate::web::api::{presets, risu_files};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::upload::PendingUpload;
use crate::web::extract::{pagination, upload};

/// The name of a preset when neither the file nor the user gives one.
const DEFAULT_NAME: &str = "Preset";

/// An imported preset, with warnings about repaired or skipped parts.
#[derive(Serialize, ToSchema)]
#[schema(as = ImportedPreset)]
pub struct ImportedPresetResponse {
    preset: preset::PresetView,
    /// Warnings as sentences.
    warnings: Vec<String>,
    /// The same warnings, in the same order, as codes.
    warnings_coded: Vec<ImportWarning>,
}

/// The contents of a preset file before import.
#[derive(Serialize, ToSchema)]
#[schema(as = PresetPreview)]
pub struct PresetPreviewResponse {
    /// The name that the preset would have.
    name: String,
    /// The keys that would be set.
    #[schema(value_type = Object)]
    document: Value,
    /// The regex scripts, which are off until their owner allows them.
    scripts: Vec<RegexScriptView>,
    /// Warnings as sentences.
    warnings: Vec<String>,
    /// The same warnings, in the same order, as codes.
    warnings_coded: Vec<ImportWarning>,
}

/// Previews the import of a preset file. Nothing is stored.
#[utoipa::path(
    post,
    path = "/api/presets/preview",
    tag = "presets",
    request_body(content = upload::UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, body = PresetPreviewResponse),
        (status = 413, description = "`too_large`."),
        (status = 415, description = "`unsupported_media_type`: a multipart form with a file is required."),
        (status = 422, description = "`not_a_preset`, with the reason; `risu_module` or `risu_preset`: a binary file of Risu.")
    )
)]
pub async fn preview(
    app: Data<App>,
    _caller: CurrentUser,
    upload: PendingUpload,
) -> ApiResult<Json<PresetPreviewResponse>> {
    let (name, found) = receive_preset(&app, upload).await?;
    Ok(Json(PresetPreviewResponse {
        name,
        scripts: script_view::views(script_list::of_preset(found.origin.as_ref())),
        document: found.document,
        warnings: import_warning::sentences(&found.warnings),
        warnings_coded: found.warnings,
    }))
}

/// Imports a preset file into the caller's library.
#[utoipa::path(
    post,
    path = "/api/presets/import",
    tag = "presets",
    request_body(content = upload::UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 201, body = ImportedPresetResponse),
        (status = 413, description = "`too_large`."),
        (status = 415, description = "`unsupported_media_type`: a multipart form with a file is required."),
        (status = 422, description = "`not_a_preset`, with the reason; `risu_module` or `risu_preset`: a binary file of Risu.")
    )
)]
pub async fn import(
    app: Data<App>,
    caller: CurrentUser,
    upload: PendingUpload,
) -> ApiResult<HttpResponse> {
    let (name, found) = receive_preset(&app, upload).await?;
    let new = preset::NewPreset {
        name,
        document: found.document,
        origin: found.origin,
    };
    let made = preset::create(&app.db, caller.id(), new, app.clock.now()).await?;
    Ok(HttpResponse::Created().json(ImportedPresetResponse {
        preset: made.view(),
        warnings: import_warning::sentences(&found.warnings),
        warnings_coded: found.warnings,
    }))
}

/// Reads an uploaded preset, and returns it with its name in the library.
async fn receive_preset(app: &App, upload: PendingUpload) -> ApiResult<(String, ImportedPreset)> {
    let file = upload.read(preset_file::MAX_FILE_BYTES as u64).await?;
    risu_files::refuse_in_memory(&file)?;
    let bytes = file.bytes;
    let work = app
        .shutdown
        .main()
        .spawn_blocking(move || preset_file::read(&bytes));
    let found = work.await.map_err(ApiError::internal)??;
    if let Err(error) = ProviderOverrides::deserialize(&found.document) {
        let message = format!("The preset cannot be read: {error}.");
        return Err(ApiError::new(422, "not_a_preset", message));
    }
    let stem = file.name.rsplit_once('.').map_or(&*file.name, |it| it.0);
    let name = first_valid_name([found.name.as_deref(), Some(stem)]);
    Ok((name, found))
}

/// Returns the first candidate that is a valid name after truncation.
fn first_valid_name(candidates: [Option<&str>; 2]) -> String {
    let cut = candidates
        .into_iter()
        .flatten()
        .map(|it| it.chars().take(100).collect::<String>());
    let fit = cut
        .filter_map(|it| display_name::parse(&it, 100).ok())
        .next();
    fit.unwrap_or_else(|| DEFAULT_NAME.to_owned())
}

/// Exports a preset as a file.
#[utoipa::path(
    get,
    path = "/api/presets/{preset_id}/export",
    tag = "presets",
    params(("format" = inline(Option<PresetExportFormat>), Query, description = "The default is `sillytavern`.")),
    responses((
        status = 200,
        description = "The preset in SillyTavern's format, or with all of Troupe's fields.",
        body = Object,
        headers(("content-disposition" = String))
    ))
)]
pub async fn export(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<PresetId>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let found = presets::find_visible(&app, &caller, id.into_inner()).await?;
    let format = pagination::parse_value(request.query_string(), "format")?;
    let form = match format.unwrap_or(PresetExportFormat::Sillytavern) {
        PresetExportFormat::Sillytavern => PresetFormat::SillyTavern,
        PresetExportFormat::Troupe => PresetFormat::Own,
    };
    let file = preset_file::write(form, &found.name, &found.document, found.origin.as_ref());
    let letter = |it: char| if it.is_alphanumeric() { it } else { '_' };
    let name: String = found.name.chars().map(letter).take(60).collect();
    Ok(HttpResponse::Ok()
        .insert_header(ContentDisposition {
            disposition: DispositionType::Attachment,
            parameters: vec![DispositionParam::Filename(format!("{name}.json"))],
        })
        .json(file))
}

/// The export formats of a preset.
#[derive(Clone, Copy, ToSchema)]
#[schema(rename_all = "snake_case", as = PresetExportFormat)]
pub enum PresetExportFormat {
    Sillytavern,
    Troupe,
}

impl FromStr for PresetExportFormat {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "sillytavern" => Ok(Self::Sillytavern),
            "troupe" => Ok(Self::Troupe),
            _ => Err(()),
        }
    }
}

impl From<PresetImportError> for ApiError {
    fn from(error: PresetImportError) -> Self {
        Self::new(422, "not_a_preset", error.to_string())
    }
}
