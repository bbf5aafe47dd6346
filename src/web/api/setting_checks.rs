//! Checks of single settings, with errors that name the setting.

use base::display_name;

use crate::web::error::{ApiError, ApiResult};

/// Checks a number.
///
/// # Errors
/// Returns 422 `invalid_value`.
pub fn require_range(name: &str, value: Option<i64>, least: i64, most: i64) -> ApiResult<()> {
    match value.is_none_or(|it| (least..=most).contains(&it)) {
        true => Ok(()),
        false => Err(invalid_setting(
            name,
            format!("Must be between {least} and {most}."),
        )),
    }
}

/// Checks the name of a model.
///
/// # Errors
/// Returns 422 `invalid_value`.
pub fn require_model_name(name: &str, model: &str) -> ApiResult<()> {
    display_name::parse(model, 200)
        .map(drop)
        .map_err(|error| invalid_setting(name, error.to_string()))
}

/// Returns the error for a setting with this path below `settings`.
pub fn invalid_setting(name: &str, message: String) -> ApiError {
    ApiError::invalid_value(&format!("settings.{name}"), message)
}
