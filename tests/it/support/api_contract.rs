//! Checks every response and frame that a test client receives against the API document. Stricter
//! than the document: a field that is not listed is an error.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use jsonschema::{Draft, Validator};
use parking_lot::Mutex;
use reqwest::Method;
use serde_json::{Value, json};
use troupe::server::endpoints;
use troupe::server::endpoints::Endpoints;

/// The contract of all endpoints except those under `/v1`.
static CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    let without_v1 = Endpoints {
        v1: Vec::new(),
        ..endpoints::all()
    };
    Contract::new(without_v1.document())
});

static V1_CONTRACT: LazyLock<Contract> =
    LazyLock::new(|| Contract::new(endpoints::all().v1_document()));

struct Contract {
    document: Value,
    /// The components of the document, without additional properties.
    components: Value,
    /// The validator of each schema, by its JSON text.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// Returns the document of `/v1`.
pub fn v1_document() -> &'static Value {
    &V1_CONTRACT.document
}

/// Checks a response of `/v1` against its document.
pub fn check_v1_response(method: &Method, path: &str, status: u16, body: &Value) {
    V1_CONTRACT.check_response(method, path, status, body);
}

/// Checks an event of a stream of `/v1` against the document.
pub fn check_v1_event(schema: &str, event: &Value) {
    let schema = json!({"$ref": format!("#/components/schemas/{schema}")});
    V1_CONTRACT.fits(&schema, event, "event of a stream");
}

/// Returns the API document of this build without `/v1`.
pub fn document() -> &'static Value {
    &CONTRACT.document
}

/// Checks a response against the document; paths and methods that it does not contain are skipped.
pub fn check_response(method: &Method, path: &str, status: u16, body: &Value) {
    CONTRACT.check_response(method, path, status, body);
}

/// Checks a frame of the server against the document.
pub fn check_frame(frame: &Value) {
    let schema = &CONTRACT.document["paths"]["/ws"]["get"]["x-server-frame"];
    CONTRACT.fits(schema, frame, "WebSocket frame");
}

impl Contract {
    fn new(document: Value) -> Self {
        let mut components = document["components"].clone();
        strict(&mut components["schemas"]);
        Self {
            document,
            components,
            validators: Mutex::default(),
        }
    }

    fn check_response(&self, method: &Method, path: &str, status: u16, body: &Value) {
        let path = path.split('?').next().unwrap_or_default();
        let Some((place, operations)) = self.place(path) else {
            return;
        };
        let operation = &operations[method.as_str().to_lowercase()];
        if operation.is_null() {
            return;
        }
        let what = format!("{method} {place} answers {status}");
        let answer = self.resolved(&operation["responses"][status.to_string()]);
        assert!(
            !answer.is_null(),
            "{what}, which is not in the API document"
        );
        let content = &answer["content"];
        let is_stream = body.is_string() && content.get("text/event-stream").is_some();
        match content.get("application/json") {
            // The events are checked where they are read.
            Some(_) if is_stream => {}
            Some(json) => self.fits(&json["schema"], body, &what),
            // A single line of JSON Lines is JSON, too.
            None if content.get("application/x-ndjson").is_some() => {}
            None if content.is_object() => assert!(body.is_string(), "{what}: unexpected JSON"),
            None => assert_eq!(
                body, "",
                "{what} with a body, which is not in the API document"
            ),
        }
    }

    /// Returns the path of the document that matches: the one with the fewest parameters.
    fn place(&self, path: &str) -> Option<(&str, &Value)> {
        let paths = self.document["paths"].as_object().into_iter().flatten();
        let fitting = paths.filter(|(place, _)| fits_place(place, path));
        let found = fitting.min_by_key(|(place, _)| place.matches('{').count());
        found.map(|(place, operations)| (place.as_str(), operations))
    }

    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        let pointer = value["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
        let found = pointer.map(|it| self.document.pointer(it));
        found.map_or(value, |it| it.expect("a $ref has a target"))
    }

    fn fits(&self, schema: &Value, value: &Value, what: &str) {
        let validator = self.validator(schema);
        let faults: Vec<_> = validator
            .iter_errors(value)
            .map(|fault| format!("{} at {:?}", fault, fault.instance_path().to_string()))
            .collect();
        let faults = faults.join("\n");
        assert!(
            faults.is_empty(),
            "{what} violates the API document:\n{faults}\n{value:#}"
        );
    }

    fn validator(&self, schema: &Value) -> Arc<Validator> {
        let mut validators = self.validators.lock();
        let made = validators.entry(schema.to_string()).or_insert_with(|| {
            let whole = json!({"components": self.components, "allOf": [schema]});
            let options = jsonschema::options().with_draft(Draft::Draft202012);
            let validator = options.should_validate_formats(true).build(&whole);
            Arc::new(validator.expect("the schema is valid"))
        });
        Arc::clone(made)
    }
}

fn fits_place(place: &str, path: &str) -> bool {
    let (place, path) = (place.split('/'), path.split('/'));
    let (places, parts): (Vec<_>, Vec<_>) = (place.collect(), path.collect());
    places.len() == parts.len()
        && places
            .iter()
            .zip(&parts)
            .all(|(place, part)| place.starts_with('{') || place == part)
}

/// Forbids fields that are not listed in all object schemas.
fn strict(schemas: &mut Value) {
    for (name, schema) in schemas.as_object_mut().into_iter().flatten() {
        // Items may have more fields, because those of clients are returned unchanged.
        if !name.ends_with("Item") {
            forbid_other_fields(schema);
        }
    }
}

fn forbid_other_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object)
                && !fields.contains_key("additionalProperties")
            {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
            fields.values_mut().for_each(forbid_other_fields);
        }
        Value::Array(items) => items.iter_mut().for_each(forbid_other_fields),
        _ => {}
    }
}
