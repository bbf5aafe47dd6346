//! Reads the header `Idempotency-Key` of requests that store something, and finds the object that
//! the same request created before.

use actix_web::HttpRequest;
use actix_web::http::header::HeaderName;
use serde_json::{Map, Value};

use crate::app::App;
use crate::responses::store::idempotency_key;
use crate::responses::store::idempotency_key::{IdempotencyClaim, KeyState};
use crate::web::extract::authentication::CurrentUser;
use crate::web::v1::error::{V1Error, V1Result};

/// The name of the header, as clients send it.
pub const HEADER: &str = "Idempotency-Key";

const HEADER_NAME: HeaderName = HeaderName::from_static("idempotency-key");

/// The maximum length of a key, in bytes.
const MAX_KEY_BYTES: usize = 255;

/// The result of a search for earlier requests with the key of a request.
#[derive(Debug)]
pub enum IdempotencyCheck {
    /// The request creates something, with this key if it has one.
    New(Option<IdempotencyClaim>),
    /// The same request has already created the object with this id.
    Repeated(String),
}

/// Finds the object that the same request with the same key created within a day. `endpoint` is the method
/// and the path.
///
/// # Errors
/// Returns 400 for an invalid key, and 400 `idempotency_key_reused` if another request has used it.
pub async fn find(
    app: &App,
    caller: &CurrentUser,
    http: &HttpRequest,
    endpoint: &str,
    body: &Map<String, Value>,
) -> V1Result<IdempotencyCheck> {
    let Some(key) = http.headers().get(HEADER_NAME) else {
        return Ok(IdempotencyCheck::New(None));
    };
    let is_plain = |it: &u8| (b' '..=b'~').contains(it);
    let key = key.as_bytes();
    if !(1..=MAX_KEY_BYTES).contains(&key.len()) || !key.iter().all(is_plain) {
        let expected = "1 to 255 ASCII characters";
        return Err(V1Error::wrong_value(HEADER, expected));
    }
    let key = String::from_utf8_lossy(key);
    // An object with text keys can always be written.
    let body = serde_json::to_vec(body).unwrap_or_default();
    let claim = IdempotencyClaim::new(caller.id(), &key, endpoint, &body);
    match idempotency_key::find(app.db.reader(), &claim, app.clock.now()).await? {
        KeyState::Unused => Ok(IdempotencyCheck::New(Some(claim))),
        KeyState::Created(id) => Ok(IdempotencyCheck::Repeated(id)),
        KeyState::UsedByOtherRequest => {
            let message = "This `Idempotency-Key` was used for another request within 24 hours.";
            Err(V1Error::invalid("idempotency_key_reused", HEADER, message))
        }
    }
}

/// Adds the header to the names of ignored parameters, if a request that stores nothing has it: there is no
/// object to return again.
pub fn add_ignored(http: &HttpRequest, ignored: &mut Vec<String>) {
    if http.headers().contains_key(HEADER_NAME) {
        ignored.push(HEADER.to_owned());
    }
}
