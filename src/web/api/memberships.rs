//! Endpoints that list, add and remove the members of a space, and the checks that other endpoints
//! use.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path};
use base::ids::{CharacterId, MembershipId, SpaceId};

use crate::app::App;
use crate::characters::character;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::spaces::membership::{MembershipRole, MembershipStatus};
use crate::spaces::permissions::Action;
use crate::spaces::roster_changes::{AddMemberError, NewMember, RemoveMemberError};
use crate::spaces::{membership, permissions, roster_changes, roster_page, shared_spaces};
use crate::web::api::engine_error::api_error;
use crate::web::api::membership_bodies::CreateMembership;
use crate::web::api::{account_input, membership_announcements, space_invitations};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;
use crate::web::extract::space_access::SpaceAccess;

/// Lists the memberships of a space, in roster order.
///
/// Removed memberships are included, because messages refer to their names. A cursor is the id of a
/// membership.
#[utoipa::path(
    get,
    path = "/api/spaces/{space_id}/memberships",
    tag = "memberships",
    params(PageQuery),
    responses((status = 200, body = PageOf<membership::MembershipView>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    page: PageQuery,
) -> ApiResult<Json<PageOf<membership::MembershipView>>> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    let part = roster_page::list_for_space(app.db.reader(), at.space.id, page).await?;
    Ok(Json(part.map(|it| it.view_for(caller.id()))))
}

/// Adds a character, which posts its greeting, or a person.
///
/// Send `character_id`, or `user_id` with or without a `role`, but not both. A person with whom the
/// caller shares a space is added; any other id gets an invitation, even if it does not exist.
#[utoipa::path(
    post,
    path = "/api/spaces/{space_id}/memberships",
    tag = "memberships",
    request_body = CreateMembership,
    responses(
        (status = 201, body = membership::MembershipView),
        (status = 202, description = "The person is invited.", body = space_invitations::Invited),
        (status = 409, description = "`already_member`; `already_finished`; `name_taken_here`."),
        (status = 429, description = "`rate_limited`: more than 30 invitations in an hour.")
    )
)]
pub async fn create(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    body: JsonBody<CreateMembership>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_write(Action::Moderate)?;
    let body = body.read().await?;
    let card = match (body.character_id, body.user_id) {
        (Some(id), None) if body.role.is_some() => {
            let message = format!("Character {id} cannot have a role; roles are for people.");
            return Err(ApiError::invalid_value("role", message));
        }
        (Some(id), None) => require_own_character(&app, &at, &caller, id).await?,
        // An unknown id is invited like a known one, except below 1, where no ids exist.
        (None, Some(id)) if id.0 < 1 => {
            return Err(ApiError::invalid_value("user_id", "Must be at least 1."));
        }
        (None, Some(id)) => {
            let role = body.role.unwrap_or(MembershipRole::Member);
            require_can_invite_as(&at, role)?;
            return space_invitations::add_or_invite(&app, &at, &caller, (id, role)).await;
        }
        (Some(_), Some(_)) => {
            let message = "Give either `character_id` or `user_id`, not both.";
            return Err(ApiError::invalid_value("user_id", message));
        }
        (None, None) => {
            let message = "`character_id` or `user_id` is required.";
            return Err(ApiError::new(400, "missing_field", message).with_param("character_id"));
        }
    };
    let new_member = NewMember::Character(card);
    let taken =
        roster_changes::add_member(&app.db, at.space.id, new_member, app.clock.now()).await?;
    membership_announcements::announce(&app, &taken);
    app.engine
        .insert_greetings(taken.id)
        .await
        .map_err(api_error)?;
    Ok(HttpResponse::Created().json(taken.view()))
}

/// Checks that the caller may add this character: their own, or any for an admin.
async fn require_own_character(
    app: &App,
    at: &SpaceAccess,
    caller: &CurrentUser,
    id: CharacterId,
) -> ApiResult<character::Model> {
    at.require_write(Action::Configure)?;
    let db = app.db.reader();
    let card = character::find_active(db, id).await?;
    let card = card.ok_or_else(ApiError::not_found)?;
    if caller.is_admin() || card.owner_id == Some(caller.id()) {
        return Ok(card);
    }
    match shared_spaces::is_shared_with_character(db, caller.id(), id).await? {
        true => Err(ApiError::forbidden(
            "Only its owner can add this character.",
        )),
        false => Err(ApiError::not_found()),
    }
}

/// Checks that the caller may add or invite members with this role.
///
/// # Errors
/// Returns 422 for the owner's role, and 403.
pub fn require_can_invite_as(at: &SpaceAccess, role: MembershipRole) -> ApiResult<()> {
    let message = "A space has one owner, who can transfer it to a member.";
    let act = permissions::inviting_as(role);
    at.require_write(act.ok_or_else(|| ApiError::invalid_value("role", message))?)
}

/// Leaves a space, or removes another member.
#[utoipa::path(
    delete,
    path = "/api/memberships/{membership_id}",
    tag = "memberships",
    responses(
        (status = 204),
        (status = 409, description = "`owner_cannot_leave`: transfer the space first.")
    )
)]
pub async fn leave(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<MembershipId>,
) -> ApiResult<HttpResponse> {
    let (target, at) = load_membership(&app, &caller, id.into_inner()).await?;
    let is_own = is_own(&at, &target);
    if !is_own {
        at.require_action(Action::Moderate)?;
    }
    at.require_write(Action::Read)?;
    if target.role == MembershipRole::Owner && !is_own && !caller.is_admin() {
        return Err(ApiError::forbidden("The owner cannot be removed."));
    }
    let left = roster_changes::remove_member(&app.db, target.id, app.clock.now()).await?;
    membership_announcements::announce_left(&app, &left).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Loads a membership, also a removed one, and the caller's access to its space.
///
/// # Errors
/// Returns 404 when it does not exist or the caller has no access to its space.
pub async fn load_membership(
    app: &App,
    caller: &CurrentUser,
    id: MembershipId,
) -> ApiResult<(membership::Model, SpaceAccess)> {
    let found = membership::find(app.db.reader(), id).await?;
    let target = found.ok_or_else(ApiError::not_found)?;
    let at = space_access::load_space_access(app, caller, target.space_id).await?;
    Ok((target, at))
}

/// Returns whether the membership is the caller's.
pub fn is_own(at: &SpaceAccess, target: &membership::Model) -> bool {
    at.membership.as_ref().is_some_and(|it| it.id == target.id)
}

impl From<AddMemberError> for ApiError {
    fn from(error: AddMemberError) -> Self {
        match error {
            AddMemberError::AlreadyMember => Self::conflict("already_member", error.to_string()),
            AddMemberError::NameTaken => account_input::name_taken_error(),
            AddMemberError::SpaceNotFound => Self::not_found(),
            AddMemberError::Db(error) => error.into(),
        }
    }
}

impl From<RemoveMemberError> for ApiError {
    fn from(error: RemoveMemberError) -> Self {
        match error {
            RemoveMemberError::IsOwner => Self::conflict("owner_cannot_leave", error.to_string()),
            RemoveMemberError::NotFound => Self::not_found(),
            RemoveMemberError::Db(error) => error.into(),
        }
    }
}

/// Checks that a membership is active; a removed one can only be added again.
///
/// # Errors
/// Returns 404 for a removed membership.
pub fn require_active(target: &membership::Model) -> ApiResult<()> {
    match target.status {
        MembershipStatus::Active => Ok(()),
        MembershipStatus::Removed => Err(ApiError::not_found()),
    }
}
