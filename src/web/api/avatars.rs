//! Endpoints that return the avatar image of a character (whole, or as a thumbnail that is kept in
//! memory), replace it and delete it.

use std::fs::File;
use std::io::BufReader;
use std::sync::LazyLock;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH};
use actix_web::web::{Bytes, Data, Json, Path, Query};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::{AssetId, CharacterId};
use moka::sync::Cache;
use serde::Deserialize;
use tavern::cards::avatar_image;
use tavern::cards::avatar_image::AvatarImage;
use utoipa::ToSchema;

use crate::app::App;
use crate::characters::{asset, card_store, character};
use crate::spaces::{events, roster_changes};
use crate::web::api::{card_files, characters};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::upload::{PendingUpload, UploadForm};

/// Disables scripts and all requests when the image is opened as a page.
pub const CONTENT_POLICY: &str = "default-src 'none'; sandbox";
/// For URLs with the image's hash, whose content never changes. A user who loses access keeps only
/// what they have already seen.
pub const CACHE_FOREVER: &str = "private, max-age=31536000, immutable";
const CACHE_REVALIDATE: &str = "private, no-cache";
/// How many thumbnails are kept in memory; each has at most 15 kB.
const MAX_THUMBNAILS: u64 = 512;

/// The thumbnails that were requested last, each with its media type, by the hash of the avatar.
static THUMBNAILS: LazyLock<Cache<String, (Bytes, &'static str)>> =
    LazyLock::new(|| Cache::new(MAX_THUMBNAILS));

/// The query of an avatar's address.
#[derive(Deserialize)]
pub struct AvatarQuery {
    pub v: Option<String>,
    size: Option<AvatarSize>,
}

/// The sizes in which an avatar is returned.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AvatarSize {
    Thumbnail,
}

/// Returns the avatar of a character. `avatar_url` is its address.
#[utoipa::path(
    get,
    path = "/api/characters/{character_id}/avatar",
    operation_id = "avatar",
    tag = "characters",
    params(
        ("v" = Option<String>, Query, description = "The image's hash; the response may then be cached."),
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
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
    query: Query<AvatarQuery>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let found = characters::find_visible_avatar(&app, &caller, id.into_inner()).await?;
    let (Some(asset), Some(hash)) = (found.avatar_id, &found.avatar_hash) else {
        return Err(ApiError::not_found());
    };
    let picture = (asset, hash.as_str());
    picture_response(&app, picture, &query, &request).await
}

/// Returns a stored picture by its small size and the hash of that, in the size that the query names.
///
/// # Errors
/// Returns 404 when it is no longer stored.
pub async fn picture_response(
    app: &App,
    (asset, hash): (AssetId, &str),
    query: &AvatarQuery,
    request: &HttpRequest,
) -> ApiResult<HttpResponse> {
    let name = character::short_hash(hash);
    let tag = match query.size {
        Some(AvatarSize::Thumbnail) => format!("\"{name}-thumbnail\""),
        None => format!("\"{name}\""),
    };
    let is_known = request.headers().get(IF_NONE_MATCH);
    let is_known = is_known.is_some_and(|it| it.as_bytes() == tag.as_bytes());
    let is_named = query.v.as_deref() == Some(name);
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
    let (bytes, media_type) = match query.size {
        Some(AvatarSize::Thumbnail) => thumbnail_of(app, asset, hash).await?,
        None => (load(app, asset).await?.into(), avatar_image::MEDIA_TYPE),
    };
    Ok(answer.content_type(media_type).body(bytes))
}

async fn thumbnail_of(app: &App, id: AssetId, hash: &str) -> ApiResult<(Bytes, &'static str)> {
    if let Some(known) = THUMBNAILS.get(hash) {
        return Ok(known);
    }
    let bytes = load(app, id).await?;
    let drawn =
        card_files::run_blocking_limited(app, move || avatar_image::thumbnail(&bytes)).await?;
    let (bytes, media_type) = drawn.map_err(ApiError::internal)?;
    let thumbnail = (Bytes::from(bytes), media_type);
    THUMBNAILS.insert(hash.to_owned(), thumbnail.clone());
    Ok(thumbnail)
}

async fn load(app: &App, id: AssetId) -> ApiResult<Vec<u8>> {
    let bytes = asset::load_bytes(app.db.reader(), id).await?;
    bytes.ok_or_else(ApiError::not_found)
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
    let drawn = draw(&app, file).await?;
    let limit = app.config.limits.stored_bytes;
    let now = app.clock.now();
    let changed = card_store::set_avatar(&app.db, present.id, limit, drawn, now).await?;
    announce_avatar(&app, changed).await
}

/// Draws an uploaded picture again in both sizes.
///
/// # Errors
/// Returns 422 when it is not a picture, or too large.
pub async fn draw(app: &App, file: File) -> ApiResult<AvatarImage> {
    let draw = || avatar_image::re_encode(BufReader::new(file));
    let drawn = card_files::run_blocking_limited(app, draw).await?;
    drawn.map_err(|it| ApiError::new(422, "not_a_picture", it.to_string()))
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
    for membership in roster_changes::update_character_display(&app.db, &changed).await? {
        app.hub.publish(events::membership_updated(&membership));
    }
    Ok(Json(changed.view()))
}
