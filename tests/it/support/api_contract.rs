//! Checks every response and frame that a test client receives against the API document. Stricter
//! than the document: a field that is not listed is an error.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use jsonschema::{Draft, Validator};
use parking_lot::Mutex;
use reqwest::Method;
use serde_json::{Value, json};
use troupe::server::endpoints;

static CONTRACT: LazyLock<Contract> = LazyLock::new(Contract::new);

struct Contract {
    document: Value,
    /// The components of the document, without additional properties.
    components: Value,
    /// By the JSON text of the schema.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// Returns the API document of this build.
pub fn document() -> &'static Value {
    &CONTRACT.document
}

/// Checks a response against the document; paths and methods that it does not contain are skipped.
pub fn check_response(method: &Method, path: &str, status: u16, body: &Value) {
    let path = path.split('?').next().unwrap_or_default();
    let Some((place, operations)) = CONTRACT.place(path) else {
        return;
    };
    let operation = &operations[method.as_str().to_lowercase()];
    if operation.is_null() {
        return;
    }
    let what = format!("{method} {place} answers {status}");
    let answer = CONTRACT.resolved(&operation["responses"][status.to_string()]);
    assert!(
        !answer.is_null(),
        "{what}, which is not in the API document"
    );
    let content = &answer["content"];
    match content.get("application/json") {
        Some(json) => CONTRACT.fits(&json["schema"], body, &what),
        // A single line of JSON Lines is JSON, too.
        None if content.get("application/x-ndjson").is_some() => {}
        None if content.is_object() => assert!(body.is_string(), "{what}: unexpected JSON"),
        None => assert_eq!(
            body, "",
            "{what} with a body, which is not in the API document"
        ),
    }
}

/// Checks a frame of the server against the document.
pub fn check_frame(frame: &Value) {
    let schema = &CONTRACT.document["paths"]["/ws"]["get"]["x-server-frame"];
    CONTRACT.fits(schema, frame, "WebSocket frame");
}

impl Contract {
    fn new() -> Self {
        let document = endpoints::all().document();
        let mut components = document["components"].clone();
        strict(&mut components["schemas"]);
        Self {
            document,
            components,
            validators: Mutex::default(),
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
fn strict(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object)
                && !fields.contains_key("additionalProperties")
            {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
            fields.values_mut().for_each(strict);
        }
        Value::Array(items) => items.iter_mut().for_each(strict),
        _ => {}
    }
}
