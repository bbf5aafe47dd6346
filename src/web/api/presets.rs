//! Endpoints that list, create, show, change and delete presets, and the checks of which presets a
//! caller may read or use.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Json, Path};
use base::ids::PresetId;
use tavern::presets::complete_preset::Preset;

use crate::app::App;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::presets::preset::PresetStatus;
use crate::presets::{preset, preset_summary, resolve};
use crate::providers::preset_overrides::PresetDocument;
use crate::spaces::lifecycle::SpaceRules;
use crate::spaces::preset_visibility;
use crate::web::api::preset_bodies;
use crate::web::api::preset_bodies::UpdatePreset;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;

/// Lists the caller's presets.
#[utoipa::path(
    get,
    path = "/api/presets",
    tag = "presets",
    params(PageQuery),
    responses((status = 200, body = PageOf<preset_summary::Model>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    page: PageQuery,
) -> ApiResult<Json<PageOf<preset_summary::Model>>> {
    let found = preset_summary::list_for_owner(app.db.reader(), caller.id(), page).await?;
    Ok(Json(found))
}

/// Returns the default document, which applies where nothing else is set.
#[utoipa::path(
    get,
    path = "/api/presets/defaults",
    tag = "presets",
    responses((status = 200, body = PresetDocument))
)]
pub async fn defaults(_: CurrentUser) -> ApiResult<Json<Preset>> {
    Ok(Json(Preset::default()))
}

/// Creates a preset in the caller's library.
#[utoipa::path(
    post,
    path = "/api/presets",
    tag = "presets",
    request_body = preset_bodies::CreatePreset,
    responses((status = 201, body = preset::PresetView))
)]
pub async fn create(
    app: Data<App>,
    caller: CurrentUser,
    body: JsonBody<preset_bodies::CreatePreset>,
) -> ApiResult<HttpResponse> {
    let body = body.read().await?;
    let new = preset::NewPreset {
        name: preset_bodies::parse_name(&body.name)?,
        document: preset_bodies::parse_document(body.document.unwrap_or_default())?,
        origin: None,
    };
    let made = preset::create(&app.db, caller.id(), new, app.clock.now()).await?;
    Ok(HttpResponse::Created().json(made.view()))
}

/// Returns one of the caller's presets, or one that a space of theirs uses.
#[utoipa::path(
    get,
    path = r"/api/presets/{preset_id:\d+}",
    tag = "presets",
    responses((status = 200, body = preset::PresetView))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<PresetId>,
) -> ApiResult<Json<preset::PresetView>> {
    let found = find_visible(&app, &caller, id.into_inner()).await?;
    Ok(Json(found.view()))
}

/// Changes a preset wherever it is used.
#[utoipa::path(
    patch,
    path = r"/api/presets/{preset_id:\d+}",
    operation_id = "change",
    tag = "presets",
    request_body = UpdatePreset,
    responses((status = 200, body = preset::PresetView))
)]
pub async fn update(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<PresetId>,
    body: JsonBody<UpdatePreset>,
) -> ApiResult<Json<preset::PresetView>> {
    let present = require_own(&app, &caller, id.into_inner()).await?;
    let body = body.read().await?;
    let name = body
        .name
        .as_deref()
        .map(preset_bodies::parse_name)
        .transpose()?;
    let document = body
        .document
        .map(preset_bodies::parse_document)
        .transpose()?;
    if body.regex_allowed.is_some() && present.owner_id != Some(caller.id()) {
        let message = "Only its owner can allow the regex scripts of a preset.";
        return Err(ApiError::forbidden(message));
    }
    let changes = preset::PresetChanges {
        name,
        document,
        regex_allowed: body.regex_allowed,
    };
    let changed = preset::update(&app.db, present.id, changes, app.clock.now()).await?;
    Ok(Json(changed.view()))
}

/// Deletes a preset from the library. It still applies where it is used.
#[utoipa::path(
    delete,
    path = r"/api/presets/{preset_id:\d+}",
    tag = "presets",
    responses((status = 204))
)]
pub async fn delete(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<PresetId>,
) -> ApiResult<HttpResponse> {
    let present = require_own(&app, &caller, id.into_inner()).await?;
    preset::delete(&app.db, present.id).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Loads a preset that the caller may read: their own, one used in a space of theirs, or any for an
/// admin. A deleted one is visible only where it is used.
///
/// # Errors
/// Returns 404 when it does not exist or is not visible to the caller.
pub async fn find_visible(
    app: &App,
    caller: &CurrentUser,
    id: PresetId,
) -> ApiResult<preset::Model> {
    let db = app.db.reader();
    let found = preset::find(db, id).await?;
    let found = found.ok_or_else(ApiError::not_found)?;
    let is_there = found.status == PresetStatus::Active;
    let may_read = (is_there && (caller.is_admin() || found.owner_id == Some(caller.id())))
        || preset_visibility::is_visible_to(db, app.db.backend(), caller.id(), id).await?;
    match may_read {
        true => Ok(found),
        false => Err(ApiError::not_found()),
    }
}

/// Loads a preset that the caller may change: their own, or any for an admin.
async fn require_own(app: &App, caller: &CurrentUser, id: PresetId) -> ApiResult<preset::Model> {
    let found = find_visible(app, caller, id).await?;
    let is_own = caller.is_admin() || found.owner_id == Some(caller.id());
    match (found.status, is_own) {
        (PresetStatus::Deleted, _) => Err(ApiError::not_found()),
        (PresetStatus::Active, true) => Ok(found),
        (PresetStatus::Active, false) => {
            Err(ApiError::forbidden("Only its owner can change a preset."))
        }
    }
}

/// Checks that the caller may use a preset for a membership or a space: they must be able to read
/// it.
///
/// # Errors
/// Returns 422 for `field`, also for one that does not exist.
pub async fn require_usable(
    app: &App,
    caller: &CurrentUser,
    id: PresetId,
    field: &str,
) -> ApiResult<()> {
    match find_visible(app, caller, id).await {
        Ok(_) => Ok(()),
        Err(error) if error.status == StatusCode::NOT_FOUND => {
            Err(ApiError::invalid_value(field, "No such preset exists."))
        }
        Err(error) => Err(error),
    }
}

/// Checks the preset that the settings of a space name, like [`require_usable`].
///
/// # Errors
/// Returns 422 when the caller must not use it.
pub async fn require_usable_in_settings(
    app: &App,
    caller: &CurrentUser,
    rules: &SpaceRules,
) -> ApiResult<()> {
    let settings = rules.settings.as_ref();
    match settings.and_then(|it| resolve::preset_id_of(&it["preset"])) {
        Some(id) => require_usable(app, caller, id, "settings.preset.preset_id").await,
        None => Ok(()),
    }
}
