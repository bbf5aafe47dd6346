//! Lists the error responses of the endpoints under `/v1`, which have other codes than those under
//! `/api`, and which of them each operation may return.

use actix_web::http::Method;
use serde_json::Value;

use crate::web::openapi::endpoint::ApiEndpoint;

/// The beginning of the paths of the endpoints.
pub const PREFIX: &str = "/v1/";

/// Every error status, its name in the document, and its description if an endpoint gives none.
pub const ERRORS: [(u16, &str, &str); 14] = [
    (
        400,
        "V1BadRequest",
        "The request is invalid: `invalid_json`, `missing_required_parameter`, `unknown_parameter`, `unsupported_parameter`, `invalid_type`, `invalid_value`. `param` names the parameter.",
    ),
    (
        401,
        "V1NotAuthenticated",
        "`invalid_api_key`: send `Authorization: Bearer trp_…`.",
    ),
    (
        403,
        "V1Forbidden",
        "`space_archived`, `token_limit_exceeded`: the space of the model cannot be used.",
    ),
    (
        404,
        "V1NotFound",
        "`not_found`: does not exist, or the caller may not see it.",
    ),
    (
        405,
        "V1MethodNotAllowed",
        "`method_not_allowed`: `Allow` lists the methods of this path.",
    ),
    (
        408,
        "V1RequestTimeout",
        "`request_timeout`: the body arrived too slowly.",
    ),
    (
        409,
        "V1Conflict",
        "`idempotency_key_in_use`: the first request with this `Idempotency-Key` is still in progress.",
    ),
    (
        413,
        "V1TooLarge",
        "`too_large`: the body is larger than 32 MiB, or unpacks to more than 100 times its size.",
    ),
    (
        415,
        "V1UnsupportedMediaType",
        "`unsupported_media_type`: the body must be JSON, and may be compressed with gzip or deflate.",
    ),
    (
        421,
        "V1Misdirected",
        "`misdirected_request`: the server does not accept the name in `Host`.",
    ),
    (
        429,
        "V1TooManyRequests",
        "`rate_limited`: too many requests with this key, or too many of this user at the same time.",
    ),
    (
        500,
        "V1InternalError",
        "`internal`: internal server error. It has been logged under the `x-request-id`.",
    ),
    (
        502,
        "V1BadGateway",
        "`upstream_error`: the API of the model failed.",
    ),
    (
        503,
        "V1Unavailable",
        "`overloaded`: the server is busy or shutting down; try again in a moment.",
    ),
];

/// Returns whether an endpoint is under `/v1`.
pub fn is_v1(endpoint: &ApiEndpoint) -> bool {
    endpoint.path().starts_with(PREFIX)
}

/// Returns the error statuses that an operation may return because of its method, its path, its parameters
/// and its body.
pub fn common_statuses(operation: &Value, endpoint: &ApiEndpoint) -> Vec<u16> {
    let mut statuses = vec![405, 421];
    if operation["security"].as_array().is_some_and(Vec::is_empty) {
        return statuses;
    }
    statuses.extend([401, 500, 503]);
    let has_body = operation.get("requestBody").is_some();
    if has_body {
        statuses.extend([400, 408, 413, 415, 429]);
    }
    if operation["parameters"].is_array() && *endpoint.method() == Method::GET {
        statuses.push(400);
    }
    if endpoint.path().contains('{') {
        statuses.push(404);
    }
    statuses
}
