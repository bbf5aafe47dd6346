//! Describes the error responses that many endpoints share in the API document, and adds to each
//! operation those that it may return.

use serde_json::{Map, Value, json};

use crate::web::extract::csrf;
use crate::web::middleware::allowed_hosts;
use crate::web::openapi::endpoint::ApiEndpoint;
use crate::web::openapi::v1_errors;

/// An error status, its name in the document, and its description if an endpoint gives none.
type CommonError = (u16, &'static str, &'static str);

/// The errors of all endpoints except those under `/v1`.
const ERRORS: [CommonError; 17] = [
    (
        400,
        "BadRequest",
        "The request is malformed: `invalid_json`, `unknown_field`, `missing_field`, `invalid_type`; in a query `invalid_value`.",
    ),
    (
        401,
        "NotAuthenticated",
        "`not_authenticated`: sign in first.",
    ),
    (
        403,
        "Forbidden",
        "The caller may not do this: `forbidden`, `space_archived`; `cross_origin` if another site's page sent the request with a cookie.",
    ),
    (
        404,
        "NotFound",
        "`not_found`: does not exist, or the caller may not see it.",
    ),
    (
        405,
        "MethodNotAllowed",
        "`method_not_allowed`: `Allow` lists the methods of this path.",
    ),
    (
        408,
        "RequestTimeout",
        "`request_timeout`: the body arrived too slowly. The connection closes.",
    ),
    (409, "Conflict", "The current state does not allow this."),
    (410, "Gone", "It existed and was removed."),
    (
        413,
        "TooLarge",
        "`too_large`: the body is larger than 1 MiB.",
    ),
    (
        415,
        "UnsupportedMediaType",
        "`unsupported_media_type`: the body must be JSON.",
    ),
    (
        421,
        "Misdirected",
        "`misdirected_request`: the server does not accept the name in `Host`.",
    ),
    (
        422,
        "Unprocessable",
        "`invalid_value`: a value is out of range.",
    ),
    (
        423,
        "Locked",
        "`generation_locked`: a reply is being written.",
    ),
    (429, "TooManyRequests", "`rate_limited`: too many requests."),
    (
        500,
        "InternalError",
        "`internal`: internal server error. It has been logged under the `request_id`.",
    ),
    (
        502,
        "BadGateway",
        "`upstream_error`: the model's endpoint failed.",
    ),
    (
        503,
        "Unavailable",
        "`internal`: the server is busy or shutting down; try again in a moment.",
    ),
];

/// Returns the responses that operations refer to by name.
pub fn shared() -> Value {
    let all = ERRORS.iter().chain(&v1_errors::ERRORS);
    let each = all.map(|(status, name, about)| {
        let answer = error_response(*status, about);
        ((*name).to_owned(), answer)
    });
    Value::Object(each.collect())
}

/// Adds the responses that all operations of this kind have.
pub fn add_common_responses(operation: &mut Value, endpoint: &ApiEndpoint) {
    let mut answers: Map<String, Value> = Map::new();
    let (errors, statuses): (&[CommonError], _) = match v1_errors::is_v1(endpoint) {
        true => (
            &v1_errors::ERRORS,
            v1_errors::common_statuses(operation, endpoint),
        ),
        false => (&ERRORS, common_statuses(operation, endpoint)),
    };
    for status in statuses {
        answers.insert(status.to_string(), Value::Null);
    }
    let declared = operation["responses"].as_object().cloned();
    answers.extend(declared.unwrap_or_default());
    answers.sort_keys();
    for (status, answer) in &mut answers {
        let status = status.parse().unwrap_or_default();
        *answer = documented(errors, status, answer.take());
    }
    operation["responses"] = Value::Object(answers);
}

/// Returns the errors that every operation of this kind may return.
fn common_statuses(operation: &Value, endpoint: &ApiEndpoint) -> Vec<u16> {
    let is_secured = operation.get("security").is_none();
    let is_below_api = endpoint.path().starts_with("/api/");
    let parameters = operation["parameters"].as_array();
    let has_query = parameters.is_some_and(|all| all.iter().any(|it| it["in"] == "query"));
    let mut statuses = Vec::new();
    if !allowed_hosts::ANY_HOST.contains(&endpoint.path()) {
        statuses.push(421);
    }
    if operation.get("requestBody").is_some() {
        statuses.extend([400, 408, 413, 415, 422]);
    }
    if has_query {
        statuses.push(400);
    }
    if is_secured {
        statuses.push(401);
    }
    if is_below_api && !csrf::is_safe_method(endpoint.method()) {
        statuses.push(403);
    }
    if endpoint.path().contains('{') {
        statuses.extend([404, 405]);
    }
    if is_secured || is_below_api {
        statuses.extend([500, 503]);
    }
    statuses
}

/// Returns a response as documented: for shared errors, only what the endpoint adds to them.
fn documented(errors: &[CommonError], status: u16, mut answer: Value) -> Value {
    let description = answer["description"].as_str().unwrap_or_default();
    let about = description.trim().to_owned();
    if status < 400 {
        if about.is_empty() {
            answer["description"] = json!(success_description(status));
        }
        return answer;
    }
    // An operation whose error has additional fields describes its own body.
    let own_body = answer["content"].take();
    match errors.iter().find(|(known, _, _)| *known == status) {
        _ if own_body.is_object() => {
            let mut answer = error_response(status, &about);
            answer["content"] = own_body;
            answer
        }
        Some((_, name, _)) if about.is_empty() => {
            json!({"$ref": format!("#/components/responses/{name}")})
        }
        _ => error_response(status, &about),
    }
}

fn error_response(status: u16, about: &str) -> Value {
    let mut answer = json!({
        "description": about,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    });
    let seconds = json!({"type": "integer", "minimum": 0});
    match status {
        405 => {
            answer["headers"] = json!({"allow": {"required": true, "schema": {"type": "string"}}});
        }
        429 | 503 => {
            answer["headers"] = json!({"retry-after": {
                "description": "Seconds to wait.",
                "required": status == 429,
                "schema": seconds,
            }});
        }
        _ => {}
    }
    answer
}

fn success_description(status: u16) -> &'static str {
    match status {
        201 => "Made.",
        202 => "Accepted; processing continues in the background.",
        204 => "Done.",
        _ => "Success.",
    }
}
