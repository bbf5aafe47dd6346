//! Middleware that sets the headers of every answer under `/v1`, of errors too: the permission for
//! pages of other sites, the client's own request id, what is left of the rate limit, and the time
//! that the answer took.

use std::time::Instant;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, ORIGIN, VARY};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage};
use tracing::Instrument;

use crate::accounts::credential::Credential;
use crate::app::App;
use crate::cors_origins::CorsOrigins;
use crate::rate_limit::sliding_window::RemainingEvents;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::error::V1Error;
use crate::web::v1::headers::space_tokens::SpaceTokens;
use crate::web::v1::headers::{cors, space_tokens};

const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-client-request-id");
const PROCESSING_MS: HeaderName = HeaderName::from_static("openai-processing-ms");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit-requests");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining-requests");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset-requests");

/// The longest id of a client that is repeated, as the API of OpenAI allows.
const MAX_CLIENT_ID_BYTES: usize = 512;

/// Sets the headers of every answer.
///
/// # Errors
/// Returns only errors that the inner services did not turn into a response.
pub async fn apply(
    app: Data<App>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let began = Instant::now();
    let origins = &app.config.cors_origins;
    let origin = cors::allowed_origin(request.headers(), origins);
    let client_id = client_request_id(request.headers());
    let span = match &client_id {
        Some(id) => {
            let id = id.to_str().unwrap_or_default();
            tracing::info_span!("client_request", client_request.id = id)
        }
        None => tracing::Span::none(),
    };
    let mut answer = next
        .call(request)
        .instrument(span)
        .await?
        .map_into_boxed_body();
    log_refusal(&answer);
    let caller = answer.request().extensions().get::<ApiKeyCaller>().cloned();
    let tokens = answer.request().extensions().get::<SpaceTokens>().copied();
    let is_whole = is_whole(&answer);
    let headers = answer.headers_mut();
    if let Some(origin) = origin {
        cors::apply(headers, origin);
    }
    if matches!(origins, CorsOrigins::Listed(_)) {
        headers.append(VARY, HeaderValue::from_name(ORIGIN));
    }
    if let Some(id) = client_id {
        headers.insert(CLIENT_REQUEST_ID, id);
    }
    if let Some(ApiKeyCaller(caller)) = caller
        && let Credential::ApiKey(key) = caller.credential
        && let Some(remaining) = app.limits.responses.remaining(&key)
    {
        set_limit(headers, remaining);
    }
    if let Some(tokens) = tokens {
        space_tokens::set(headers, tokens);
    }
    if is_whole {
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        headers.insert(PROCESSING_MS, ms.into());
    }
    Ok(answer)
}

/// Logs an error without its message, which may contain a value of the client.
fn log_refusal(answer: &ServiceResponse) {
    let error = answer.response().error();
    let Some(error) = error.and_then(|it| it.as_error::<V1Error>()) else {
        return;
    };
    let (status, code) = (error.status, error.code);
    match status {
        500.. => tracing::error!(status, code, "request under /v1 failed: {status} {code}"),
        _ => tracing::debug!(status, code, "request under /v1 refused: {status} {code}"),
    }
}

/// Returns whether this is neither a stream nor a socket.
fn is_whole(answer: &ServiceResponse) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE);
    let is_stream = kind.is_some_and(|it| it.as_bytes().starts_with(b"text/event-stream"));
    !is_stream && answer.status() != StatusCode::SWITCHING_PROTOCOLS
}

/// Returns the client's own id of its request, if it can be repeated.
fn client_request_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let id = headers.get(CLIENT_REQUEST_ID)?;
    let is_plain = |it: &u8| (b' '..=b'~').contains(it);
    let fits = (1..=MAX_CLIENT_ID_BYTES).contains(&id.len()) && id.as_bytes().iter().all(is_plain);
    fits.then(|| id.clone())
}

fn set_limit(headers: &mut HeaderMap, remaining: RemainingEvents) {
    headers.insert(LIMIT, remaining.max.into());
    headers.insert(REMAINING, remaining.n_left.into());
    if let Ok(reset) = HeaderValue::from_str(&duration(remaining.full_after)) {
        headers.insert(RESET, reset);
    }
}

/// Returns a duration as SDKs expect it: `1s`, `6m0s`.
fn duration(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_have_minutes_and_seconds() {
        assert_eq!([0, 1, 60, 365].map(duration), ["0s", "1s", "1m0s", "6m5s"]);
    }
}
