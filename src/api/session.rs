//! Signing in and out, and the browsers in which one is signed in.

use crate::accounts::limits::Address;
use crate::accounts::limits::Wait;
use crate::accounts::session;
use crate::accounts::user;
use crate::app::App;
use crate::clock::Timestamp;
use crate::http::auth;
use crate::http::auth::CurrentUser;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::http::json::Body;
use crate::http::page::Listing;
use crate::http::page::Page;
use crate::ids::SessionId;
use crate::ids::UserId;
use crate::realtime::event::Envelope;
use crate::realtime::event::Order;
use actix_web::HttpMessage;
use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::HttpResponseBuilder;
use actix_web::http::StatusCode;
use actix_web::http::header::USER_AGENT;
use actix_web::web::Data;
use actix_web::web::Json;
use actix_web::web::Path;
use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;

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
    user: user::View,
}

/// One browser in which one is signed in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub struct View {
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
    body: Body<SignIn>,
) -> ApiResult<HttpResponse> {
    let body = body.read().await?;
    let address = address_of(&request);
    may_try(&app, address, &body.username)?;
    let user = user::by_username(app.db.reader(), &body.username).await?;
    let hash = user
        .as_ref()
        .filter(|it| it.status == user::Status::Active)
        .and_then(|it| it.password_hash.clone());
    let is_right = app
        .passwords
        .check(body.password, hash)
        .await
        .map_err(ApiError::internal)?;
    // Others may have failed while this one waited: who guesses at once gains nothing by it.
    may_try(&app, address, &body.username)?;
    let Some(user) = user.filter(|_| is_right) else {
        app.limits.sign_ins.failed(address, &body.username);
        return Err(ApiError::new(
            401,
            "invalid_credentials",
            "Name or password is wrong.",
        ));
    };
    leave_old_session(&app, &request).await?;
    open(&app, &request, StatusCode::OK, &user).await
}

/// Whether this address may try this name now.
///
/// # Errors
/// 429.
pub fn may_try(app: &App, address: Option<Address>, username: &str) -> ApiResult<()> {
    let checked = app.limits.sign_ins.check(address, username);
    checked.map_err(|Wait(seconds)| {
        ApiError::rate_limited(
            seconds,
            "Too many sign-ins have failed. Wait a little before the next one.",
        )
    })
}

/// Whoever signs in again in one browser is signed in once.
async fn leave_old_session(app: &App, request: &HttpRequest) -> ApiResult<()> {
    let caller = request.extensions().get::<CurrentUser>().cloned();
    if let Some((user, id)) = caller.and_then(|it| Some((it.id(), it.session()?))) {
        session::end(&app.db, user, id).await?;
        tell_ended(app, user, id);
    }
    Ok(())
}

/// Answers `{user}` with the cookie of a new session.
///
/// # Errors
/// When the database fails.
pub async fn open(
    app: &App,
    request: &HttpRequest,
    status: StatusCode,
    user: &user::Model,
) -> ApiResult<HttpResponse> {
    let mut answer = HttpResponseBuilder::new(status);
    answer.cookie(new_cookie(app, request, user.id).await?);
    let user = user.view();
    Ok(answer.json(SignedIn { user }))
}

/// The cookie of a new session.
///
/// # Errors
/// When the database fails.
pub async fn new_cookie(
    app: &App,
    request: &HttpRequest,
    user: UserId,
) -> ApiResult<actix_web::cookie::Cookie<'static>> {
    let agent = request.headers().get(USER_AGENT);
    let agent = agent.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let opened = session::open(&app.db, user, agent, app.clock.now()).await?;
    Ok(auth::cookie(app, opened.token))
}

/// Where a caller is; headers that anybody can write are not asked.
pub fn address_of(request: &HttpRequest) -> Option<Address> {
    request.peer_addr().map(|it| it.ip().into())
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
        session::end(&app.db, caller.id(), id).await?;
        tell_ended(&app, caller.id(), id);
    }
    Ok(HttpResponse::NoContent()
        .cookie(auth::no_cookie(&app))
        .finish())
}

/// Where one is signed in.
#[utoipa::path(
    get,
    path = "/api/sessions",
    tag = "session",
    params(Page),
    responses((status = 200, body = Listing<View>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    page: Page,
) -> ApiResult<Json<Listing<View>>> {
    let sessions = page
        .of(
            session::of_user(caller.id(), app.clock.now()),
            session::Column::Id,
            app.db.reader(),
        )
        .await?;
    Ok(Json(sessions.map(|it| View {
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
    let id = id.into_inner();
    if !session::end(&app.db, caller.id(), id).await? {
        return Err(ApiError::not_found());
    }
    tell_ended(&app, caller.id(), id);
    Ok(HttpResponse::NoContent().finish())
}

/// Closes the sockets of a session that has ended.
pub fn tell_ended(app: &App, user: UserId, id: SessionId) {
    app.hub
        .publish(Envelope::order(user, Order::SessionEnded(id)));
}
