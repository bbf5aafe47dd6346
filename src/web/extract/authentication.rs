//! Authenticates the caller of a request by session cookie or API key, rejects requests that
//! another site's page sent with the cookie, and builds the session cookie.
//!
//! [`identify`] runs once for each request below `/api`, before the handler; the extractors only
//! read its result. So a caller who is not signed in learns nothing else about the request.

use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::cookie::time::Duration;
use actix_web::cookie::{Cookie, SameSite};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::AUTHORIZATION;
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest};
use base::clock::Timestamp;
use base::ids::{SessionId, UserId};

use crate::accounts::credential::Credential;
use crate::accounts::{api_key, session, user};
use crate::app::App;
use crate::db::backend::DbError;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::csrf;

const SESSION_COOKIE: &str = "troupe_session";

/// An authenticated user and the credential they used.
#[derive(Clone, Debug)]
pub struct CurrentUser {
    pub user: user::Model,
    pub credential: Credential,
    /// The first characters of the API key; `None` without one.
    pub key_prefix: Option<Arc<str>>,
}

/// A caller who is an admin of the server.
#[derive(Clone, Debug)]
pub struct Admin(pub CurrentUser);

impl CurrentUser {
    pub fn id(&self) -> UserId {
        self.user.id
    }

    /// Returns whether this user is an admin of the server.
    pub fn is_admin(&self) -> bool {
        self.user.role == user::UserRole::Admin
    }

    /// Refuses guests, whose data would be lost with their session.
    ///
    /// # Errors
    /// Returns 403 `forbidden` for a guest.
    pub fn require_registered(&self) -> ApiResult<()> {
        match self.user.is_guest() {
            true => Err(ApiError::forbidden(
                "Guests cannot do this. Choose a username and a password first.",
            )),
            false => Ok(()),
        }
    }

    /// Returns the session, if a browser calls.
    pub fn session(&self) -> Option<SessionId> {
        self.credential.session()
    }
}

impl FromRequest for CurrentUser {
    type Error = ApiError;
    type Future = Ready<ApiResult<Self>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = request.extensions().get::<Self>().cloned();
        ready(found.ok_or_else(ApiError::not_authenticated))
    }
}

impl FromRequest for Admin {
    type Error = ApiError;
    type Future = Ready<ApiResult<Self>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let caller = CurrentUser::from_request(request, payload).into_inner();
        ready(caller.and_then(|it| match it.is_admin() {
            true => Ok(Self(it)),
            false => Err(ApiError::forbidden("Only an admin may do this.")),
        }))
    }
}

/// The middleware around all endpoints for users: authenticates the caller and refuses requests
/// that another site's page made a browser send.
///
/// # Errors
/// Returns only errors that the inner services did not turn into a response.
pub async fn identify(
    app: Data<App>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let found = match check_origin(&app, request.request()) {
        Ok(()) => authenticate(&app, request.request()).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(Some(caller)) => {
            request.extensions_mut().insert(caller);
        }
        Ok(None) => {}
        // With the error attached to the response, so that `response_headers` can complete it.
        Err(error) => return Ok(request.error_response(error)),
    }
    Ok(next.call(request).await?.map_into_boxed_body())
}

fn check_origin(app: &App, request: &HttpRequest) -> ApiResult<()> {
    let uses_cookie = bearer(request).is_none() && request.cookie(SESSION_COOKIE).is_some();
    match uses_cookie && !csrf::is_safe_method(request.method()) {
        true => csrf::check_request(request.headers(), app.config.public_url.as_deref()),
        false => Ok(()),
    }
}

/// Authenticates the caller, if any; also for WebSocket upgrades, which no middleware guards.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn authenticate(app: &App, request: &HttpRequest) -> ApiResult<Option<CurrentUser>> {
    let now = app.clock.now();
    match bearer(request) {
        Some(key) => load_by_api_key(app, key, now).await,
        None => match request.cookie(SESSION_COOKIE) {
            Some(cookie) => load_by_session(app, cookie.value(), now).await,
            None => Ok(None),
        },
    }
}

/// Authenticates the caller of a WebSocket upgrade.
///
/// # Errors
/// Returns 401 `not_authenticated`; 403 `cross_origin` when a cookie came from another origin.
pub async fn authenticate_socket(app: &App, request: &HttpRequest) -> ApiResult<CurrentUser> {
    if bearer(request).is_none() && request.cookie(SESSION_COOKIE).is_some() {
        csrf::check_upgrade(request.headers(), app.config.public_url.as_deref())?;
    }
    authenticate(app, request)
        .await?
        .ok_or_else(ApiError::not_authenticated)
}

/// Authenticates a caller by API key; cookies are ignored.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn from_api_key(app: &App, request: &HttpRequest) -> ApiResult<Option<CurrentUser>> {
    match bearer(request) {
        Some(key) => load_by_api_key(app, key, app.clock.now()).await,
        None => Ok(None),
    }
}

fn bearer(request: &HttpRequest) -> Option<&str> {
    let value = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

async fn load_by_api_key(app: &App, key: &str, now: Timestamp) -> ApiResult<Option<CurrentUser>> {
    let Some((key, user)) = api_key::find_active(app.db.reader(), key).await? else {
        return Ok(None);
    };
    if key.needs_touch(now) {
        let (db, id) = (app.db.clone(), key.id);
        app.shutdown
            .spawn(async move { log_failure(api_key::touch(&db, id, now).await) });
    }
    Ok(Some(CurrentUser {
        user,
        credential: Credential::ApiKey(key.id),
        key_prefix: Some(key.prefix.into()),
    }))
}

async fn load_by_session(app: &App, token: &str, now: Timestamp) -> ApiResult<Option<CurrentUser>> {
    let Some((session, user)) = session::find_active(app.db.reader(), token, now).await? else {
        return Ok(None);
    };
    if session.needs_touch(now) {
        let (db, id) = (app.db.clone(), session.id);
        app.shutdown
            .spawn(async move { log_failure(session::touch(&db, id, now).await) });
    }
    let credential = Credential::Session(session.id);
    Ok(Some(CurrentUser {
        user,
        credential,
        key_prefix: None,
    }))
}

/// Updating last_seen_at is optional: no request fails because of it.
fn log_failure(result: Result<(), DbError>) {
    if let Err(error) = result {
        tracing::warn!(%error, "failed to update last_seen_at: {error}");
    }
}

/// Returns the cookie that signs a browser in.
pub fn session_cookie(app: &App, token: String) -> Cookie<'static> {
    let public_url = app.config.public_url.as_deref();
    Cookie::build(SESSION_COOKIE, token)
        .http_only(true)
        .same_site(SameSite::Lax)
        .path("/")
        .secure(public_url.is_some_and(|it| it.starts_with("https://")))
        .max_age(Duration::seconds(session::LIFETIME_SECS))
        .finish()
}

/// Returns the cookie that signs a browser out.
pub fn expired_cookie(app: &App) -> Cookie<'static> {
    let mut cookie = session_cookie(app, String::new());
    cookie.make_removal();
    cookie
}
