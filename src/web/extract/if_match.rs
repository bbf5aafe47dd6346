//! Reads the document version on which a change is based, from the request body or from the header
//! `If-Match`.

use actix_web::HttpRequest;
use actix_web::http::header::IF_MATCH;

use crate::web::error::{ApiError, ApiResult};

/// The field of a body with the version.
const FIELD: &str = "expected_version";

/// Returns the version in the request. A version in the header is in quotes (`"3"`), as an entity
/// tag of RFC 9110 is.
///
/// # Errors
/// Returns 400 `missing_field` if it is missing; 400 `invalid_value` if the header is not one
/// version in quotes (`*` would overwrite any text), or differs from the body.
pub fn expected_version(request: &HttpRequest, in_body: Option<i64>) -> ApiResult<i64> {
    let in_header = match request.headers().get(IF_MATCH) {
        Some(value) => Some(value.to_str().ok().and_then(parse).ok_or_else(malformed)?),
        None => None,
    };
    match (in_body, in_header) {
        (Some(body), Some(header)) if body != header => Err(contradiction()),
        (Some(version), _) | (None, Some(version)) => Ok(version),
        (None, None) => Err(missing()),
    }
}

fn parse(value: &str) -> Option<i64> {
    let inner = value.trim().strip_prefix('"')?.strip_suffix('"')?;
    let is_number = !inner.is_empty() && inner.bytes().all(|it| it.is_ascii_digit());
    inner.parse().ok().filter(|_| is_number)
}

fn missing() -> ApiError {
    let message = "Send the version of the document that this change is based on.";
    ApiError::new(400, "missing_field", message).with_param(FIELD)
}

fn malformed() -> ApiError {
    let message = "If-Match must be one version in quotes, such as \"3\".";
    ApiError::new(400, "invalid_value", message).with_param("If-Match")
}

fn contradiction() -> ApiError {
    let message = "If-Match and the body have different versions.";
    ApiError::new(400, "invalid_value", message).with_param(FIELD)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::expected_version;

    fn version_of(header: Option<&str>, body: Option<i64>) -> Result<i64, &'static str> {
        let request = match header {
            Some(value) => TestRequest::get().insert_header(("if-match", value)),
            None => TestRequest::get(),
        };
        expected_version(&request.to_http_request(), body).map_err(|it| it.code)
    }

    #[test]
    fn the_version_is_named_in_the_body_or_in_the_header() {
        assert_eq!(version_of(None, Some(3)), Ok(3));
        assert_eq!(version_of(Some("\"3\""), None), Ok(3));
        assert_eq!(version_of(Some("\"3\""), Some(3)), Ok(3));
        assert_eq!(version_of(None, None), Err("missing_field"));
    }

    #[test]
    fn a_header_that_is_not_one_version_is_rejected() {
        for value in [
            "*",
            "3",
            "\"\"",
            "\"+3\"",
            "W/\"3\"",
            "\"3\", \"4\"",
            "\"99999999999999999999\"",
        ] {
            assert_eq!(
                version_of(Some(value), None),
                Err("invalid_value"),
                "{value}"
            );
        }
    }

    #[test]
    fn two_different_versions_are_rejected() {
        assert_eq!(version_of(Some("\"4\""), Some(3)), Err("invalid_value"));
    }
}
