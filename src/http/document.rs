//! The API document: what stands above every handler, put together with what is true of all.
//!
//! **Invariant:** nothing is listed here. Doors bring their operations and the schemas these name.

use serde_json::{Map, Value, json};

use crate::http::endpoint::{ApiEndpoint, NamedSchema, plain_path};
use crate::http::{common_responses, schemas};

/// What every reader of the document must know.
const DESCRIPTION: &str = "\
A conversation server in which people and AI characters share a room.

**Who calls.** A browser signs in and has the cookie `troupe_session`; a program sends \
`Authorization: Bearer trp_…` with a key from `POST /api/api_keys`. Whatever is not marked as open \
takes one of the two. A request that rides on a cookie and changes something must come from this \
server's own pages.

**Errors** have one shape, whatever goes wrong: a `code` for programs, a `message` for a person. \
Broken JSON, an unknown field, a missing one and a wrong type are 400; a value outside its range is \
422, and so is a text with U+0000; an id that is no number is 404. Every answer has an \
`x-request-id`.

**Lists** answer `{data, has_more}` and take `limit`, `after` and `before`.

**Times** are UTC with milliseconds. What is absent in an answer is `null`; fields may be added.";

/// The document of these doors. `rooms` says in a sentence what each of their tags is; `more` are
/// schemas that no operation names.
pub fn document(
    endpoints: &[ApiEndpoint],
    tag_descriptions: &[(&str, &str)],
    extra_schemas: Vec<NamedSchema>,
) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let mut named = extra_schemas;
    for endpoint in endpoints {
        let method = endpoint.method().as_str().to_lowercase();
        let path_item = paths
            .entry(plain_path(endpoint.path()))
            .or_insert(json!({}));
        path_item[method] = operation(endpoint);
        named.extend(endpoint.schemas());
    }
    let tags: Vec<Value> = tag_descriptions
        .iter()
        .map(|(name, about)| json!({"name": name, "description": about}))
        .collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Troupe",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")},
        },
        "servers": [{"url": "/", "description": "This server."}],
        "tags": tags,
        "security": [{"session": []}, {"api_key": []}],
        "paths": paths,
        "components": {
            "schemas": {},
            "responses": common_responses::shared(),
            "securitySchemes": {
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "troupe_session",
                    "description": "A browser that has signed in.",
                },
                "api_key": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "trp_…",
                    "description": "A program with a key of its owner.",
                },
            },
        },
    });
    schemas::add_schemas(&mut document, named);
    document
}

fn operation(endpoint: &ApiEndpoint) -> Value {
    // Plain data with text as keys.
    let mut operation = json!(endpoint.operation());
    let tag = endpoint.tags().first().copied().unwrap_or_default();
    let verb = operation["operationId"].as_str().unwrap_or_default();
    operation["operationId"] = json!(format!("{tag}_{verb}"));
    operation["tags"] = json!(endpoint.tags());
    make_body_optional(&mut operation);
    declare_path_parameters(&mut operation, endpoint.path());
    common_responses::add_common_responses(&mut operation, endpoint);
    operation
}

/// A body of `Option<T>` may be left out; what is sent is a `T`, never `null`.
fn make_body_optional(operation: &mut Value) {
    let Some(body) = operation.get_mut("requestBody") else {
        return;
    };
    let Some(schema) = body.pointer_mut("/content/application~1json/schema") else {
        return;
    };
    let choices = schema["oneOf"].as_array().cloned().unwrap_or_default();
    if let Some(shape) = choices.iter().find(|it| it["type"] != "null") {
        *schema = shape.clone();
        body["required"] = json!(false);
    }
}

/// Declares what stands in braces in the path, as far as the handler does not say it itself.
fn declare_path_parameters(operation: &mut Value, path: &str) {
    let mut parameters: Vec<Value> = Vec::new();
    let declared = operation["parameters"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for part in path.split('/').filter(|it| it.starts_with('{')) {
        let name = part.trim_matches(['{', '}']).split(':').next();
        let name = name.unwrap_or_default();
        if declared.iter().any(|it| it["name"] == name) {
            continue;
        }
        if let Some(schema) = id_schema(name) {
            parameters
                .push(json!({"name": name, "in": "path", "required": true, "schema": schema}));
        }
    }
    parameters.extend(declared.into_iter().map(normalize_parameter));
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
}

/// A parameter that may be left out is left out, never null; and it has the bounds of all that
/// people send.
fn normalize_parameter(mut parameter: Value) -> Value {
    let words = parameter["schema"]["type"].as_array().cloned();
    if let Some(word) = words.and_then(|all| all.into_iter().find(|it| it != "null")) {
        parameter["schema"]["type"] = word;
    }
    if let Some(schema) = parameter["schema"].as_object_mut() {
        schemas::with_bounds(schema);
    }
    parameter
}

/// The shape of an id by its name. Other names the handler explains itself.
fn id_schema(name: &str) -> Option<Value> {
    match name {
        "run_id" | "round_id" => Some(json!({"type": "string", "format": "uuid"})),
        _ if name.ends_with("_id") => {
            Some(json!({"type": "integer", "format": "int64", "minimum": 1, "maximum": i64::MAX}))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::plain_path;

    #[test]
    fn documented_paths_have_no_patterns() {
        assert_eq!(plain_path("/api/a/{b_id}/c"), "/api/a/{b_id}/c");
        assert_eq!(plain_path(r"/api/a/{b_id:\d+}"), "/api/a/{b_id}");
    }
}
