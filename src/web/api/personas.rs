//! Endpoints that list, create, show, change and delete the caller's personas and their pictures, and
//! the check of a persona that is chosen for a space.
//!
//! **Invariant:** only the user reads or changes a persona, no admin; others see its name and picture in
//! the messages that were posted under it.

use actix_web::web::{Data, Json, Path, Query};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::PersonaId;
use tavern::cards::avatar_image;

use crate::app::App;
use crate::characters::quota::StorageQuota;
use crate::conversations::message;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::personas::persona_store::PersonaError;
use crate::personas::{persona, persona_picture, persona_store};
use crate::spaces::membership;
use crate::spaces::posts::persona_use;
use crate::web::api::avatars;
use crate::web::api::avatars::{AvatarQuery, AvatarSize};
use crate::web::api::persona_bodies::{CreatePersona, UpdatePersona};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::upload::{PendingUpload, UploadForm};

/// Lists the caller's personas.
#[utoipa::path(
    get,
    path = "/api/personas",
    tag = "personas",
    params(PageQuery),
    responses((status = 200, body = PageOf<persona::PersonaView>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    page: PageQuery,
) -> ApiResult<Json<PageOf<persona::PersonaView>>> {
    let found = persona::list_for_user(app.db.reader(), caller.id(), page).await?;
    Ok(Json(found.map(|it| it.view())))
}

/// Creates a persona.
#[utoipa::path(
    post,
    path = "/api/personas",
    tag = "personas",
    request_body = CreatePersona,
    responses(
        (status = 201, body = persona::PersonaView),
        (status = 409, description = "`persona_name_taken`."),
        (status = 413, description = "`storage_full`."),
        (status = 422, description = "`too_many`: more than 200 personas; `too_long`: a description of more than 16 KiB.")
    )
)]
pub async fn create(
    app: Data<App>,
    caller: CurrentUser,
    body: JsonBody<CreatePersona>,
) -> ApiResult<HttpResponse> {
    let new = body.read().await?.parse()?;
    let quota = quota_of(&app, &caller);
    let made = persona_store::create(&app.db, quota, new, app.clock.now()).await?;
    Ok(HttpResponse::Created().json(made.view()))
}

/// Returns one of the caller's personas.
#[utoipa::path(
    get,
    path = r"/api/personas/{persona_id:\d+}",
    tag = "personas",
    responses((status = 200, body = persona::PersonaView))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<PersonaId>,
) -> ApiResult<Json<persona::PersonaView>> {
    let found = persona::find_for_user(app.db.reader(), caller.id(), id.into_inner()).await?;
    let found = found.ok_or_else(ApiError::not_found)?;
    Ok(Json(found.view()))
}

/// Changes a persona. Messages keep the name and the picture with which they were posted.
#[utoipa::path(
    patch,
    path = r"/api/personas/{persona_id:\d+}",
    operation_id = "change",
    tag = "personas",
    request_body = UpdatePersona,
    responses(
        (status = 200, body = persona::PersonaView),
        (status = 409, description = "`persona_name_taken`."),
        (status = 413, description = "`storage_full`."),
        (status = 422, description = "`too_long`: a description of more than 16 KiB.")
    )
)]
pub async fn update(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<PersonaId>,
    body: JsonBody<UpdatePersona>,
) -> ApiResult<Json<persona::PersonaView>> {
    let change = body.read().await?.parse()?;
    let quota = quota_of(&app, &caller);
    let changed = persona_store::update(&app.db, quota, id.into_inner(), change).await?;
    Ok(Json(changed.view()))
}

/// Deletes a persona. Messages keep what they show of it.
#[utoipa::path(
    delete,
    path = r"/api/personas/{persona_id:\d+}",
    tag = "personas",
    responses((status = 204))
)]
pub async fn delete(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<PersonaId>,
) -> ApiResult<HttpResponse> {
    persona_use::delete(&app.db, caller.id(), id.into_inner(), app.clock.now()).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Returns a picture of a persona: of the caller's own, or one that a message they may read shows.
#[utoipa::path(
    get,
    path = "/api/personas/{persona_id}/avatar",
    operation_id = "avatar",
    tag = "personas",
    params(
        ("v" = Option<String>, Query, description = "The picture's hash, for one that the persona had earlier; the response may then be cached."),
        ("size" = inline(Option<AvatarSize>), Query, description = "`thumbnail` is a square of at most 128 pixels and 15 kB, for lists. The default is up to 512 × 768 pixels.")
    ),
    responses(
        (
            status = 200,
            description = "A WebP image; a thumbnail is a JPEG unless it is partly transparent.",
            content((String = "image/webp"), (String = "image/jpeg")),
        ),
        (status = 304, description = "Unchanged, by its `etag`."),
        (status = 400, description = "An unknown `size`."),
        (status = 404)
    )
)]
pub async fn avatar(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<PersonaId>,
    query: Query<AvatarQuery>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let (db, id) = (app.db.reader(), id.into_inner());
    let own = persona::find_for_user(db, caller.id(), id).await?;
    let present = own.as_ref().and_then(|it| it.avatar_hash.as_deref());
    let wanted = query.v.as_deref().or(present);
    let picture = match wanted {
        Some(hash) => persona_picture::find(db, id, hash).await?,
        None => None,
    };
    let picture = picture.ok_or_else(ApiError::not_found)?;
    let reader = (caller.id(), caller.is_admin());
    let may_read =
        own.is_some() || message::shows_persona_picture(db, id, &picture.hash, reader).await?;
    match may_read {
        true => {
            let of = (picture.small_id, picture.hash.as_str());
            avatars::picture_response(&app, of, &query, &request).await
        }
        false => Err(ApiError::not_found()),
    }
}

/// Replaces the picture of a persona with a PNG, JPEG, WebP or GIF.
#[utoipa::path(
    put,
    path = "/api/personas/{persona_id}/avatar",
    operation_id = "paint",
    tag = "personas",
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, body = persona::PersonaView),
        (status = 413, description = "`too_large`: more than 20 MiB; `storage_full`."),
        (status = 415, description = "`unsupported_media_type`: a multipart form with a file is required."),
        (status = 422, description = "`not_a_picture`, with the reason.")
    )
)]
pub async fn set_avatar(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<PersonaId>,
    upload: PendingUpload,
) -> ApiResult<Json<persona::PersonaView>> {
    let found = persona::find_for_user(app.db.reader(), caller.id(), id.into_inner()).await?;
    let id = found.ok_or_else(ApiError::not_found)?.id;
    let file = upload.save(avatar_image::MAX_BYTES).await?.file;
    let drawn = avatars::draw(&app, file).await?;
    let (quota, now) = (quota_of(&app, &caller), app.clock.now());
    let changed = persona_store::set_picture(&app.db, quota, id, Some(drawn), now).await?;
    Ok(Json(changed.view()))
}

/// Deletes the picture of a persona. Messages keep the one that they show.
#[utoipa::path(
    delete,
    path = "/api/personas/{persona_id}/avatar",
    operation_id = "unpaint",
    tag = "personas",
    responses((status = 200, body = persona::PersonaView))
)]
pub async fn delete_avatar(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<PersonaId>,
) -> ApiResult<Json<persona::PersonaView>> {
    let (quota, now) = (quota_of(&app, &caller), app.clock.now());
    let changed = persona_store::set_picture(&app.db, quota, id.into_inner(), None, now).await?;
    Ok(Json(changed.view()))
}

/// Checks that the caller may play a persona in the space of this membership, which is their own.
///
/// # Errors
/// Returns 422 for a persona of another user, 409 when its name looks like that of another member.
pub async fn require_usable(
    app: &App,
    caller: &CurrentUser,
    target: &membership::Model,
    id: PersonaId,
) -> ApiResult<()> {
    let db = app.db.reader();
    let unknown = || ApiError::invalid_value("active_persona_id", "You have no such persona.");
    if target.user_id != Some(caller.id()) {
        return Err(unknown());
    }
    let found = persona::find_for_user(db, caller.id(), id).await?;
    let found = found.ok_or_else(unknown)?;
    let members = membership::list_active(db, target.space_id).await?;
    match persona_use::is_name_taken(&members, target.id, &found.name) {
        true => Err(ApiError::conflict(
            "name_taken_here",
            "The name of this persona looks like that of another member.",
        )
        .with_param("active_persona_id")),
        false => Ok(()),
    }
}

/// Returns the caller's storage quota.
pub fn quota_of(app: &App, caller: &CurrentUser) -> StorageQuota {
    StorageQuota {
        owner: caller.id(),
        limit: app.config.limits.stored_bytes,
    }
}

impl From<PersonaError> for ApiError {
    fn from(error: PersonaError) -> Self {
        match error {
            PersonaError::NameTaken => {
                Self::conflict("persona_name_taken", error.to_string()).with_param("name")
            }
            PersonaError::TooMany => Self::new(422, "too_many", error.to_string()),
            PersonaError::NotFound => Self::not_found(),
            PersonaError::QuotaExceeded(full) => Self::new(413, "storage_full", full.to_string()),
            PersonaError::Db(error) => error.into(),
        }
    }
}
