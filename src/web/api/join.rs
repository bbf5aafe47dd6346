//! Endpoints that preview the space of an invite link and join it, as the signed-in user or as a
//! guest; limits guesses of invite tokens per IP address.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use base::clock::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::name_schemas::DisplayNameSchema;
use crate::accounts::user;
use crate::accounts::user::NewUser;
use crate::app::App;
use crate::spaces::invites::invite_acceptance;
use crate::spaces::invites::invite_acceptance::{JoinError, JoiningUser, OpenInvite};
use crate::spaces::membership;
use crate::spaces::membership::MembershipRole;
use crate::web::api::{account_input, membership_announcements, session};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::{authentication, client_ip};

/// The name in this space. Guests need one; an account without one joins under its own name.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Join)]
pub struct JoinRequest {
    #[schema(value_type = Option<DisplayNameSchema>)]
    display_name: Option<String>,
}

/// A preview of the space that an invite leads to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InvitePreview)]
pub struct InvitePreview {
    space: SpacePreview,
    /// The name of the space's owner.
    host: Option<String>,
    /// The number of members, people and characters.
    members: usize,
    role: MembershipRole,
    expires_at: Option<Timestamp>,
    /// Whether the caller is already a member.
    already_member: bool,
}

/// The user who joined, and their membership.
#[derive(Serialize, ToSchema)]
#[schema(as = Joined)]
pub struct JoinedSpace {
    user: user::UserView,
    membership: membership::MembershipView,
}

/// What people who are not members may see of a space.
#[derive(Debug, Serialize, ToSchema)]
pub struct SpacePreview {
    name: String,
}

/// Previews the space of an invite.
#[utoipa::path(
    get,
    path = "/api/join/{token}",
    operation_id = "look",
    tag = "invites",
    security(),
    params(("token" = String, Path, description = "The text after the `#` of the link.")),
    responses(
        (status = 200, body = InvitePreview),
        (status = 403, description = "`space_archived`."),
        (status = 404, description = "`not_found`: revoked, or never existed."),
        (status = 410, description = "`invite_expired`: expired or used up."),
        (status = 429, description = "`rate_limited`: too many invalid links from this address.")
    )
)]
pub async fn preview(
    app: Data<App>,
    request: HttpRequest,
    caller: Option<CurrentUser>,
    token: Path<String>,
) -> ApiResult<Json<InvitePreview>> {
    let invite_link = find_invite(&app, &request, &token).await?;
    let db = app.db.reader();
    let already_member = match &caller {
        Some(caller) => invite_acceptance::membership_of(db, &invite_link, &caller.user)
            .await?
            .is_some(),
        None => false,
    };
    if !already_member {
        invite_link.require_open(app.clock.now())?;
    }
    let memberships = membership::list_active(db, invite_link.space.id).await?;
    let owner = memberships
        .iter()
        .find(|it| it.role == MembershipRole::Owner);
    Ok(Json(InvitePreview {
        host: owner.map(|it| it.cached_display_name.clone()),
        members: memberships.len(),
        role: invite_link.invite.role,
        expires_at: invite_link.invite.expires_at,
        already_member,
        space: SpacePreview {
            name: invite_link.space.name,
        },
    }))
}

/// Joins a space: as the signed-in user, or with a name as a guest.
///
/// A guest's account exists as long as its session. A user may choose another name for this space.
/// An existing member gets 200, and the invite's use count does not change.
#[utoipa::path(
    post,
    path = "/api/join/{token}",
    tag = "invites",
    security(),
    params(("token" = String, Path, description = "The text after the `#` of the link.")),
    request_body = Option<JoinRequest>,
    responses(
        (status = 200, description = "Already a member.", body = JoinedSpace),
        (status = 201, body = JoinedSpace, headers(("set-cookie" = String))),
        (status = 401, description = "`not_authenticated`: this invite requires an account."),
        (status = 403, description = "`space_archived`; `cross_origin`."),
        (status = 404, description = "`not_found`: revoked, or never existed."),
        (status = 409, description = "`name_taken_here`: another member has a name that looks like this one."),
        (status = 410, description = "`invite_expired`: expired or used up."),
        (status = 429, description = "`rate_limited`: too many invalid links from this address, or too many accounts created from it.")
    )
)]
pub async fn join(
    app: Data<App>,
    request: HttpRequest,
    caller: Option<CurrentUser>,
    token: Path<String>,
    body: JsonBody<JoinRequest>,
) -> ApiResult<HttpResponse> {
    let token = token.into_inner();
    let body = body.read_or_default().await?;
    match caller {
        Some(caller) => {
            let display_name = body.display_name.as_deref();
            let joiner = JoiningUser::Existing {
                user: Box::new(caller.user),
                display_name: display_name
                    .map(account_input::parse_display_name)
                    .transpose()?,
            };
            join_space(&app, &request, token, joiner).await
        }
        None => join_as_guest(&app, &request, token, body).await,
    }
}

async fn join_as_guest(
    app: &App,
    request: &HttpRequest,
    token: String,
    body: JoinRequest,
) -> ApiResult<HttpResponse> {
    let invite_link = require_open(app, request, &token).await?;
    if invite_link.invite.role != MembershipRole::Guest {
        return Err(ApiError::new(
            401,
            "not_authenticated",
            "This invite requires an account. Sign in or create one to join.",
        ));
    }
    let Some(name) = body.display_name else {
        let message = "A guest must choose a display name.";
        return Err(ApiError::new(400, "missing_field", message).with_param("display_name"));
    };
    let guest = NewUser::create_guest(account_input::parse_display_name(&name)?);
    let entering = join_space(app, request, token, JoiningUser::New(guest));
    account_input::with_registration_limit(app, request, entering).await
}

/// Joins a user and returns `{user, membership}`: 201, or 200 for an existing member.
///
/// # Errors
/// Returns 404 for an unknown or revoked invite, 410 for an expired or used-up one, 403 for an
/// archived space, 422 for an invalid name, and 429 after too many guesses.
pub async fn join_space(
    app: &App,
    request: &HttpRequest,
    token: String,
    joiner: JoiningUser,
) -> ApiResult<HttpResponse> {
    check_guess_limit(app, request).await?;
    let agent = session::user_agent(request).to_owned();
    let joined = invite_acceptance::join(&app.db, token, joiner, agent, app.clock.now()).await;
    let joined = joined.map_err(|error| record_failed_guess(app, request, error))?;
    let mut answer = HttpResponseBuilder::new(match joined.is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    });
    if joined.is_new {
        membership_announcements::announce(app, &joined.membership);
    }
    if let Some(opened) = joined.session {
        answer.cookie(authentication::session_cookie(app, opened.token));
    }
    Ok(answer.json(JoinedSpace {
        user: joined.user.own_view(),
        membership: joined.membership.view(),
    }))
}

/// Loads the invite of a token that a new member can still use.
///
/// # Errors
/// Returns 404 for an unknown or revoked invite, 410 for an expired or used-up one, 403 for an
/// archived space, and 429 after too many guesses.
pub async fn require_open(app: &App, request: &HttpRequest, token: &str) -> ApiResult<OpenInvite> {
    let invite_link = find_invite(app, request, token).await?;
    invite_link.require_open(app.clock.now())?;
    Ok(invite_link)
}

async fn find_invite(app: &App, request: &HttpRequest, token: &str) -> ApiResult<OpenInvite> {
    check_guess_limit(app, request).await?;
    let found = invite_acceptance::find_open_invite(app.db.reader(), token).await;
    found.map_err(|error| record_failed_guess(app, request, error))
}

/// Checks whether this address may try a token now.
async fn check_guess_limit(app: &App, request: &HttpRequest) -> ApiResult<()> {
    let address = client_ip::client_ip(request);
    let wait = match address {
        Some(address) => app.limits.invite_guesses.retry_after(&address).await,
        None => None,
    };
    match wait {
        Some(seconds) => Err(ApiError::rate_limited(
            seconds,
            "Too many invalid invite links from this address. Try again later.",
        )),
        None => Ok(()),
    }
}

/// Converts a join error; an unknown token counts as a guess of this address.
fn record_failed_guess(app: &App, request: &HttpRequest, error: JoinError) -> ApiError {
    if let (JoinError::NotFound, Some(address)) = (&error, client_ip::client_ip(request)) {
        app.limits.invite_guesses.record(address);
    }
    error.into()
}

impl From<JoinError> for ApiError {
    fn from(error: JoinError) -> Self {
        match error {
            JoinError::NotFound | JoinError::Invalid => Self::new(
                404,
                "not_found",
                "This invite does not exist or was revoked.",
            ),
            JoinError::UsedUp => Self::new(410, "invite_expired", error.to_string()),
            JoinError::Archived => Self::new(403, "space_archived", error.to_string()),
            JoinError::NameTaken => account_input::name_taken_error(),
            JoinError::User(error) => error.into(),
            JoinError::Db(error) => error.into(),
        }
    }
}
