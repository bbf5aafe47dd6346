//! Builds the API document (OpenAPI) from the descriptions of all endpoints, and adds what they
//! share: tags, authentication, path parameters, responses and schemas.
//!
//! **Invariant:** this file lists no endpoint and no schema. Endpoints bring their operations and
//! the schemas they use.

use serde_json::{Map, Value, json};

use crate::web::openapi::endpoint::{ApiEndpoint, NamedSchema, plain_path};
use crate::web::openapi::{common_responses, schemas};

/// The introduction of the document.
const DESCRIPTION: &str = "\
A conversation server for people and AI characters.

**Authentication.** A browser signs in and gets the cookie `troupe_session`; a program sends \
`Authorization: Bearer trp_…` with a key from `POST /api/api_keys`. Operations that are not marked \
as open require one of the two. A request that uses the cookie and changes data must come from this \
server's own pages.

**Errors** all have the same form: a `code` for programs, a `message` for people. \
Broken JSON, an unknown field, a missing one and a wrong type are 400; a value outside its range is \
422, and so is a string with U+0000; an id that is not a number is 404. Every response has an \
`x-request-id`.

**Lists** return `{data, has_more}` and accept `limit`, `after` and `before`.

**Times** are UTC with milliseconds. Absent values in responses are `null`; fields may be added.";

/// Returns the document of these endpoints. `tag_descriptions` describes each of their tags in a
/// sentence; `extra_schemas` are schemas that no operation names.
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
                    "description": "A signed-in browser.",
                },
                "api_key": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "trp_…",
                    "description": "A program with an API key of its owner.",
                },
            },
        },
    });
    schemas::add_schemas(&mut document, named);
    document
}

fn operation(endpoint: &ApiEndpoint) -> Value {
    // Serializing plain data with string keys cannot fail.
    let mut operation = json!(endpoint.operation());
    let tag = operation["tags"][0].as_str().unwrap_or_default();
    let verb = operation["operationId"].as_str().unwrap_or_default();
    operation["operationId"] = json!(format!("{tag}_{verb}"));
    // Path parameters and tags are the last fields.
    if let Some(fields) = operation.as_object_mut()
        && let Some(tags) = fields.shift_remove("tags")
    {
        fields.insert("tags".to_owned(), tags);
    }
    make_body_optional(&mut operation);
    declare_path_parameters(&mut operation, endpoint.path());
    common_responses::add_common_responses(&mut operation, endpoint);
    operation
}

/// A body of `Option<T>` may be omitted; if sent, it is a `T`, never `null`.
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

/// Declares the path parameters that the handler does not declare itself.
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

/// An optional parameter may be omitted, but is never null; it has the bounds of all client input.
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

/// Returns the schema of an id by its name. The handler describes other parameters itself.
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
