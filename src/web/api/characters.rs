//! Endpoints that list, create, show, change and delete characters, and the checks of who may read
//! or change a character.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path};
use base::ids::{CharacterId, UserId};
use serde_json::{Map, Value};
use tavern::cards::card::Card;

use crate::app::App;
use crate::characters::quota::StorageQuota;
use crate::characters::{card_store, character};
use crate::db::reading::page::{PageOf, PageQuery};
use crate::spaces::{events, roster_changes, shared_spaces};
use crate::web::api::card_bodies::{CreateCharacter, FLAT_FIELDS, UpdateCharacter};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;

/// Lists the caller's characters; a page has at most 2 MiB of cards.
#[utoipa::path(
    get,
    path = "/api/characters",
    tag = "characters",
    params(PageQuery),
    responses((status = 200, body = PageOf<character::CharacterView>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    page: PageQuery,
) -> ApiResult<Json<PageOf<character::CharacterView>>> {
    let found = character::list_for_owner(app.db.reader(), caller.id(), page).await?;
    Ok(Json(found.map(|it| it.view())))
}

/// Creates a character in the caller's library.
#[utoipa::path(
    post,
    path = "/api/characters",
    tag = "characters",
    request_body = CreateCharacter,
    responses(
        (status = 201, body = character::CharacterView),
        (status = 413, description = "`storage_full`."),
        (status = 422, description = "`not_a_card`, with the reason; `invalid_value`.")
    )
)]
pub async fn create(
    app: Data<App>,
    caller: CurrentUser,
    body: JsonBody<Map<String, Value>>,
) -> ApiResult<HttpResponse> {
    let mut body = body.read().await?;
    let card = match body.shift_remove("card") {
        Some(document) => {
            require_known_fields(&body, &[])?;
            Card::from_document(document)?
        }
        None => {
            require_known_fields(&body, &FLAT_FIELDS)?;
            if !body.contains_key("name") {
                let message = "A character requires a `name` or a whole `card`.";
                return Err(ApiError::new(400, "missing_field", message).with_param("name"));
            }
            Card::from_flat(body)?
        }
    };
    let made =
        card_store::create(&app.db, library_of(&app, &caller), card, app.clock.now()).await?;
    Ok(HttpResponse::Created().json(made.view()))
}

fn require_known_fields(body: &Map<String, Value>, known: &[&str]) -> ApiResult<()> {
    match body.keys().find(|it| !known.contains(&it.as_str())) {
        None => Ok(()),
        Some(key) => {
            let key: String = key.chars().take(100).collect();
            let message = format!("Unknown field `{key}`.");
            Err(ApiError::new(400, "unknown_field", message).with_param(key))
        }
    }
}

/// Returns a character of the caller's library or of a shared space.
///
/// Only its owner, admins and, with `share_whole_card`, everyone who shares a space with it can
/// read the whole card. For others `card` is null, and `public_card` has the public part.
#[utoipa::path(
    get,
    path = r"/api/characters/{character_id:\d+}",
    tag = "characters",
    responses((status = 200, body = character::CharacterView))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
) -> ApiResult<Json<character::CharacterView>> {
    let found = find_visible(&app, &caller, id.into_inner()).await?;
    Ok(Json(match can_read_whole_card(&caller, &found) {
        true => found.view(),
        false => found.public_view(),
    }))
}

/// Returns whether the caller may read the whole card. The character must be visible to the caller.
pub fn can_read_whole_card(caller: &CurrentUser, found: &character::Model) -> bool {
    caller.is_admin() || found.owner_id == Some(caller.id()) || found.share_whole_card
}

/// Changes a card. Its memberships get the new name.
#[utoipa::path(
    patch,
    path = r"/api/characters/{character_id:\d+}",
    operation_id = "change",
    tag = "characters",
    request_body = UpdateCharacter,
    responses(
        (status = 200, body = character::CharacterView),
        (status = 422, description = "`not_a_card`, with the reason; `invalid_value`.")
    )
)]
pub async fn update(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
    body: JsonBody<Map<String, Value>>,
) -> ApiResult<Json<character::CharacterView>> {
    let present = require_own(&app, &caller, id.into_inner()).await?;
    let mut body = body.read().await?;
    let share = body.shift_remove("share_whole_card");
    let share = share.map(|it| parse_flag("share_whole_card", &it));
    let share = share.transpose()?;
    let allowed = body.shift_remove("regex_allowed");
    let allowed = allowed.map(|it| parse_flag("regex_allowed", &it));
    let allowed = allowed.transpose()?;
    if allowed.is_some() && present.owner_id != Some(caller.id()) {
        let message = "Only its owner can allow the regex scripts of a character.";
        return Err(ApiError::forbidden(message));
    }
    let card = match body.shift_remove("card") {
        Some(document) => {
            require_known_fields(&body, &[])?;
            Some(Card::from_document(document)?)
        }
        None => {
            require_known_fields(&body, &FLAT_FIELDS)?;
            let changes_card = !body.is_empty() || (share.is_none() && allowed.is_none());
            match changes_card {
                true => Some(present.card()?.with_changes(body)?),
                false => None,
            }
        }
    };
    let mut changed = present.clone();
    if let Some(card) = card {
        let limit = app.config.limits.stored_bytes;
        changed = card_store::replace(&app.db, &present, limit, card).await?;
    }
    if let Some(share) = share.filter(|it| *it != present.share_whole_card) {
        changed = character::set_share_whole_card(&app.db, present.id, share).await?;
    }
    if let Some(allowed) = allowed.filter(|it| *it != present.regex_allowed) {
        changed = character::set_regex_allowed(&app.db, present.id, allowed).await?;
    }
    if changed.name != present.name {
        for membership in roster_changes::update_character_display(&app.db, &changed).await? {
            app.hub.publish(events::membership_updated(&membership));
        }
    }
    Ok(Json(changed.view()))
}

fn parse_flag(field: &str, value: &Value) -> ApiResult<bool> {
    value.as_bool().ok_or_else(|| {
        let message = format!("`{field}` must be true or false.");
        ApiError::new(400, "invalid_type", message).with_param(field)
    })
}

/// Deletes a character from the library. Its memberships keep the card.
#[utoipa::path(
    delete,
    path = r"/api/characters/{character_id:\d+}",
    tag = "characters",
    responses((status = 204))
)]
pub async fn delete(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
) -> ApiResult<HttpResponse> {
    let present = require_own(&app, &caller, id.into_inner()).await?;
    character::delete(&app.db, present.id).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Loads a character that the caller may read: their own, one of a shared space, or any for an
/// admin.
pub async fn find_visible(
    app: &App,
    caller: &CurrentUser,
    id: CharacterId,
) -> ApiResult<character::Model> {
    let found = character::find_active(app.db.reader(), id).await?;
    let found = found.ok_or_else(ApiError::not_found)?;
    match can_read(app, caller, found.owner_id, id).await? {
        true => Ok(found),
        false => Err(ApiError::not_found()),
    }
}

/// Loads the avatar of a visible character, or of a deleted one, because its memberships still show
/// it.
pub async fn find_visible_avatar(
    app: &App,
    caller: &CurrentUser,
    id: CharacterId,
) -> ApiResult<character::AvatarRef> {
    let found = character::avatar_ref(app.db.reader(), id).await?;
    let found = found.ok_or_else(ApiError::not_found)?;
    match can_read(app, caller, found.owner_id, id).await? {
        true => Ok(found),
        false => Err(ApiError::not_found()),
    }
}

async fn can_read(
    app: &App,
    caller: &CurrentUser,
    owner: Option<UserId>,
    id: CharacterId,
) -> ApiResult<bool> {
    let is_theirs = caller.is_admin() || owner == Some(caller.id());
    Ok(is_theirs
        || shared_spaces::is_shared_with_character(app.db.reader(), caller.id(), id).await?)
}

/// Returns the caller's library with its storage limit.
pub fn library_of(app: &App, caller: &CurrentUser) -> StorageQuota {
    StorageQuota {
        owner: caller.id(),
        limit: app.config.limits.stored_bytes,
    }
}

/// Loads a character that the caller may change: their own, or any for an admin.
pub async fn require_own(
    app: &App,
    caller: &CurrentUser,
    id: CharacterId,
) -> ApiResult<character::Model> {
    let found = find_visible(app, caller, id).await?;
    match caller.is_admin() || found.owner_id == Some(caller.id()) {
        true => Ok(found),
        false => Err(ApiError::forbidden(
            "Only its owner can change a character.",
        )),
    }
}
