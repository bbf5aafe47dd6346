//! Finds how much remains of the token limit of the space that a request names as its model, for the headers
//! of the answer.

use actix_web::http::header::{HeaderMap, HeaderName};
use actix_web::{HttpMessage, HttpRequest};

use crate::app::App;
use crate::conversations::token_usage;
use crate::db::backend::DbError;
use crate::responses::error::ResponseEngineError;
use crate::responses::persona_models::model_names;
use crate::responses::persona_models::model_names::{ModelRef, PersonaModel};
use crate::web::extract::authentication::CurrentUser;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit-tokens");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining-tokens");

/// The token limit of a space when a request began. It is never renewed.
#[derive(Clone, Copy, Debug)]
pub struct SpaceTokens {
    limit: i64,
    remaining: i64,
}

/// Stores in the request, for the headers, how much remains of the token limit, if the model is a space with
/// a limit and the caller may use it.
///
/// # Errors
/// Returns the error of the database.
pub async fn attach_to_request(
    app: &App,
    caller: &CurrentUser,
    http: &HttpRequest,
    model: &str,
) -> Result<(), DbError> {
    let Some(found @ ModelRef::Space(_)) = model_names::parse(model) else {
        return Ok(());
    };
    let db = app.db.reader();
    let space = match model_names::find(db, caller.id(), found).await {
        Ok(PersonaModel::Space { space, .. }) if space.token_limit > 0 => space,
        Err(ResponseEngineError::Database(error)) => return Err(error),
        // The request itself is then refused with the reason.
        _ => return Ok(()),
    };
    let used = token_usage::list_for_spaces(db, [space.id]).await?;
    let used = used.get(&space.id).copied().unwrap_or(0);
    http.extensions_mut().insert(SpaceTokens {
        limit: space.token_limit,
        remaining: space.token_limit.saturating_sub(used).max(0),
    });
    Ok(())
}

/// Sets the headers.
pub fn set(headers: &mut HeaderMap, tokens: SpaceTokens) {
    headers.insert(LIMIT, tokens.limit.into());
    headers.insert(REMAINING, tokens.remaining.into());
}
