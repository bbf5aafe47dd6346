//! Endpoints that list, accept, decline and revoke invitations of one person to a space.
//! [`add_or_invite`] adds a person who shares a space with the caller, and invites any other.

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path};
use base::clock::Timestamp;
use base::ids::{InvitationId, SpaceId, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::name_schemas::DisplayNameSchema;
use crate::accounts::user;
use crate::app::App;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::spaces::invites::space_invitation;
use crate::spaces::invites::space_invitation::{InvitationError, NewInvitation};
use crate::spaces::membership::{MembershipRole, MembershipStatus};
use crate::spaces::permissions::Action;
use crate::spaces::roster_changes::{NewMember, NewUserMember};
use crate::spaces::{events, membership, roster_changes, shared_spaces, space};
use crate::web::api::{account_input, membership_announcements};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;
use crate::web::extract::space_access::SpaceAccess;

/// The response when a person is invited instead of being added.
#[derive(Serialize, ToSchema)]
pub struct Invited {
    invitation: space_invitation::InvitationView,
}

/// An invitation, as the invited person sees it.
#[derive(Serialize, ToSchema)]
pub struct OwnInvitation {
    id: InvitationId,
    space: InvitationSpace,
    role: MembershipRole,
    invited_by: UserId,
    /// The inviter's name in that space.
    invited_by_name: Option<String>,
    created_at: Timestamp,
    expires_at: Timestamp,
}

/// The part of the space that the invited person may see.
#[derive(Serialize, ToSchema)]
#[schema(as = InvitedTo)]
pub struct InvitationSpace {
    id: SpaceId,
    name: String,
}

/// The name in this space; if absent, the account's name.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptInvitation {
    #[schema(value_type = Option<DisplayNameSchema>)]
    display_name: Option<String>,
}

/// The membership that results from accepting.
#[derive(Serialize, ToSchema)]
pub struct AcceptedInvitation {
    membership: membership::MembershipView,
}

/// Adds a person who shares a space with the caller, and invites every other id, whether it exists
/// or not.
///
/// # Errors
/// Returns 409 `already_member`, 409 `name_taken_here`, and 429 after 30 invitations in an hour.
pub async fn add_or_invite(
    app: &App,
    at: &SpaceAccess,
    caller: &CurrentUser,
    (id, role): (UserId, MembershipRole),
) -> ApiResult<HttpResponse> {
    let db = app.db.reader();
    let present = membership::find_for_user(db, at.space.id, id).await?;
    if present.is_some_and(|it| it.status == MembershipStatus::Active) {
        return Err(roster_changes::AddMemberError::AlreadyMember.into());
    }
    let knows = caller.id() == id || shared_spaces::is_shared_by_users(db, caller.id(), id).await?;
    let known = match knows {
        true => user::find_active(db, id).await?,
        false => None,
    };
    if let Some(user) = known {
        let new_member = NewMember::User(NewUserMember {
            user,
            role,
            display_name: None,
        });
        let taken =
            roster_changes::add_member(&app.db, at.space.id, new_member, app.clock.now()).await?;
        membership_announcements::announce(app, &taken);
        return Ok(HttpResponse::Created().json(taken.view()));
    }
    let permit = app.limits.invitations.acquire(caller.id()).await;
    permit.map_err(|wait| {
        ApiError::rate_limited(
            wait.0,
            "Too many invitations in one hour. Try again later, or share an invite link.",
        )
    })?;
    let new = NewInvitation {
        space: at.space.id,
        user: id,
        role,
        invited_by: caller.id(),
    };
    let (made, is_new) = space_invitation::create(&app.db, new, app.clock.now()).await?;
    let invitation = made.view();
    if is_new {
        app.hub
            .publish(events::invitation_created(invitation.clone()));
    }
    Ok(HttpResponse::Accepted().json(Invited { invitation }))
}

/// Lists the pending invitations of a space.
#[utoipa::path(
    get,
    path = "/api/spaces/{space_id}/invitations",
    operation_id = "of_space",
    tag = "invitations",
    params(PageQuery),
    responses((status = 200, body = PageOf<space_invitation::InvitationView>), (status = 403))
)]
pub async fn list_for_space(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    page: PageQuery,
) -> ApiResult<Json<PageOf<space_invitation::InvitationView>>> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_action(Action::Moderate)?;
    let (db, now) = (app.db.reader(), app.clock.now());
    let found = space_invitation::list_for_space(db, at.space.id, now, page).await?;
    Ok(Json(found.map(|it| it.view())))
}

/// Revokes a pending invitation.
#[utoipa::path(
    delete,
    path = "/api/invitations/{invitation_id}",
    tag = "invitations",
    responses((status = 204), (status = 403), (status = 404))
)]
pub async fn revoke(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<InvitationId>,
) -> ApiResult<HttpResponse> {
    let found = space_invitation::find(app.db.reader(), id.into_inner()).await?;
    let found = found.ok_or_else(ApiError::not_found)?;
    let at = space_access::load_space_access(&app, &caller, found.space_id).await?;
    at.require_write(Action::Moderate)?;
    match space_invitation::revoke(&app.db, found.id).await? {
        true => Ok(HttpResponse::NoContent().finish()),
        false => Err(ApiError::not_found()),
    }
}

/// Lists the caller's pending invitations.
#[utoipa::path(
    get,
    path = "/api/invitations",
    operation_id = "own",
    tag = "invitations",
    params(PageQuery),
    responses((status = 200, body = PageOf<OwnInvitation>))
)]
pub async fn list_own(
    app: Data<App>,
    caller: CurrentUser,
    page: PageQuery,
) -> ApiResult<Json<PageOf<OwnInvitation>>> {
    let (db, now) = (app.db.reader(), app.clock.now());
    let found = space_invitation::list_for_user(db, caller.id(), now, page).await?;
    let ids = || found.data.iter().map(|it| it.space_id);
    let spaces = space::list_names(db, ids()).await?;
    let inviters = found.data.iter().map(|it| it.invited_by);
    let inviters = membership::list_for_users(db, inviters, ids()).await?;
    Ok(Json(found.map(|it| {
        OwnInvitation {
            id: it.id,
            space: InvitationSpace {
                id: it.space_id,
                name: spaces.get(&it.space_id).cloned().unwrap_or_default(),
            },
            role: it.role,
            invited_by: it.invited_by,
            invited_by_name: inviters
                .iter()
                .find(|membership| {
                    membership.space_id == it.space_id && membership.user_id == Some(it.invited_by)
                })
                .map(|membership| membership.cached_display_name.clone()),
            created_at: it.created_at,
            expires_at: it.expires_at,
        }
    })))
}

/// Accepts an invitation: the caller becomes a member.
#[utoipa::path(
    post,
    path = "/api/invitations/{invitation_id}/accept",
    tag = "invitations",
    request_body = Option<AcceptInvitation>,
    responses(
        (status = 200, body = AcceptedInvitation),
        (status = 403, description = "`space_archived`."),
        (status = 404, description = "`not_found`, also for an invitation of another user."),
        (status = 409, description = "`name_taken_here`: send a `display_name` for this space."),
        (status = 410, description = "`invite_expired`: already answered, revoked or expired.")
    )
)]
pub async fn accept(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<InvitationId>,
    body: JsonBody<AcceptInvitation>,
) -> ApiResult<Json<AcceptedInvitation>> {
    let body = body.read_or_default().await?;
    let name = body.display_name.as_deref();
    let name = name.map(account_input::parse_display_name).transpose()?;
    let (id, now) = (id.into_inner(), app.clock.now());
    let taken = space_invitation::accept(&app.db, id, caller.user, name, now).await?;
    membership_announcements::announce(&app, &taken);
    Ok(Json(AcceptedInvitation {
        membership: taken.view(),
    }))
}

/// Declines an invitation.
#[utoipa::path(
    post,
    path = "/api/invitations/{invitation_id}/decline",
    tag = "invitations",
    responses(
        (status = 204),
        (status = 404, description = "`not_found`, also for an invitation of another user."),
        (status = 410, description = "`invite_expired`: already answered, revoked or expired.")
    )
)]
pub async fn decline(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<InvitationId>,
) -> ApiResult<HttpResponse> {
    let (id, now) = (id.into_inner(), app.clock.now());
    space_invitation::decline(&app.db, id, caller.id(), now).await?;
    Ok(HttpResponse::NoContent().finish())
}

impl From<InvitationError> for ApiError {
    fn from(error: InvitationError) -> Self {
        match error {
            InvitationError::NotFound => Self::not_found(),
            InvitationError::Ended => Self::new(410, "invite_expired", error.to_string()),
            InvitationError::Archived => Self::new(403, "space_archived", error.to_string()),
            InvitationError::NameTaken => account_input::name_taken_error(),
            InvitationError::Db(error) => error.into(),
        }
    }
}
