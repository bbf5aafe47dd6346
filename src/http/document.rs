//! The API document: what stands above every handler, put together with what is true of all.
//!
//! **Invariant:** nothing is listed here. Doors bring their operations and the schemas these name.

use crate::http::door::Door;
use crate::http::door::Named;
use crate::http::door::plain_path;
use crate::http::outcomes;
use crate::http::schemas;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

/// What every reader of the document must know.
const ABOUT: &str = "\
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
pub fn document(doors: &[Door], rooms: &[(&str, &str)], more: Vec<Named>) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let mut named = more;
    for door in doors {
        let method = door.method().as_str().to_lowercase();
        let place = paths.entry(plain_path(door.path())).or_insert(json!({}));
        place[method] = operation(door);
        named.extend(door.schemas());
    }
    let tags: Vec<Value> = rooms
        .iter()
        .map(|(name, about)| json!({"name": name, "description": about}))
        .collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Troupe",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")},
        },
        "servers": [{"url": "/", "description": "This server."}],
        "tags": tags,
        "security": [{"session": []}, {"api_key": []}],
        "paths": paths,
        "components": {
            "schemas": {},
            "responses": outcomes::shared(),
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
    schemas::furnish(&mut document, named);
    document
}

fn operation(door: &Door) -> Value {
    // Plain data with text as keys.
    let mut operation = json!(door.operation());
    let room = door.tags().first().copied().unwrap_or_default();
    let verb = operation["operationId"].as_str().unwrap_or_default();
    operation["operationId"] = json!(format!("{room}_{verb}"));
    operation["tags"] = json!(door.tags());
    may_leave_out_body(&mut operation);
    declare_places(&mut operation, door.path());
    outcomes::complete(&mut operation, door);
    operation
}

/// A body of `Option<T>` may be left out; what is sent is a `T`, never `null`.
fn may_leave_out_body(operation: &mut Value) {
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
fn declare_places(operation: &mut Value, path: &str) {
    let mut parameters: Vec<Value> = Vec::new();
    let said = operation["parameters"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for part in path.split('/').filter(|it| it.starts_with('{')) {
        let name = part.trim_matches(['{', '}']).split(':').next();
        let name = name.unwrap_or_default();
        if said.iter().any(|it| it["name"] == name) {
            continue;
        }
        if let Some(schema) = id_of(name) {
            parameters
                .push(json!({"name": name, "in": "path", "required": true, "schema": schema}));
        }
    }
    parameters.extend(said.into_iter().map(finished));
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
}

/// A parameter that may be left out is left out, never null; and it has the bounds of all that
/// people send.
fn finished(mut parameter: Value) -> Value {
    let words = parameter["schema"]["type"].as_array().cloned();
    if let Some(word) = words.and_then(|all| all.into_iter().find(|it| it != "null")) {
        parameter["schema"]["type"] = word;
    }
    if let Some(schema) = parameter["schema"].as_object_mut() {
        schemas::bound(schema);
    }
    parameter
}

/// The shape of an id by its name. Other names the handler explains itself.
fn id_of(name: &str) -> Option<Value> {
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
    fn a_reader_sees_no_patterns() {
        assert_eq!(plain_path("/api/a/{b_id}/c"), "/api/a/{b_id}/c");
        assert_eq!(plain_path(r"/api/a/{b_id:\d+}"), "/api/a/{b_id}");
    }
}
