//! Validates usernames, display names, passwords and language tags of accounts, hashes passwords,
//! and limits how many accounts one IP address creates.

use actix_web::HttpRequest;
use base::display_name;
use serde_json::{Map, Value};

use crate::accounts::user::NewUser;
use crate::accounts::username_password::{Password, Username};
use crate::app::App;
use crate::rate_limit::sliding_window::RetryAfter;
use crate::spaces::invites::invite_acceptance::JoinError;
use crate::web::api::language_input;
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::client_ip;

/// The maximum size of a user's settings.
const MAX_SETTINGS_BYTES: usize = 64 * 1024;

/// Validated registration data.
pub struct Registration {
    username: Username,
    display_name: String,
    password: Password,
}

impl Registration {
    /// Validates the fields.
    ///
    /// # Errors
    /// Returns 422, naming the first invalid field.
    pub fn parse(username: &str, display_name: &str, password: &str) -> ApiResult<Self> {
        Ok(Self {
            username: parse_username(username)?,
            display_name: parse_display_name(display_name)?,
            password: parse_password(password)?,
        })
    }

    /// Hashes the password and returns the account to insert.
    ///
    /// # Errors
    /// Returns 500 when the password cannot be hashed.
    pub async fn into_new_user(self, app: &App) -> ApiResult<NewUser> {
        Ok(NewUser {
            username: self.username,
            display_name: self.display_name,
            password_hash: Some(hash_password(app, self.password).await?),
        })
    }
}

/// Hashes a password.
///
/// # Errors
/// Returns 500 when hashing fails.
pub async fn hash_password(app: &App, password: Password) -> ApiResult<String> {
    app.passwords
        .hash(password)
        .await
        .map_err(ApiError::internal)
}

/// Validates a username.
///
/// # Errors
/// Returns 422 when it is too short, too long, or has other characters.
pub fn parse_username(text: &str) -> ApiResult<Username> {
    Username::parse(text).map_err(|error| ApiError::invalid_value("username", error.to_string()))
}

/// Validates a display name.
///
/// # Errors
/// Returns 422 for a name that cannot be displayed.
pub fn parse_display_name(text: &str) -> ApiResult<String> {
    display_name::parse(text, 100)
        .map_err(|error| ApiError::invalid_value("display_name", error.to_string()))
}

/// Validates a password.
///
/// # Errors
/// Returns 422 when it is too short or too long.
pub fn parse_password(text: &str) -> ApiResult<Password> {
    Password::parse(text).map_err(|error| ApiError::invalid_value("password", error.to_string()))
}

/// Validates a language tag.
///
/// # Errors
/// Returns 422 when it is none.
pub fn parse_locale(text: &str) -> ApiResult<String> {
    let fits = |it: char| it.is_ascii_alphanumeric() || it == '-';
    match (2..=16).contains(&text.len()) && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => Err(ApiError::invalid_value(
            "locale",
            "Must be a language tag such as `en` or `pt-BR`.",
        )),
    }
}

/// Validates the settings of a user's own pages.
///
/// # Errors
/// Returns 422 when they are too large, or their language is no language tag.
pub fn parse_settings(mut settings: Map<String, Value>) -> ApiResult<Value> {
    match settings.get("language") {
        None => {}
        Some(Value::Null) => {
            settings.remove("language");
        }
        Some(language) => {
            let text = language.as_str().unwrap_or_default();
            let tag = language_input::parse("settings.language", text)?;
            settings.insert("language".to_owned(), Value::String(tag.to_string()));
        }
    }
    let settings = Value::Object(settings);
    match settings.to_string().len() <= MAX_SETTINGS_BYTES {
        true => Ok(settings),
        false => Err(ApiError::invalid_value(
            "settings",
            "Must have at most 64 KiB of JSON.",
        )),
    }
}

/// Runs `work`, which creates an account, if this address may create one now; a failure does not
/// count.
///
/// # Errors
/// Returns 429 when this address has created too many accounts, and the errors of `work`.
pub async fn with_registration_limit<T>(
    app: &App,
    request: &HttpRequest,
    work: impl Future<Output = ApiResult<T>>,
) -> ApiResult<T> {
    let address = client_ip::client_ip(request);
    let permit = match address {
        Some(address) => Some(app.limits.registrations.acquire(address).await),
        None => None,
    };
    let permit = permit.transpose().map_err(|RetryAfter(seconds)| {
        ApiError::rate_limited(seconds, "Too many new accounts. Try again later.")
    })?;
    let made = work.await;
    if let (Err(_), Some(permit)) = (&made, permit) {
        app.limits.registrations.refund(permit);
    }
    made
}

/// 409: the name is confusable with that of another active member of the space.
pub fn name_taken_error() -> ApiError {
    ApiError::conflict("name_taken_here", JoinError::NameTaken.to_string())
        .with_param("display_name")
}
