//! Validates language tags of requests.

use base::language_tag::LanguageTag;

use crate::web::error::{ApiError, ApiResult};

/// Parses a language tag.
///
/// # Errors
/// Returns 422, naming the field `param`, when it is none.
pub fn parse(param: &str, text: &str) -> ApiResult<LanguageTag> {
    let message = "Must be a language tag such as `en`, `pt-BR` or `zh-Hans`.";
    LanguageTag::parse(text).ok_or_else(|| ApiError::invalid_value(param, message))
}
