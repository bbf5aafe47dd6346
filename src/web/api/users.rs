//! Endpoints that register an account, with or without an invite, and change the caller's own
//! account.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use realtime::envelope::{Envelope, SocketControl};

use crate::accounts::user;
use crate::accounts::user::{ProfileChange, UserError};
use crate::app::App;
use crate::spaces::account_changes::AccountChangeError;
use crate::spaces::invites::invite_acceptance::JoiningUser;
use crate::spaces::{account_changes, events};
use crate::web::api::account_bodies::{CreateUser, RegisteredUser, UpdateMe, UpdatedMe};
use crate::web::api::account_input::Registration;
use crate::web::api::{account_input, join, session};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::client_ip;
use crate::web::extract::json_body::JsonBody;

/// Creates an account and signs in; with an invite it also joins the space.
///
/// Without an invite, registration must be open. An invalid invite creates no account.
#[utoipa::path(
    post,
    path = "/api/users",
    tag = "users",
    security(),
    request_body = CreateUser,
    responses(
        (status = 201, body = RegisteredUser, headers(("set-cookie" = String))),
        (status = 403, description = "`registration_closed`; `space_archived`; `cross_origin`."),
        (status = 404, description = "`not_found`: the invite does not exist."),
        (status = 409, description = "`username_taken`, also for one that looks alike; `name_taken_here`."),
        (status = 410, description = "`invite_expired`: expired or used up."),
        (status = 429, description = "`rate_limited`: too many accounts or invalid links from this address.")
    )
)]
pub async fn register(
    app: Data<App>,
    request: HttpRequest,
    body: JsonBody<CreateUser>,
) -> ApiResult<HttpResponse> {
    let body = body.read().await?;
    if let Some(token) = body.invite_token.clone() {
        return register_invited(&app, &request, body, token).await;
    }
    if !app.config.open_registration || user::is_empty(app.db.reader()).await? {
        return Err(ApiError::new(
            403,
            "registration_closed",
            "Registration on this server requires an invite.",
        ));
    }
    let registration = Registration::parse(&body.username, &body.display_name, &body.password)?;
    let made =
        account_input::with_registration_limit(&app, &request, create(&app, registration)).await?;
    session::open_session(&app, &request, StatusCode::CREATED, &made).await
}

/// Creates the account and the membership together: an invalid token creates no account.
async fn register_invited(
    app: &App,
    request: &HttpRequest,
    body: CreateUser,
    token: String,
) -> ApiResult<HttpResponse> {
    join::require_open(app, request, &token).await?;
    let registration = Registration::parse(&body.username, &body.display_name, &body.password)?;
    let enter = async {
        let joiner = JoiningUser::New(registration.into_new_user(app).await?);
        join::join_space(app, request, token, joiner).await
    };
    account_input::with_registration_limit(app, request, enter).await
}

async fn create(app: &App, registration: Registration) -> ApiResult<user::Model> {
    let new = registration.into_new_user(app).await?;
    let now = app.clock.now();
    Ok(user::register(&app.db, new, now).await?)
}

/// Changes the caller's account.
///
/// A new password ends every session and starts a new one for the caller. `revoke_api_keys` also
/// revokes every API key; the response contains the number of keys that are still valid.
#[utoipa::path(
    patch,
    path = "/api/users/me",
    operation_id = "change_me",
    tag = "users",
    request_body = UpdateMe,
    responses(
        (status = 200, body = UpdatedMe),
        (status = 409, description = "`username_taken`, also for one that looks alike; `name_taken_here`: in one of your spaces."),
        (status = 429, description = "`rate_limited`: the current password was wrong too often.")
    )
)]
pub async fn update_me(
    app: Data<App>,
    request: HttpRequest,
    caller: CurrentUser,
    body: JsonBody<UpdateMe>,
) -> ApiResult<HttpResponse> {
    let body = body.read().await?;
    let mut change = ProfileChange {
        username: body
            .username
            .as_deref()
            .map(account_input::parse_username)
            .transpose()?,
        display_name: body
            .display_name
            .as_deref()
            .map(account_input::parse_display_name)
            .transpose()?,
        password_hash: None,
        locale: body
            .locale
            .as_deref()
            .map(account_input::parse_locale)
            .transpose()?,
        settings: body
            .settings
            .map(account_input::parse_settings)
            .transpose()?,
    };
    if let Some(password) = body.password.as_deref() {
        let password = account_input::parse_password(password)?;
        require_current_password(&app, &request, &caller, body.current_password).await?;
        change.password_hash = Some(account_input::hash_password(&app, password).await?);
    }
    let (user, revokes_keys) = (&caller.user, body.revoke_api_keys);
    let changed =
        account_changes::change_profile(&app.db, user, change, revokes_keys, app.clock.now())
            .await?;
    for membership in &changed.memberships {
        app.hub.publish(events::membership_updated(membership));
    }
    for id in changed.revoked_keys {
        let order = SocketControl::KeyRevoked(id);
        app.hub.publish(Envelope::control(caller.id(), order));
    }
    let (user, ended) = (changed.user, changed.ended_sessions);
    let mut answer = HttpResponse::Ok();
    if !ended.is_empty() {
        for id in ended {
            session::announce_ended(&app, user.id, id);
        }
        // The password change ended all sessions; the caller continues in a new one.
        if caller.session().is_some() {
            answer.cookie(session::create_session_cookie(&app, &request, user.id).await?);
        }
    }
    Ok(answer.json(UpdatedMe {
        user: user.own_view(),
        api_keys_active: changed.n_active_keys,
    }))
}

async fn require_current_password(
    app: &App,
    request: &HttpRequest,
    caller: &CurrentUser,
    current: Option<String>,
) -> ApiResult<()> {
    let Some(hash) = caller.user.password_hash.clone() else {
        return Ok(()); // a guest sets the first password
    };
    let Some(current) = current else {
        return Err(ApiError::new(
            400,
            "missing_field",
            "A new password requires `current_password`.",
        )
        .with_param("current_password"));
    };
    let address = client_ip::client_ip(request);
    let name = &caller.user.username;
    if session::verify_password(app, address, name, (current, Some(hash))).await? {
        return Ok(());
    }
    Err(ApiError::invalid_value(
        "current_password",
        "This is not your current password.",
    ))
}

impl From<AccountChangeError> for ApiError {
    fn from(error: AccountChangeError) -> Self {
        match error {
            AccountChangeError::NameTaken => account_input::name_taken_error(),
            AccountChangeError::User(error) => error.into(),
            AccountChangeError::Admin(error) => error.into(),
            AccountChangeError::Db(error) => error.into(),
        }
    }
}

impl From<UserError> for ApiError {
    fn from(error: UserError) -> Self {
        match error {
            UserError::UsernameTaken => {
                Self::conflict("username_taken", error.to_string()).with_param("username")
            }
            UserError::Db(error) => error.into(),
        }
    }
}
