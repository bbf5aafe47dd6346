//! Adds the schemas to the API document and applies the rules that all request or response schemas
//! follow; also builds simple schemas, such as a nullable reference.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::{AdditionalProperties, Type};
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, Ref, Schema};

use crate::web::error::ErrorBody;
use crate::web::openapi::endpoint::NamedSchema;

const PREFIX: &str = "#/components/schemas/";

/// The beginning of the name of each page of a list; such a schema is described by its fields.
const PAGE_PREFIX: &str = "Listing_";

/// No string from a client may contain U+0000: PostgreSQL would refuse it.
const NO_NUL: &str = "^[^\\u0000]*$";

/// Returns a type's own schema with its name, and those that it refers to.
pub fn for_type<T: ToSchema>() -> Vec<NamedSchema> {
    let mut named = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut named);
    named
}

/// Returns an object that allows only the given fields.
pub fn deny_unknown() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
}

/// Returns the schema of null.
pub fn null() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Null)
}

/// Returns a reference to a type, or null.
pub fn nullable<T: ToSchema>() -> OneOfBuilder {
    OneOfBuilder::new()
        .item(Ref::from_schema_name(T::name()))
        .item(null())
}

/// Adds the schemas to the document and completes them.
pub fn add_schemas(document: &mut Value, named: Vec<NamedSchema>) {
    let all = named.into_iter().chain(for_type::<ErrorBody<'_>>());
    let mut schemas: BTreeMap<String, Value> =
        all.map(|(name, schema)| (name, json!(schema))).collect();
    merge_parts(&mut schemas);
    let referenced = collect_references(vec![document], &schemas);
    schemas.retain(|name, _| referenced.contains(name));
    let in_requests = collect_references(request_values(document), &schemas);
    for (name, schema) in &mut schemas {
        if let (true, Some(page)) = (name.starts_with(PAGE_PREFIX), schema.as_object_mut()) {
            page.shift_remove("description");
        }
        match in_requests.contains(name) {
            true => for_each_object(schema, &mut with_bounds),
            false => {
                one_of_to_any_of(schema);
                for_each_object(schema, &mut require_all_fields);
            }
        }
    }
    document["components"]["schemas"] = json!(schemas);
}

/// Merges the parts of each schema, as `#[serde(flatten)]` creates them, into one object.
fn merge_parts(schemas: &mut BTreeMap<String, Value>) {
    let known = schemas.clone();
    for schema in schemas.values_mut() {
        if schema.get("allOf").is_none() {
            continue;
        }
        let mut merged = Map::new();
        for part in flat_parts(schema, &known) {
            for (key, value) in part.as_object().into_iter().flatten() {
                match (merged.get_mut(key), value) {
                    (Some(Value::Object(old)), Value::Object(new)) => old.extend(new.clone()),
                    (Some(Value::Array(old)), Value::Array(new)) => old.extend(new.clone()),
                    _ => {
                        merged.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        if let Some(description) = schema.get("description") {
            merged.insert("description".to_owned(), description.clone());
        }
        *schema = Value::Object(merged);
    }
}

/// Returns the parts of a schema; a part that itself has parts is replaced by them.
fn flat_parts<'a>(schema: &'a Value, known: &'a BTreeMap<String, Value>) -> Vec<&'a Value> {
    let schema = resolve_ref(schema, known);
    match schema.get("allOf").and_then(Value::as_array) {
        Some(parts) => parts.iter().flat_map(|it| flat_parts(it, known)).collect(),
        None => vec![schema],
    }
}

fn resolve_ref<'a>(schema: &'a Value, known: &'a BTreeMap<String, Value>) -> &'a Value {
    let name = schema["$ref"]
        .as_str()
        .and_then(|it| it.strip_prefix(PREFIX));
    name.and_then(|it| known.get(it)).unwrap_or(schema)
}

/// Returns everything that clients send: bodies, and frames of a socket.
fn request_values(document: &Value) -> Vec<&Value> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(_, path)| path.as_object().into_iter().flatten());
    operations
        .flat_map(|(_, operation)| ["requestBody", "x-client-frame"].map(|it| operation.get(it)))
        .flatten()
        .collect()
}

/// Returns the names of all schemas reachable from here.
fn collect_references(from: Vec<&Value>, schemas: &BTreeMap<String, Value>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut waiting: Vec<&Value> = from;
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(fields) => {
                let name = fields.get("$ref").and_then(Value::as_str);
                if let Some(name) = name.and_then(|it| it.strip_prefix(PREFIX))
                    && names.insert(name.to_owned())
                {
                    waiting.extend(schemas.get(name));
                }
                waiting.extend(fields.values());
            }
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    names
}

/// Visits all objects in a schema.
fn for_each_object(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match schema {
        Value::Object(fields) => {
            change(fields);
            fields
                .values_mut()
                .for_each(|it| for_each_object(it, change));
        }
        Value::Array(items) => items.iter_mut().for_each(|it| for_each_object(it, change)),
        _ => {}
    }
}

/// For client input: strings contain no NUL, numbers fit into our types, and optional fields are
/// omitted, not null.
pub fn with_bounds(schema: &mut Map<String, Value>) {
    if schema.get("default") == Some(&Value::Null) {
        schema.shift_remove("default");
    }
    let is = |word: &str| match schema.get("type") {
        Some(Value::String(it)) => it == word,
        Some(Value::Array(all)) => all.contains(&json!(word)),
        _ => false,
    };
    let has_form = ["pattern", "enum"]
        .iter()
        .any(|it| schema.contains_key(*it))
        || matches!(
            schema.get("format").and_then(Value::as_str),
            Some("uuid" | "uri" | "binary")
        );
    if is("string") && !has_form {
        schema.insert("pattern".to_owned(), json!(NO_NUL));
    } else if is("integer") {
        schema.entry("minimum").or_insert(json!(i64::MIN));
        schema.entry("maximum").or_insert(json!(i64::MAX));
    }
}

/// A response may have undocumented fields, and so match more than one of its choices.
fn one_of_to_any_of(schema: &mut Value) {
    if let Some(fields) = schema.as_object_mut()
        && let Some(choices) = fields.shift_remove("oneOf")
    {
        fields.insert("anyOf".to_owned(), choices);
    }
}

/// For responses: no field is missing, absent values are `null`; except those marked `x-optional`,
/// which are omitted when they have no value.
fn require_all_fields(schema: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    let mut required = Vec::new();
    for (name, property) in properties {
        let fields = property.as_object_mut();
        let is_optional = fields.is_some_and(|it| it.shift_remove("x-optional").is_some());
        if !is_optional {
            required.push(json!(name));
        }
    }
    schema.insert("required".to_owned(), Value::Array(required));
}
