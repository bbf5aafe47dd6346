//! Finds the request fields that accept an address, in the API document and in the sources of
//! `/v1`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use troupe::server::endpoints;

/// Returns whether a field of this name accepts an address.
fn takes_an_address(name: &str) -> bool {
    let last = name.rsplit('_').next().unwrap_or_default();
    let words = ["url", "urls", "uri", "uris", "href", "endpoint", "webhook"];
    words.contains(&last) || ["callback", "host"].contains(&name)
}

/// `PATCH /api/spaces/{space_id} settings.tool_servers.url` and the like: every field of a body and
/// every parameter of a query under `/api`.
pub fn of_the_document() -> BTreeSet<String> {
    let document = endpoints::all().document();
    let mut found = BTreeSet::new();
    for (path, methods) in document["paths"]
        .as_object()
        .expect("the document has paths")
    {
        for (method, operation) in methods.as_object().expect("a path has methods") {
            let mut fields = Vec::new();
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let names = parameters.filter_map(|it| it["name"].as_str());
            fields.extend(
                names
                    .filter(|it| takes_an_address(it))
                    .map(|it| format!("?{it}")),
            );
            let contents = operation["requestBody"]["content"].as_object();
            for content in contents.into_iter().flat_map(|it| it.values()) {
                let mut path = Vec::new();
                walk(&document, &content["schema"], &mut path, &mut fields);
            }
            let call = format!("{} {path}", method.to_uppercase());
            found.extend(fields.iter().map(|field| format!("{call} {field}")));
        }
    }
    found
}

/// Collects the fields below a schema. `path`: the names on the way, and the references followed.
fn walk(document: &Value, schema: &Value, path: &mut Vec<String>, fields: &mut Vec<String>) {
    if path.len() > 24 {
        return;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        if !path.iter().any(|it| it == reference) {
            let target = document.pointer(reference.trim_start_matches('#'));
            path.push(reference.to_owned());
            walk(document, target.unwrap_or(&Value::Null), path, fields);
            path.pop();
        }
        return;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        if takes_an_address(name) || property["format"] == "uri" {
            let names = path.iter().filter(|it| !it.starts_with('#'));
            fields.push(names.cloned().collect::<Vec<_>>().join("."));
        }
        walk(document, property, path, fields);
        path.pop();
    }
    for part in ["items", "additionalProperties"] {
        walk_object(document, &schema[part], path, fields);
    }
    for several in ["oneOf", "anyOf", "allOf", "prefixItems"] {
        for part in schema[several].as_array().into_iter().flatten() {
            walk_object(document, part, path, fields);
        }
    }
}

fn walk_object(document: &Value, schema: &Value, path: &mut Vec<String>, fields: &mut Vec<String>) {
    if schema.is_object() {
        walk(document, schema, path, fields);
    }
}

/// Returns the field names under `/v1` that accept an address: string literals in its sources and
/// in those of its requests, without their tests, that are such a name.
pub fn of_v1() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let folders = ["src/web/v1", "crates/responses-api/src/request"];
    for (_, text) in folders.into_iter().flat_map(sources) {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let literals = code.split('"').skip(1).step_by(2);
        found.extend(
            literals
                .filter(|it| takes_an_address(it) && is_a_name(it))
                .map(str::to_owned),
        );
    }
    found
}

fn is_a_name(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_lowercase() || it == b'_')
}

/// `POST /v1/responses` and the like: every endpoint under `/v1` that accepts a body, and its
/// socket.
pub fn calls_of_v1() -> BTreeSet<String> {
    let all = endpoints::all().v1.into_iter();
    let calls = all.filter_map(|endpoint| {
        let (method, path) = (endpoint.method().as_str(), endpoint.path());
        match method {
            "POST" | "PUT" | "PATCH" => Some(format!("{method} {path}")),
            "GET" if path == "/v1/responses" => Some(format!("SOCKET {path}")),
            _ => None,
        }
    });
    calls.collect()
}

/// Returns the files that hold or create an outbound client.
pub fn callers() -> BTreeSet<String> {
    let words = [
        "OutboundClient",
        "reqwest::Client",
        "TcpStream::connect",
        "WebFetcher {",
    ];
    let files = ["src", "crates"].into_iter().flat_map(sources);
    let holds = |text: &str| {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let mut lines = code.lines().filter(|it| !it.starts_with("//!"));
        lines.any(|line| words.iter().any(|it| line.contains(it)))
    };
    let files = files.filter(|(_, text)| holds(text));
    files.map(|(path, _)| path).collect()
}

fn is_only_for_tests(path: &str) -> bool {
    path.ends_with("_tests.rs") || path.contains("/test_")
}

fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(folder).to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the source folder is readable") {
            let path = entry.expect("the entry is readable").path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") && !is_only_for_tests(&name) {
                let text = fs::read_to_string(&path).expect("the source is readable");
                found.push((name, text));
            }
        }
    }
    found
}
