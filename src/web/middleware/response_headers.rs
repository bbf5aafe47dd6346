//! Middleware that gives each request an id, sets security and cache headers, and gives errors
//! without a JSON body the uniform error body.

use std::sync::Arc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, header};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpResponse, ResponseError};
use tracing::Instrument;
use uuid::Uuid;

use crate::web::error::{ApiError, ErrorBody};

/// Scripts, styles and sockets only from this server; images may also be created in the page. The
/// one script in the pages, which sets the theme, is named by its hash.
const CONTENT_SECURITY_POLICY: &str = concat!(
    "default-src 'none'; script-src 'self'",
    env!("CLIENT_INLINE_SCRIPTS"),
    "; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; \
     manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
     object-src 'none'"
);

const SECURITY_HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    // Otherwise browsers resolve the host names of links before the user follows them.
    (HeaderName::from_static("x-dns-prefetch-control"), "off"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// The id of a request, which its answer states in `x-request-id`.
#[derive(Clone, Debug)]
pub struct RequestId(pub Arc<str>);

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Sets the request id and the headers of every response, and the uniform body of errors.
///
/// # Errors
/// Returns only errors that the inner services did not turn into a response.
pub async fn apply(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let id = Uuid::now_v7().simple().to_string();
    let span = tracing::info_span!("request", request.id = %id);
    let is_private = is_private(request.method(), request.path());
    request
        .extensions_mut()
        .insert(RequestId(Arc::from(id.as_str())));
    let answer = next.call(request).instrument(span).await?;
    let mut answer = normalize_error(answer.map_into_boxed_body(), &id);
    set_headers(answer.headers_mut(), &id);
    let headers = answer.headers_mut();
    // Images set their own cache lifetime.
    if is_private && !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    Ok(answer)
}

/// Returns whether the response is private to its caller, so that no cache may keep it.
fn is_private(method: &Method, path: &str) -> bool {
    let first = path.split('/').nth(1).unwrap_or_default();
    let is_setup = *method == Method::GET && path == "/api/setup";
    matches!(first, "api" | "v1") && !is_setup
}

fn set_headers(headers: &mut HeaderMap, id: &str) {
    for (name, value) in SECURITY_HEADERS {
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    // Hexadecimal digits are always a valid value.
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, value);
    }
}

/// Gives errors of the framework our error body, and errors of the server their request id.
fn normalize_error(answer: ServiceResponse, id: &str) -> ServiceResponse {
    let status = answer.status();
    let api_error = answer
        .response()
        .error()
        .and_then(|it| it.as_error::<ApiError>())
        .cloned();
    let error = match api_error {
        Some(error) if status.is_server_error() => error,
        Some(_) => return answer,
        None if !(status.is_client_error() || status.is_server_error()) || is_json(&answer) => {
            return answer;
        }
        None => default_error(status.as_u16()),
    };
    let (request, mut old) = answer.into_parts();
    let mut new = HttpResponse::build(error.status_code());
    if let Some(seconds) = error.retry_after {
        new.insert_header((header::RETRY_AFTER, seconds.to_string()));
    }
    let mut new = new.json(ErrorBody {
        error: error.body(Some(id)),
    });
    if let Some(allowed) = old.headers_mut().remove(header::ALLOW).next() {
        new.headers_mut().insert(header::ALLOW, allowed);
    }
    ServiceResponse::new(request, new)
}

fn is_json(answer: &ServiceResponse) -> bool {
    let content_type = answer.headers().get(header::CONTENT_TYPE);
    content_type.is_some_and(|it| it.as_bytes().starts_with(b"application/json"))
}

fn default_error(status: u16) -> ApiError {
    match status {
        404 => ApiError::not_found(),
        405 => ApiError::new(
            405,
            "method_not_allowed",
            "This path does not support this method.",
        ),
        413 => ApiError::new(413, "too_large", "The request is too large."),
        415 => ApiError::new(
            415,
            "unsupported_media_type",
            "This path does not accept this content type.",
        ),
        500.. => ApiError::new(
            status,
            "internal",
            "Internal server error. It has been logged.",
        ),
        _ => ApiError::new(status, "invalid_value", "The request is not valid."),
    }
}
