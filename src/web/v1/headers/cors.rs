//! Lets pages of other sites call `/v1` from a browser (CORS), and answers the preflight request that a
//! browser sends before such a call. `/v1` reads no cookies, so a page can do only what the API key that it
//! sends permits.

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, header};

use crate::cors_origins::CorsOrigins;

/// The headers of an answer that a page may read.
const EXPOSED: &str = "x-request-id, x-client-request-id, retry-after, \
     x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, \
     x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, openai-processing-ms, troupe-ignored";

/// How long a browser may keep the permission to call, in seconds: the value of most servers of this API.
const MAX_AGE: &str = "600";

/// The header that distinguishes a preflight request from other OPTIONS requests.
const REQUEST_METHOD: HeaderName = header::ACCESS_CONTROL_REQUEST_METHOD;

/// Returns whether this is the preflight request for a page that may call. Such a request has no API key.
pub fn is_preflight(method: &Method, headers: &HeaderMap, origins: &CorsOrigins) -> bool {
    *method == Method::OPTIONS
        && headers.contains_key(REQUEST_METHOD)
        && allowed_origin(headers, origins).is_some()
}

/// Returns the answer that permits the methods of a path and the requested headers.
pub fn permission(allowed_methods: &str, headers: &HeaderMap) -> HttpResponse {
    let mut answer = HttpResponse::NoContent();
    answer.insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, allowed_methods));
    answer.insert_header((header::ACCESS_CONTROL_MAX_AGE, MAX_AGE));
    if let Some(requested) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        answer.insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, requested.clone()));
    }
    answer.finish()
}

/// Returns the header value that permits the origin of a request to read the answer; `None` if the origin is
/// not allowed, or if there is none.
pub fn allowed_origin(headers: &HeaderMap, origins: &CorsOrigins) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    match origins {
        CorsOrigins::Any => Some(HeaderValue::from_static("*")),
        listed => listed.allows(origin.to_str().ok()?).then(|| origin.clone()),
    }
}

/// Returns whether a page of the origin of this request may open a socket. Clients other than browsers send
/// no origin.
pub fn may_open_socket(headers: &HeaderMap, origins: &CorsOrigins) -> bool {
    !headers.contains_key(header::ORIGIN) || allowed_origin(headers, origins).is_some()
}

/// Permits the page with this origin to read the answer.
pub fn apply(answer: &mut HeaderMap, origin: HeaderValue) {
    answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let exposed = HeaderValue::from_static(EXPOSED);
    answer.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}
