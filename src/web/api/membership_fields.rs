//! Parses and checks the values of single fields of a membership change.

use base::display_name;
use base::ids::ProviderId;

use crate::app::App;
use crate::providers::provider;
use crate::web::api::account_input;
use crate::web::error::{ApiError, ApiResult};

const MAX_PERSONA_CHARS: usize = 20_000;
const MAX_ALIASES: usize = 50;

/// Parses the name of a person in one space; `None` removes it.
///
/// # Errors
/// Returns 422 for an invalid name.
pub fn parse_own_name(name: Option<String>) -> ApiResult<Option<String>> {
    name.as_deref()
        .map(account_input::parse_display_name)
        .transpose()
}

/// Parses a persona; a blank one is none.
///
/// # Errors
/// Returns 422 for one that is too long.
pub fn parse_persona(text: Option<String>) -> ApiResult<Option<String>> {
    let text = text.filter(|it| !it.trim().is_empty());
    match text
        .as_ref()
        .is_none_or(|it| it.chars().count() <= MAX_PERSONA_CHARS)
    {
        true => Ok(text),
        false => Err(ApiError::invalid_value(
            "persona",
            format!("Must have at most {MAX_PERSONA_CHARS} characters."),
        )),
    }
}

/// Parses the other names of a member.
///
/// # Errors
/// Returns 422 for an invalid name, or too many.
pub fn parse_aliases(list: Vec<String>) -> ApiResult<Vec<String>> {
    if list.len() > MAX_ALIASES {
        let message = format!("Must have at most {MAX_ALIASES} names.");
        return Err(ApiError::invalid_value("aliases", message));
    }
    let names = list.iter().zip(0..).map(|(name, at)| {
        display_name::parse(name, 100)
            .map_err(|error| ApiError::invalid_value(&format!("aliases.{at}"), error.to_string()))
    });
    names.collect()
}

/// Checks that a provider exists.
///
/// # Errors
/// Returns 422 if it does not.
pub async fn require_provider(app: &App, provider: Option<ProviderId>) -> ApiResult<()> {
    let Some(id) = provider else {
        return Ok(());
    };
    match provider::find(app.db.reader(), id).await? {
        Some(_) => Ok(()),
        None => Err(ApiError::invalid_value(
            "llm_provider_id",
            "This provider does not exist.",
        )),
    }
}
