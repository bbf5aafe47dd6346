//! Endpoints that sign in and out, return the signed-in user, and list and end the caller's
//! sessions; also verifies passwords, with a limit on failed attempts.

use actix_web::cookie::Cookie;
use actix_web::http::StatusCode;
use actix_web::http::header::USER_AGENT;
use actix_web::web::{Data, Json, Path};
use actix_web::{HttpMessage, HttpRequest, HttpResponse, HttpResponseBuilder};
use base::clock::Timestamp;
use base::ids::{SessionId, UserId};
use realtime::envelope::{Envelope, SocketControl};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::{session, user};
use crate::app::App;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::rate_limit::client_network::ClientNetwork;
use crate::rate_limit::sliding_window::RetryAfter;
use crate::spaces::roster_changes;
use crate::web::api::membership_announcements;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::{authentication, client_ip};

/// A username and its password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    username: String,
    #[schema(format = Password)]
    password: String,
}

/// The signed-in user.
#[derive(Serialize, ToSchema)]
pub struct SignedIn {
    user: user::UserView,
}

/// A session of the caller in one browser.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionView {
    id: SessionId,
    created_at: Timestamp,
    last_seen_at: Timestamp,
    expires_at: Timestamp,
    user_agent: String,
    /// Whether it is the session of this request.
    current: bool,
}

/// Signs in and sets the session cookie.
///
/// The error is the same for a wrong name and a wrong password. After several failures for a name
/// or an address, further attempts are delayed, whether correct or not.
#[utoipa::path(
    post,
    path = "/api/session",
    tag = "session",
    security(),
    request_body = SignIn,
    responses(
        (status = 200, body = SignedIn, headers(("set-cookie" = String))),
        (status = 401, description = "`invalid_credentials`."),
        (status = 429, description = "`rate_limited`: too many sign-ins have failed.")
    )
)]
pub async fn sign_in(
    app: Data<App>,
    request: HttpRequest,
    body: JsonBody<SignIn>,
) -> ApiResult<HttpResponse> {
    let body = body.read().await?;
    let address = client_ip::client_ip(&request);
    let user = user::find_by_username(app.db.reader(), &body.username).await?;
    let hash = user
        .as_ref()
        .filter(|it| it.status == user::UserStatus::Active)
        .and_then(|it| it.password_hash.clone());
    let is_right = verify_password(&app, address, &body.username, (body.password, hash)).await?;
    let Some(user) = user.filter(|_| is_right) else {
        return Err(ApiError::new(
            401,
            "invalid_credentials",
            "Name or password is wrong.",
        ));
    };
    end_previous_session(&app, &request).await?;
    open_session(&app, &request, StatusCode::OK, &user).await
}

/// Checks a password against a hash; a failure counts against the address and the name.
///
/// # Errors
/// Returns 429 after too many failures.
pub async fn verify_password(
    app: &App,
    address: Option<ClientNetwork>,
    username: &str,
    (attempt, hash): (String, Option<String>),
) -> ApiResult<bool> {
    // Check the limit first, so that a delayed attempt takes no permit. The permit is held until a
    // failure has been counted.
    check_sign_in_limit(app, address, username).await?;
    let permit = app
        .passwords
        .acquire_permit()
        .await
        .map_err(ApiError::internal)?;
    // Check again: other attempts may have failed while this one waited. Otherwise concurrent
    // guesses would bypass the limit.
    check_sign_in_limit(app, address, username).await?;
    let checked = app.passwords.check(&permit, attempt, hash).await;
    let is_right = checked.map_err(ApiError::internal)?;
    if !is_right {
        app.limits.sign_ins.record_failure(address, username);
    }
    Ok(is_right)
}

async fn check_sign_in_limit(
    app: &App,
    address: Option<ClientNetwork>,
    username: &str,
) -> ApiResult<()> {
    let checked = app.limits.sign_ins.check(address, username).await;
    checked.map_err(|RetryAfter(seconds)| {
        ApiError::rate_limited(
            seconds,
            "Too many failed sign-ins. Wait a little, then try again.",
        )
    })
}

/// Ends the session that the browser already has, so that it never has two.
async fn end_previous_session(app: &App, request: &HttpRequest) -> ApiResult<()> {
    let caller = request.extensions().get::<CurrentUser>().cloned();
    if let Some((caller, id)) = caller.and_then(|it| Some((it.clone(), it.session()?))) {
        end_session(app, &caller, id).await?;
    }
    Ok(())
}

/// Ends a session of the caller; returns `false` if it does not exist.
///
/// A guest cannot return to the account, so its memberships are removed: the scheduler does not
/// wait for it, and the name becomes free for the same person's next visit.
async fn end_session(app: &App, caller: &CurrentUser, id: SessionId) -> ApiResult<bool> {
    if !session::revoke(&app.db, caller.id(), id).await? {
        return Ok(false);
    }
    announce_ended(app, caller.id(), id);
    if caller.user.is_guest() {
        for membership in roster_changes::list_active_for_user(app.db.reader(), caller.id()).await?
        {
            let left =
                roster_changes::remove_member(&app.db, membership.id, app.clock.now()).await?;
            membership_announcements::announce_left(app, &left).await?;
        }
    }
    Ok(true)
}

/// Creates a session and returns `{user}` with its cookie.
///
/// # Errors
/// Returns 500 when the database fails.
pub async fn open_session(
    app: &App,
    request: &HttpRequest,
    status: StatusCode,
    user: &user::Model,
) -> ApiResult<HttpResponse> {
    let mut answer = HttpResponseBuilder::new(status);
    answer.cookie(create_session_cookie(app, request, user.id).await?);
    let user = user.own_view();
    Ok(answer.json(SignedIn { user }))
}

/// Creates a session and returns its cookie.
///
/// # Errors
/// Returns 500 when the database fails.
pub async fn create_session_cookie(
    app: &App,
    request: &HttpRequest,
    user: UserId,
) -> ApiResult<Cookie<'static>> {
    let agent = user_agent(request);
    let opened = session::open(&app.db, user, agent, app.clock.now()).await?;
    Ok(authentication::session_cookie(app, opened.token))
}

/// Returns the `User-Agent` of a request, or an empty text.
pub fn user_agent(request: &HttpRequest) -> &str {
    let agent = request.headers().get(USER_AGENT);
    agent.and_then(|it| it.to_str().ok()).unwrap_or_default()
}

/// Returns the signed-in user.
#[utoipa::path(
    get,
    path = "/api/session",
    tag = "session",
    responses((status = 200, body = SignedIn))
)]
pub async fn current(caller: CurrentUser) -> Json<SignedIn> {
    let user = caller.user.own_view();
    Json(SignedIn { user })
}

/// Signs this browser out. Its sockets are closed.
#[utoipa::path(
    delete,
    path = "/api/session",
    tag = "session",
    responses((status = 204, headers(("set-cookie" = String))))
)]
pub async fn sign_out(app: Data<App>, caller: CurrentUser) -> ApiResult<HttpResponse> {
    if let Some(id) = caller.session() {
        end_session(&app, &caller, id).await?;
    }
    Ok(HttpResponse::NoContent()
        .cookie(authentication::expired_cookie(&app))
        .finish())
}

/// Lists the caller's sessions.
#[utoipa::path(
    get,
    path = "/api/sessions",
    tag = "session",
    params(PageQuery),
    responses((status = 200, body = PageOf<SessionView>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    page: PageQuery,
) -> ApiResult<Json<PageOf<SessionView>>> {
    let now = app.clock.now();
    let sessions = session::list_for_user(app.db.reader(), caller.id(), now, page).await?;
    Ok(Json(sessions.map(|it| SessionView {
        id: it.id,
        created_at: it.created_at,
        last_seen_at: it.last_seen_at,
        expires_at: it.expires_at,
        user_agent: it.user_agent,
        current: caller.session() == Some(it.id),
    })))
}

/// Ends one of the caller's sessions. Its sockets are closed.
#[utoipa::path(
    delete,
    path = "/api/sessions/{session_id}",
    tag = "session",
    responses((status = 204))
)]
pub async fn end(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<SessionId>,
) -> ApiResult<HttpResponse> {
    match end_session(&app, &caller, id.into_inner()).await? {
        true => Ok(HttpResponse::NoContent().finish()),
        false => Err(ApiError::not_found()),
    }
}

/// Closes the sockets of an ended session.
pub fn announce_ended(app: &App, user: UserId, id: SessionId) {
    app.hub
        .publish(Envelope::control(user, SocketControl::SessionEnded(id)));
}
