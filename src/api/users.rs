//! Accounts: making one, and changing one's own.

use crate::accounts::limits::Wait;
use crate::accounts::name_schemas::ShownName;
use crate::accounts::names;
use crate::accounts::names::Password;
use crate::accounts::names::Username;
use crate::accounts::session as sessions;
use crate::accounts::user;
use crate::accounts::user::Change;
use crate::accounts::user::NewUser;
use crate::accounts::user::UserError;
use crate::api::session;
use crate::api::session::SignedIn;
use crate::app::App;
use crate::http::auth::CurrentUser;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::http::json;
use crate::http::json::Body;
use crate::ids::SessionId;
use crate::spaces::events;
use crate::spaces::roster;
use crate::spaces::roster::Renamed;
use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use serde::Deserialize;
use utoipa::ToSchema;

/// An account to be.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Register {
    #[schema(value_type = Username)]
    username: String,
    #[schema(value_type = Password)]
    password: String,
    #[schema(value_type = ShownName)]
    display_name: String,
    invite_token: Option<String>,
}

/// What one changes of one's own account.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeMe {
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = ShownName)]
    display_name: Option<String>,
    /// A language such as `en` or `pt-BR`.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(nullable = false, pattern = "^[A-Za-z0-9-]{2,16}$")]
    locale: Option<String>,
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = Username)]
    username: Option<String>,
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = Password)]
    password: Option<String>,
    /// Needed beside a new password by everyone who has one.
    #[schema(format = Password)]
    current_password: Option<String>,
}

/// What somebody who wants an account says, judged.
pub struct Registration {
    username: Username,
    display_name: String,
    password: Password,
}

impl Registration {
    /// # Errors
    /// 422, naming the first field that cannot be.
    pub fn parse(username: &str, display_name: &str, password: &str) -> ApiResult<Self> {
        Ok(Self {
            username: username_of(username)?,
            display_name: display_name_of(display_name)?,
            password: password_of(password)?,
        })
    }

    /// The account to be made.
    ///
    /// # Errors
    /// When the password cannot be hashed.
    pub async fn hashed(self, app: &App) -> ApiResult<NewUser> {
        Ok(NewUser {
            username: self.username,
            display_name: self.display_name,
            password_hash: hash(app, self.password).await?,
        })
    }
}

async fn hash(app: &App, password: Password) -> ApiResult<String> {
    app.passwords
        .hash(password)
        .await
        .map_err(ApiError::internal)
}

fn username_of(text: &str) -> ApiResult<Username> {
    Username::parse(text).map_err(|error| ApiError::invalid_value("username", error.to_string()))
}

fn display_name_of(text: &str) -> ApiResult<String> {
    names::shown(text, 100)
        .map_err(|error| ApiError::invalid_value("display_name", error.to_string()))
}

fn password_of(text: &str) -> ApiResult<Password> {
    Password::parse(text).map_err(|error| ApiError::invalid_value("password", error.to_string()))
}

fn locale_of(text: &str) -> ApiResult<String> {
    let fits = |it: char| it.is_ascii_alphanumeric() || it == '-';
    match (2..=16).contains(&text.len()) && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => Err(ApiError::invalid_value(
            "locale",
            "This takes a language such as `en` or `pt-BR`.",
        )),
    }
}

/// Makes an account and signs in.
///
/// Only where registration is open.
#[utoipa::path(
    post,
    path = "/api/users",
    tag = "users",
    security(),
    request_body = Register,
    responses(
        (status = 201, body = SignedIn, headers(("set-cookie" = String))),
        (status = 403, description = "`registration_closed`; `cross_origin`."),
        (status = 404, description = "`not_found`: there is no such invitation."),
        (status = 409, description = "`username_taken`."),
        (status = 429, description = "`rate_limited`: too many accounts were made from this address.")
    )
)]
pub async fn register(
    app: Data<App>,
    request: HttpRequest,
    body: Body<Register>,
) -> ApiResult<HttpResponse> {
    let body = body.read().await?;
    if body.invite_token.is_some() {
        return Err(ApiError::not_found());
    }
    if !app.config.open_registration || user::nobody_yet(app.db.reader()).await? {
        return Err(ApiError::new(
            403,
            "registration_closed",
            "Nobody can register here without an invitation.",
        ));
    }
    let registration = Registration::parse(&body.username, &body.display_name, &body.password)?;
    let address = session::address_of(&request);
    if let Some(address) = address {
        app.limits
            .registrations
            .take(address)
            .map_err(|Wait(seconds)| {
                ApiError::rate_limited(seconds, "Too many accounts were made from here. Wait.")
            })?;
    }
    let made = create(&app, registration).await;
    if let (Err(_), Some(address)) = (&made, address) {
        app.limits.registrations.give_back(&address);
    }
    session::open(&app, &request, StatusCode::CREATED, &made?).await
}

async fn create(app: &App, registration: Registration) -> ApiResult<user::Model> {
    let new = registration.hashed(app).await?;
    let now = app.clock.now();
    let made = app
        .db
        .write(move |tx| Box::pin(async move { user::create(tx, new, now).await }))
        .await?;
    Ok(made)
}

/// Changes one's own account.
///
/// A new password ends every session; whoever changed it goes on in a new one.
#[utoipa::path(
    patch,
    path = "/api/users/me",
    tag = "users",
    request_body = ChangeMe,
    responses(
        (status = 200, body = user::View),
        (status = 409, description = "`username_taken`."),
        (status = 429, description = "`rate_limited`: the current password was wrong too often.")
    )
)]
pub async fn change_me(
    app: Data<App>,
    request: HttpRequest,
    caller: CurrentUser,
    body: Body<ChangeMe>,
) -> ApiResult<HttpResponse> {
    let body = body.read().await?;
    let mut change = Change {
        username: body.username.as_deref().map(username_of).transpose()?,
        display_name: body
            .display_name
            .as_deref()
            .map(display_name_of)
            .transpose()?,
        password_hash: None,
        locale: body.locale.as_deref().map(locale_of).transpose()?,
    };
    if let Some(password) = body.password.as_deref() {
        let password = password_of(password)?;
        must_know_password(&app, &request, &caller, body.current_password).await?;
        change.password_hash = Some(hash(&app, password).await?);
    }
    let (user, ended) = apply(&app, &caller, change).await?;
    if user.display_name != caller.user.display_name {
        let (who, name) = (Renamed::User(user.id), user.display_name.clone());
        for seat in roster::rename(&app.db, who, name).await? {
            app.hub.publish(events::membership_updated(&seat));
        }
    }
    let mut answer = HttpResponse::Ok();
    if !ended.is_empty() {
        for id in ended {
            session::tell_ended(&app, user.id, id);
        }
        // Whoever had the old password is out; who changed it goes on in a new session.
        if caller.session().is_some() {
            answer.cookie(session::new_cookie(&app, &request, user.id).await?);
        }
    }
    Ok(answer.json(user.view()))
}

async fn must_know_password(
    app: &App,
    request: &HttpRequest,
    caller: &CurrentUser,
    current: Option<String>,
) -> ApiResult<()> {
    let Some(hash) = caller.user.password_hash.clone() else {
        return Ok(()); // a guest takes the first one
    };
    let Some(current) = current else {
        return Err(ApiError::new(
            400,
            "missing_field",
            "A new password takes the `current_password` beside it.",
        )
        .about("current_password"));
    };
    let address = session::address_of(request);
    session::may_try(app, address, &caller.user.username)?;
    let checked = app.passwords.check(current, Some(hash)).await;
    if checked.map_err(ApiError::internal)? {
        return Ok(());
    }
    app.limits.sign_ins.failed(address, &caller.user.username);
    Err(ApiError::invalid_value(
        "current_password",
        "This is not your current password.",
    ))
}

/// Changes the account and, with its password, ends every session.
async fn apply(
    app: &App,
    caller: &CurrentUser,
    change: Change,
) -> ApiResult<(user::Model, Vec<SessionId>)> {
    let id = caller.id();
    let changed = app
        .db
        .write(move |tx| {
            Box::pin(async move {
                let ends_sessions = change.password_hash.is_some();
                let user = user::update(tx, id, change).await?;
                let ended = match ends_sessions {
                    true => sessions::end_all(tx, id).await?,
                    false => Vec::new(),
                };
                Ok::<_, UserError>((user, ended))
            })
        })
        .await?;
    Ok(changed)
}

impl From<UserError> for ApiError {
    fn from(error: UserError) -> Self {
        match error {
            UserError::Taken => {
                Self::conflict("username_taken", error.to_string()).about("username")
            }
            UserError::Db(error) => error.into(),
        }
    }
}
