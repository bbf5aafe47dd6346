//! Avatar images of characters: show, replace and delete.

use std::io::BufReader;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH};
use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::CharacterId;
use tavern::cards::avatar_image;

use crate::app::App;
use crate::characters::{asset, card_store, character};
use crate::spaces::{events, membership_changes};
use crate::web::api::{card_files, characters};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::upload::{PendingUpload, UploadForm};

/// Disables scripts and all requests when the image is opened as a page.
const CONTENT_POLICY: &str = "default-src 'none'; sandbox";
/// For URLs with the image's hash, whose content never changes. A user who loses access keeps only
/// what they have already seen.
const CACHE_FOREVER: &str = "private, max-age=31536000, immutable";
const CACHE_REVALIDATE: &str = "private, no-cache";

/// Returns the avatar of a character. `avatar_url` is its address.
#[utoipa::path(
    get,
    path = "/api/characters/{character_id}/avatar",
    operation_id = "avatar",
    tag = "characters",
    params(("v" = Option<String>, Query, description = "The image's hash; the response may then be cached.")),
    responses(
        (status = 200, description = "A WebP image.", body = String, content_type = "image/webp"),
        (status = 304, description = "Unchanged, by its `etag`."),
        (status = 404)
    )
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let found = characters::find_visible_avatar(&app, &caller, id.into_inner()).await?;
    let (Some(asset), Some(hash)) = (found.avatar_id, &found.avatar_hash) else {
        return Err(ApiError::not_found());
    };
    let tag = format!("\"{}\"", character::short_hash(hash));
    let is_known = request.headers().get(IF_NONE_MATCH);
    let is_known = is_known.is_some_and(|it| it.as_bytes() == tag.as_bytes());
    let is_named = request.query_string() == format!("v={}", character::short_hash(hash));
    let mut answer = match is_known {
        true => HttpResponse::NotModified(),
        false => HttpResponse::Ok(),
    };
    answer
        .insert_header((ETAG, tag))
        .insert_header((
            CACHE_CONTROL,
            if is_named {
                CACHE_FOREVER
            } else {
                CACHE_REVALIDATE
            },
        ))
        .insert_header((CONTENT_SECURITY_POLICY, CONTENT_POLICY));
    if is_known {
        return Ok(answer.finish());
    }
    let bytes = asset::load_bytes(app.db.reader(), asset).await?;
    let bytes = bytes.ok_or_else(ApiError::not_found)?;
    Ok(answer.content_type(avatar_image::MEDIA_TYPE).body(bytes))
}

/// Replaces the avatar of a character with a PNG, JPEG, WebP or GIF.
#[utoipa::path(
    put,
    path = "/api/characters/{character_id}/avatar",
    operation_id = "paint",
    tag = "characters",
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, body = character::CharacterView),
        (status = 413, description = "`too_large`: more than 20 MiB; `storage_full`."),
        (status = 415, description = "`unsupported_media_type`: a multipart form with a file is required."),
        (status = 422, description = "`not_a_picture`, with the reason.")
    )
)]
pub async fn set_avatar(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
    upload: PendingUpload,
) -> ApiResult<Json<character::CharacterView>> {
    let present = characters::require_own(&app, &caller, id.into_inner()).await?;
    let file = upload.save(avatar_image::MAX_BYTES).await?.file;
    let drawn =
        card_files::run_blocking_limited(&app, || avatar_image::re_encode(BufReader::new(file)))
            .await?;
    let drawn = drawn.map_err(|it| ApiError::new(422, "not_a_picture", it.to_string()))?;
    let limit = app.config.limits.stored_bytes;
    let now = app.clock.now();
    let changed = card_store::set_avatar(&app.db, present.id, limit, drawn, now).await?;
    announce_avatar(&app, changed).await
}

/// Deletes the avatar of a character, also from the assets of its card. Other assets are kept.
#[utoipa::path(
    delete,
    path = "/api/characters/{character_id}/avatar",
    operation_id = "unpaint",
    tag = "characters",
    responses((status = 200, body = character::CharacterView))
)]
pub async fn delete_avatar(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
) -> ApiResult<Json<character::CharacterView>> {
    let present = characters::require_own(&app, &caller, id.into_inner()).await?;
    let changed = card_store::delete_avatar(&app.db, present.id).await?;
    announce_avatar(&app, changed).await
}

/// Updates the character's memberships and notifies the members of its spaces.
async fn announce_avatar(
    app: &App,
    changed: character::Model,
) -> ApiResult<Json<character::CharacterView>> {
    for seat in membership_changes::update_character_display(&app.db, &changed).await? {
        app.hub.publish(events::membership_updated(&seat));
    }
    Ok(Json(changed.view()))
}
