//! Builds the API document (OpenAPI) from the descriptions of all endpoints, and adds what they
//! share: tags, authentication, path parameters, responses and schemas.
//!
//! **Invariant:** this file lists no endpoint and no schema. Endpoints bring their operations and
//! the schemas they use.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::web::openapi::endpoint::{ApiEndpoint, NamedSchema, plain_path};
use crate::web::openapi::{common_responses, schemas, v1_errors};

/// The introduction of the document.
const DESCRIPTION: &str = "\
A conversation server for people and AI characters.

`/v1` is the API for programs that use OpenAI's protocols; `/v1/openapi.json` describes it alone. \
The following is about the other endpoints.

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

/// The introduction of the document of `/v1` alone.
const V1_DESCRIPTION: &str = "\
The API for programs: responses, conversations, chat completions, embeddings, assistants, and threads.

**Authentication.** Send `Authorization: Bearer trp_…` with an API key. Cookies are not read.

**Errors** have the body `{error: {type, code, message, param}}`. Every response has an `x-request-id`.

**Lists** return `{object: \"list\", data, first_id, last_id, has_more}` and accept `limit`, `order` \
and `after`.

**Streams** are server-sent events: `data: ` and one JSON document each, the last one `[DONE]`.";

/// The title, the introduction and the authentication of a document.
pub struct DocumentInfo<'a> {
    pub title: &'a str,
    pub description: &'a str,
    /// How callers authenticate: names of `securitySchemes`.
    pub security: &'a [&'a str],
}

/// The document of all endpoints.
pub const ALL: DocumentInfo<'_> = DocumentInfo {
    title: "Troupe",
    description: DESCRIPTION,
    security: &["session", "api_key"],
};

/// The document of the endpoints under `/v1`.
pub const V1: DocumentInfo<'_> = DocumentInfo {
    title: "Troupe /v1",
    description: V1_DESCRIPTION,
    security: &["api_key"],
};

/// Returns the document of these endpoints. `tag_descriptions` describes each tag in a sentence; those
/// without an endpoint are left out; `extra_schemas` are schemas that no operation names.
pub fn document(
    info: &DocumentInfo<'_>,
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
    let used: BTreeSet<String> = endpoints
        .iter()
        .flat_map(|it| it.operation().tags.unwrap_or_default())
        .collect();
    let tags: Vec<Value> = tag_descriptions
        .iter()
        .filter(|(name, _)| used.contains(*name))
        .map(|(name, about)| json!({"name": name, "description": about}))
        .collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": info.title,
            "version": env!("CARGO_PKG_VERSION"),
            "description": info.description,
            "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")},
        },
        "servers": [{"url": "/", "description": "This server."}],
        "tags": tags,
        "security": info.security.iter().map(|it| json!({*it: []})).collect::<Vec<_>>(),
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
    let schemes = document["components"]["securitySchemes"].as_object_mut();
    if let Some(schemes) = schemes {
        schemes.retain(|name, _| info.security.contains(&name.as_str()));
    }
    keep_used_responses(&mut document);
    schemas::add_schemas(&mut document, named);
    document
}

/// Removes the shared responses to which no operation refers.
fn keep_used_responses(document: &mut Value) {
    let operations = document["paths"].to_string();
    if let Some(shared) = document["components"]["responses"].as_object_mut() {
        shared.retain(|name, _| operations.contains(&format!("/responses/{name}\"")));
    }
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
    if v1_errors::is_v1(endpoint) && operation.get("security").is_none() {
        operation["security"] = json!([{"api_key": []}]);
    }
    remove_error_section(&mut operation);
    show_events(&mut operation);
    make_body_optional(&mut operation);
    declare_path_parameters(&mut operation, endpoint.path());
    common_responses::add_common_responses(&mut operation, endpoint);
    operation
}

/// Removes the section of a doc comment that lists the errors of a function: the responses describe them.
fn remove_error_section(operation: &mut Value) {
    let text = operation["description"].as_str();
    let Some((about, _)) = text.and_then(|it| it.split_once("# Errors")) else {
        return;
    };
    let about = about.trim().to_owned();
    let Some(fields) = operation.as_object_mut() else {
        return;
    };
    match about.is_empty() {
        true => fields.shift_remove("description"),
        false => fields.insert("description".to_owned(), json!(about)),
    };
}

/// Copies the schema of a stream's events to `x-server-frame`, which the page of the document displays.
fn show_events(operation: &mut Value) {
    let events = "/responses/200/content/text~1event-stream/schema";
    if let Some(schema) = operation.pointer(events).cloned() {
        operation["x-server-frame"] = schema;
    }
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

/// Declares the ids in the path, and keeps the parameters that the handler declares itself.
fn declare_path_parameters(operation: &mut Value, path: &str) {
    let mut parameters: Vec<Value> = Vec::new();
    let mut declared = operation["parameters"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    // Of a path with several parameters, utoipa refers to the types of ids instead of describing them.
    declared.retain(|it| it["schema"]["$ref"].is_null());
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
