//! Signing in and out, and the browsers in which one is signed in.

use actix_web::cookie::Cookie;
use actix_web::http::StatusCode;
use actix_web::http::header::USER_AGENT;
use actix_web::web::{Data, Json, Path};
use actix_web::{HttpMessage, HttpRequest, HttpResponse, HttpResponseBuilder};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::limits::{ClientNetwork, RetryAfter};
use crate::accounts::{session, user};
use crate::api::memberships;
use crate::app::App;
use crate::clock::Timestamp;
use crate::http::authentication::CurrentUser;
use crate::http::error::{ApiError, ApiResult};
use crate::http::json_body::JsonBody;
use crate::http::pagination::{PageOf, PageQuery};
use crate::http::{authentication, client_ip};
use crate::ids::{SessionId, UserId};
use crate::realtime::event::{Envelope, SocketControl};
use crate::spaces::membership_changes;

/// A name and its password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    username: String,
    #[schema(format = Password)]
    password: String,
}

/// Who is signed in.
#[derive(Serialize, ToSchema)]
pub struct SignedIn {
    user: user::UserView,
}

/// One browser in which one is signed in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionView {
    id: SessionId,
    created_at: Timestamp,
    last_seen_at: Timestamp,
    expires_at: Timestamp,
    user_agent: String,
    /// Whether it is the one that asks.
    current: bool,
}

/// Signs a browser in.
///
/// Whatever is wrong, the answer is the same. After some failures of a name or an address every
/// further try waits, right or wrong.
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

/// Whether an attempt is the password behind a hash; a wrong one counts against address and name.
///
/// # Errors
/// 429: too many were wrong before.
pub async fn verify_password(
    app: &App,
    address: Option<ClientNetwork>,
    username: &str,
    (attempt, hash): (String, Option<String>),
) -> ApiResult<bool> {
    // Who has to wait anyway takes no place. The place is held until a failure has been counted.
    check_sign_in_limit(app, address, username).await?;
    let place = app
        .passwords
        .acquire_permit()
        .await
        .map_err(ApiError::internal)?;
    // Others may have failed while this one waited: who guesses at once gains nothing by it.
    check_sign_in_limit(app, address, username).await?;
    let checked = app.passwords.check(&place, attempt, hash).await;
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
            "Too many sign-ins have failed. Wait a little before the next one.",
        )
    })
}

/// Whoever signs in again in one browser is signed in once.
async fn end_previous_session(app: &App, request: &HttpRequest) -> ApiResult<()> {
    let caller = request.extensions().get::<CurrentUser>().cloned();
    if let Some((caller, id)) = caller.and_then(|it| Some((it.clone(), it.session()?))) {
        end_session(app, &caller, id).await?;
    }
    Ok(())
}

/// Ends a session of the caller; `false`: there is none with this id.
///
/// A guest who goes cannot come back to the account, so its seats are left: nobody waits for
/// somebody who is gone, and their name is free for them when they come in again.
async fn end_session(app: &App, caller: &CurrentUser, id: SessionId) -> ApiResult<bool> {
    if !session::revoke(&app.db, caller.id(), id).await? {
        return Ok(false);
    }
    announce_ended(app, caller.id(), id);
    if caller.user.is_guest() {
        for seat in membership_changes::list_active_for_user(app.db.reader(), caller.id()).await? {
            let left = membership_changes::remove_member(&app.db, seat.id, app.clock.now()).await?;
            memberships::announce_left(app, &left).await?;
        }
    }
    Ok(true)
}

/// Answers `{user}` with the cookie of a new session.
///
/// # Errors
/// When the database fails.
pub async fn open_session(
    app: &App,
    request: &HttpRequest,
    status: StatusCode,
    user: &user::Model,
) -> ApiResult<HttpResponse> {
    let mut answer = HttpResponseBuilder::new(status);
    answer.cookie(create_session_cookie(app, request, user.id).await?);
    let user = user.view();
    Ok(answer.json(SignedIn { user }))
}

/// The cookie of a new session.
///
/// # Errors
/// When the database fails.
pub async fn create_session_cookie(
    app: &App,
    request: &HttpRequest,
    user: UserId,
) -> ApiResult<Cookie<'static>> {
    let agent = user_agent(request);
    let opened = session::open(&app.db, user, agent, app.clock.now()).await?;
    Ok(authentication::session_cookie(app, opened.token))
}

/// What the browser calls itself.
pub fn user_agent(request: &HttpRequest) -> &str {
    let agent = request.headers().get(USER_AGENT);
    agent.and_then(|it| it.to_str().ok()).unwrap_or_default()
}

/// Who is signed in.
#[utoipa::path(
    get,
    path = "/api/session",
    tag = "session",
    responses((status = 200, body = SignedIn))
)]
pub async fn current(caller: CurrentUser) -> Json<SignedIn> {
    let user = caller.user.view();
    Json(SignedIn { user })
}

/// Signs this browser out. Its sockets close.
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

/// Where one is signed in.
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
    let sessions = page
        .load(
            session::list_for_user(caller.id(), app.clock.now()),
            session::Column::Id,
            app.db.reader(),
        )
        .await?;
    Ok(Json(sessions.map(|it| SessionView {
        id: it.id,
        created_at: it.created_at,
        last_seen_at: it.last_seen_at,
        expires_at: it.expires_at,
        user_agent: it.user_agent,
        current: caller.session() == Some(it.id),
    })))
}

/// Ends one of one's sessions. Its sockets close.
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

/// Closes the sockets of a session that has ended.
pub fn announce_ended(app: &App, user: UserId, id: SessionId) {
    app.hub
        .publish(Envelope::control(user, SocketControl::SessionEnded(id)));
}
