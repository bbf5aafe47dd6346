//! Extractor of a JSON request body, which is read and parsed only when the handler calls
//! [`JsonBody::read`], so that authorization runs before validation.

use std::future::{Ready, ready};
use std::marker::PhantomData;

use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use actix_web::{FromRequest, HttpRequest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::deserialize::{FieldError, FieldErrorKind};
use crate::web::extract::request_body::BodyError;
use crate::web::extract::{deserialize, request_body};

/// The maximum size of a JSON body, in bytes.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// A JSON body that has not been read yet.
pub struct JsonBody<T> {
    payload: Payload,
    content_type: Option<String>,
    content_encoding: Option<String>,
    content_length: Option<String>,
    shape: PhantomData<T>,
}

impl<T> FromRequest for JsonBody<T> {
    type Error = ApiError;
    type Future = Ready<ApiResult<Self>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let header = |name| {
            let value = request.headers().get(name)?;
            Some(value.to_str().unwrap_or_default().to_owned())
        };
        ready(Ok(Self {
            payload: payload.take(),
            content_type: header(CONTENT_TYPE),
            content_encoding: header(CONTENT_ENCODING),
            content_length: header(CONTENT_LENGTH),
            shape: PhantomData,
        }))
    }
}

impl<T: DeserializeOwned> JsonBody<T> {
    /// Reads the body.
    ///
    /// # Errors
    /// Returns 415 if it is not JSON, 413 if it is too large, 408 if it is too slow, 400 if it is
    /// malformed, 422 if a value is invalid.
    pub async fn read(mut self) -> ApiResult<T> {
        self.require_json()?;
        let bytes = self.bytes().await?;
        parse(&bytes)
    }

    fn require_json(&self) -> ApiResult<()> {
        let content_type = self.content_type.as_deref().unwrap_or_default();
        let encoding = self.content_encoding.as_deref().unwrap_or("identity");
        // A compressed body could be much larger when unpacked: nothing is unpacked here.
        match is_json(content_type) && encoding.eq_ignore_ascii_case("identity") {
            true => Ok(()),
            false => Err(ApiError::new(
                415,
                "unsupported_media_type",
                "The body must be uncompressed JSON in UTF-8, with `Content-Type: application/json`.",
            )),
        }
    }

    async fn bytes(&mut self) -> ApiResult<Vec<u8>> {
        let content_length = self.content_length.as_deref();
        request_body::read(
            &mut self.payload,
            content_length,
            MAX_BODY_BYTES,
            |_| Ok(()),
        )
        .await
    }
}

impl<T: DeserializeOwned + Default> JsonBody<T> {
    /// Reads the body; returns the default without one.
    ///
    /// # Errors
    /// As [`JsonBody::read`].
    pub async fn read_or_default(mut self) -> ApiResult<T> {
        let is_empty = match self.content_type {
            Some(_) => self.content_length.as_deref() == Some("0"),
            None => true,
        };
        if !is_empty {
            return self.read().await;
        }
        match self.bytes().await?.is_empty() {
            true => Ok(T::default()),
            false => self.require_json().and(Ok(T::default())),
        }
    }
}

/// Returns whether a content type is JSON in UTF-8.
fn is_json(content_type: &str) -> bool {
    let parts = content_type.split(';').skip(1).map(str::trim);
    let mut parameters = parts.filter_map(|it| it.split_once('='));
    request_body::is_media_type(content_type, "application/json")
        && parameters.all(|(name, value)| {
            let is_utf8 = value.trim_matches('"').eq_ignore_ascii_case("utf-8");
            is_utf8 || !name.eq_ignore_ascii_case("charset")
        })
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => {
                let most = MAX_BODY_BYTES / 1024;
                let message = format!("The body is larger than {most} KiB.");
                Self::new(413, "too_large", message)
            }
            BodyError::TimedOut => request_body::timeout_error(),
            BodyError::Incomplete => Self::new(400, "invalid_json", "The body is incomplete."),
        }
    }
}

/// Parses a request type from the text of a body.
///
/// # Errors
/// Returns 400 if the body is malformed, 422 if a value is invalid.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| syntax_error(bytes, &error))?;
    reject_nul(&value)?;
    deserialize::from_value(value).map_err(ApiError::from)
}

fn syntax_error(bytes: &[u8], error: &serde_json::Error) -> ApiError {
    // JSON can contain half of a surrogate pair, which is no valid string; the parser reports bad
    // syntax.
    if error.is_syntax() && ends_in_lone_surrogate(bytes, error) {
        return ApiError::new(
            422,
            "invalid_value",
            "A string contains half of a surrogate pair.",
        );
    }
    ApiError::new(400, "invalid_json", syntax_message(error))
}

/// Returns the message for a body that is not JSON.
pub fn syntax_message(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    format!("The body is not valid JSON (line {line}, column {column}).")
}

/// Returns whether the parser failed directly after the escape of a surrogate.
fn ends_in_lone_surrogate(bytes: &[u8], error: &serde_json::Error) -> bool {
    let before_line: usize = bytes
        .split_inclusive(|it| *it == b'\n')
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    let at = (before_line + error.column()).min(bytes.len());
    // The longest it reads beyond the first escape is a second one: \ud800\u0041.
    let seen = &bytes[at.saturating_sub(13)..at];
    seen.windows(4).any(|it| {
        let [slash, u, d, digit] = [it[0], it[1], it[2], it[3]].map(|it| it.to_ascii_lowercase());
        [slash, u, d] == *b"\\ud" && matches!(digit, b'8' | b'9' | b'a'..=b'f')
    })
}

/// Rejects U+0000 in a string: PostgreSQL refuses it, and so do many other programs.
///
/// # Errors
/// Returns 422 with the path of the string.
pub fn reject_nul(value: &Value) -> ApiResult<()> {
    let clean = |text: &str| match text.contains('\0') {
        true => Err(ApiError::new(
            422,
            "invalid_value",
            "A string contains the character U+0000.",
        )),
        false => Ok(()),
    };
    match value {
        Value::String(text) => clean(text),
        Value::Array(items) => items.iter().try_for_each(reject_nul),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            clean(key)
                .and_then(|()| reject_nul(value))
                .map_err(|error: ApiError| error.within(key))
        }),
        _ => Ok(()),
    }
}

impl From<FieldError> for ApiError {
    fn from(error: FieldError) -> Self {
        let (status, code) = match error.kind {
            FieldErrorKind::UnknownField => (400, "unknown_field"),
            FieldErrorKind::MissingField => (400, "missing_field"),
            FieldErrorKind::Type => (400, "invalid_type"),
            FieldErrorKind::Value => (422, "invalid_value"),
        };
        let param = error.param();
        let api_error = Self::new(status, code, error.message);
        match param {
            Some(param) => api_error.with_param(param),
            None => api_error,
        }
    }
}

/// For fields where `null` (remove) differs from absent (leave unchanged): `Option<Option<T>>` with
/// `#[serde(default, deserialize_with = "json_body::nullable")]`.
///
/// # Errors
/// As the inner type.
pub fn nullable<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}

/// For fields that may be omitted, but not be null.
///
/// # Errors
/// As the inner type.
pub fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::parse;

    #[derive(Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Note {
        #[allow(dead_code)] // only its type matters here
        text: String,
    }

    fn error_of(body: &str) -> (u16, &'static str, Option<String>) {
        let error = parse::<Note>(body.as_bytes()).unwrap_err();
        (error.status.as_u16(), error.code, error.param)
    }

    #[test]
    fn form_is_400_and_content_is_422() {
        let text = Some("text".to_owned());
        assert_eq!(error_of("{"), (400, "invalid_json", None));
        assert_eq!(error_of(""), (400, "invalid_json", None));
        assert_eq!(error_of("{\"text\":\"a\"} x"), (400, "invalid_json", None));
        assert_eq!(error_of("{\"text\":\"\\x\"}"), (400, "invalid_json", None));
        assert_eq!(error_of("{}"), (400, "missing_field", text.clone()));
        assert_eq!(
            error_of("{\"text\":\"\",\"role\":1}"),
            (400, "unknown_field", Some("role".into()))
        );
        assert_eq!(
            error_of("{\"text\":1}"),
            (400, "invalid_type", text.clone())
        );
        assert_eq!(
            error_of("{\"text\":\"a\\u0000\"}"),
            (422, "invalid_value", text)
        );
    }

    #[test]
    fn half_of_a_surrogate_pair_is_rejected() {
        for lone in [
            "\\ud800",
            "\\uDC00",
            "x\\ud83d y",
            "\\ud800\\u0041",
            "\\ud800\\n",
        ] {
            let body = format!("{{\n\"text\":\"{lone}\"}}");
            assert_eq!(error_of(&body).1, "invalid_value", "{lone}");
        }
        assert!(parse::<Note>(b"{\"text\":\"\\ud83d\\ude00\"}").is_ok());
    }

    #[test]
    fn too_deep_nesting_is_an_error_and_not_a_crash() {
        let deep = format!("{{\"text\":{}", "[".repeat(100_000));

        assert_eq!(error_of(&deep), (400, "invalid_json", None));
    }
}
