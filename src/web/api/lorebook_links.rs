//! Endpoints that list and replace the lorebooks linked to a space, a conversation or a character.

use std::collections::HashSet;

use actix_web::web::{Data, Json, Path};
use base::ids::{CharacterId, ConversationId, LorebookId, SpaceId};

use crate::app::App;
use crate::lorebooks::lorebook_link::{LinkTarget, MAX_LINKS};
use crate::lorebooks::{lorebook, lorebook_link};
use crate::spaces::permissions::Action;
use crate::web::api::characters;
use crate::web::api::lorebook_bodies::{LinkedLorebook, LorebookLinks, SetLinks};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;

/// Lists the lorebooks of a space, in order.
#[utoipa::path(
    get,
    path = "/api/spaces/{space_id}/lorebooks",
    operation_id = "of_space",
    tag = "lorebooks",
    responses((status = 200, body = LorebookLinks))
)]
pub async fn list_for_space(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
) -> ApiResult<Json<LorebookLinks>> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    load_links(&app, LinkTarget::Space(at.space.id)).await
}

/// Sets the lorebooks of a space: the caller's own, and those already linked.
#[utoipa::path(
    put,
    path = "/api/spaces/{space_id}/lorebooks",
    operation_id = "arrange_space",
    tag = "lorebooks",
    request_body = SetLinks,
    responses((status = 200, body = LorebookLinks))
)]
pub async fn set_for_space(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    body: JsonBody<SetLinks>,
) -> ApiResult<Json<LorebookLinks>> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_write(Action::Configure)?;
    set_links(&app, &caller, LinkTarget::Space(at.space.id), body).await
}

/// Lists the lorebooks of a conversation, in order.
#[utoipa::path(
    get,
    path = "/api/conversations/{conversation_id}/lorebooks",
    operation_id = "of_conversation",
    tag = "lorebooks",
    responses((status = 200, body = LorebookLinks))
)]
pub async fn list_for_conversation(
    app: Data<App>,
    caller: CurrentUser,
    conversation: Path<ConversationId>,
) -> ApiResult<Json<LorebookLinks>> {
    let at =
        space_access::load_conversation_access(&app, &caller, conversation.into_inner()).await?;
    load_links(&app, LinkTarget::Conversation(at.conversation.id)).await
}

/// Sets the lorebooks of a conversation: the caller's own, and those already linked.
#[utoipa::path(
    put,
    path = "/api/conversations/{conversation_id}/lorebooks",
    operation_id = "arrange_conversation",
    tag = "lorebooks",
    request_body = SetLinks,
    responses((status = 200, body = LorebookLinks))
)]
pub async fn set_for_conversation(
    app: Data<App>,
    caller: CurrentUser,
    conversation: Path<ConversationId>,
    body: JsonBody<SetLinks>,
) -> ApiResult<Json<LorebookLinks>> {
    let at =
        space_access::load_conversation_access(&app, &caller, conversation.into_inner()).await?;
    at.require_write(Action::Configure)?;
    set_links(
        &app,
        &caller,
        LinkTarget::Conversation(at.conversation.id),
        body,
    )
    .await
}

/// Lists the lorebooks linked to a character, in order, without the one embedded in its card.
#[utoipa::path(
    get,
    path = "/api/characters/{character_id}/lorebooks",
    operation_id = "of_character",
    tag = "lorebooks",
    responses((status = 200, body = LorebookLinks))
)]
pub async fn list_for_character(
    app: Data<App>,
    caller: CurrentUser,
    character: Path<CharacterId>,
) -> ApiResult<Json<LorebookLinks>> {
    let found = characters::find_visible(&app, &caller, character.into_inner()).await?;
    load_links(&app, LinkTarget::Character(found.id)).await
}

/// Sets the lorebooks of one of the caller's characters.
#[utoipa::path(
    put,
    path = "/api/characters/{character_id}/lorebooks",
    operation_id = "arrange_character",
    tag = "lorebooks",
    request_body = SetLinks,
    responses((status = 200, body = LorebookLinks))
)]
pub async fn set_for_character(
    app: Data<App>,
    caller: CurrentUser,
    character: Path<CharacterId>,
    body: JsonBody<SetLinks>,
) -> ApiResult<Json<LorebookLinks>> {
    let found = characters::require_own(&app, &caller, character.into_inner()).await?;
    set_links(&app, &caller, LinkTarget::Character(found.id), body).await
}

async fn load_links(app: &App, target: LinkTarget) -> ApiResult<Json<LorebookLinks>> {
    let db = app.db.reader();
    let books = lorebook_link::linked_lorebooks(db, target).await?;
    let n_entries = lorebook::count_entries(db, books.iter().map(|it| it.id)).await?;
    let linked = books.into_iter().map(|it| LinkedLorebook {
        n_entries: n_entries.get(&it.id).copied().unwrap_or(0),
        id: it.id,
        name: it.name,
    });
    let lorebooks: Vec<LinkedLorebook> = linked.collect();
    Ok(Json(LorebookLinks {
        lorebook_ids: lorebooks.iter().map(|it| it.id).collect(),
        lorebooks,
    }))
}

async fn set_links(
    app: &App,
    caller: &CurrentUser,
    target: LinkTarget,
    body: JsonBody<SetLinks>,
) -> ApiResult<Json<LorebookLinks>> {
    let mut seen = HashSet::new();
    let mut lorebook_ids = body.read().await?.lorebook_ids;
    lorebook_ids.retain(|it| seen.insert(*it));
    if lorebook_ids.len() > MAX_LINKS {
        let message = format!("Must have at most {MAX_LINKS} lorebooks.");
        return Err(ApiError::invalid_value("lorebook_ids", message));
    }
    require_usable(app, caller, target, &lorebook_ids).await?;
    lorebook_link::set_links(&app.db, target, lorebook_ids).await?;
    load_links(app, target).await
}

/// Checks that the caller may link these lorebooks: their own, any for an admin, and those already
/// linked. The error is the same for one that does not exist.
async fn require_usable(
    app: &App,
    caller: &CurrentUser,
    target: LinkTarget,
    lorebook_ids: &[LorebookId],
) -> ApiResult<()> {
    let db = app.db.reader();
    let linked = lorebook_link::linked_lorebooks(db, target).await?;
    let found = lorebook::find_many(db, lorebook_ids).await?;
    let is_usable = |id: &LorebookId| {
        let own = |it: &lorebook::Model| caller.is_admin() || it.owner_id == Some(caller.id());
        linked.iter().any(|it| it.id == *id) || found.iter().any(|it| it.id == *id && own(it))
    };
    match lorebook_ids.iter().all(is_usable) {
        true => Ok(()),
        false => Err(ApiError::invalid_value(
            "lorebook_ids",
            "You have no such lorebook.",
        )),
    }
}
