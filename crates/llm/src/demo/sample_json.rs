//! Generates sample JSON for the demo model from a schema: one value of the right type for each
//! required property. Limits of numbers, texts and lists are ignored, except `minimum`.

use serde_json::{Map, Value, json};
use unicode_segmentation::UnicodeSegmentation;

/// Limits recursive schemas.
const MAX_DEPTH: usize = 8;

/// Limits schemas that refer to themselves several times, whose values multiply at each level: the
/// result is at most this many times as large as the schema.
const MAX_REFERENCES: usize = 32;

/// Returns a value for the schema. Its texts are the topic of the message, or else the name of the
/// property.
pub fn value(schema: &Value, message: &str) -> Value {
    let mut builder = SampleBuilder {
        root: schema,
        topic: topic(message),
        n_references_left: MAX_REFERENCES,
    };
    builder.build(schema, "", 0)
}

struct SampleBuilder<'a> {
    /// The root schema, in which references are resolved.
    root: &'a Value,
    topic: Option<&'a str>,
    /// How many references are still resolved; any other counts as an empty schema.
    n_references_left: usize,
}

impl<'a> SampleBuilder<'a> {
    /// Builds a value; `name` is the name of the property, or empty.
    fn build(&mut self, schema: &'a Value, name: &'a str, depth: usize) -> Value {
        if let Some(value) = fixed_value(schema) {
            return value;
        }
        if depth > MAX_DEPTH {
            return Value::Null;
        }
        if let Some(other) = self.resolve(schema) {
            return self.build(other, name, depth + 1);
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => json!([self.build(&schema["items"], name, depth + 1)]),
            "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
            "boolean" => json!(true),
            "null" => Value::Null,
            _ => json!(self.topic.unwrap_or(name)),
        }
    }

    /// Returns the target of a reference, or the first of several alternative schemas.
    fn resolve(&mut self, schema: &'a Value) -> Option<&'a Value> {
        if let Some(pointer) = schema["$ref"].as_str() {
            let Some(n_left) = self.n_references_left.checked_sub(1) else {
                return Some(&Value::Null);
            };
            self.n_references_left = n_left;
            return self.root.pointer(pointer.strip_prefix('#')?);
        }
        let several = ["anyOf", "oneOf", "allOf"];
        several.iter().find_map(|it| schema[it].get(0))
    }

    fn object(&mut self, schema: &'a Value, depth: usize) -> Value {
        let required = schema["required"].as_array();
        let is_required = |name: &str| required.is_none_or(|all| all.iter().any(|it| it == name));
        let properties = schema["properties"].as_object().into_iter().flatten();
        let made = properties
            .filter(|(name, _)| is_required(name))
            .map(|(name, it)| (name.clone(), self.build(it, name, depth + 1)));
        Value::Object(made.collect::<Map<_, _>>())
    }
}

/// Returns the last capitalized word that does not begin a sentence, because it is most often the
/// topic.
fn topic(message: &str) -> Option<&str> {
    let sentences = message.unicode_sentences();
    let names = sentences.flat_map(|it| it.unicode_words().skip(1));
    let is_name = |it: &&str| it.chars().count() > 1 && it.starts_with(char::is_uppercase);
    names.filter(is_name).last()
}

/// Returns the value that a schema fixes, or the first of those that it allows or suggests.
fn fixed_value(schema: &Value) -> Option<Value> {
    let listed = ["enum", "examples"].iter().find_map(|it| schema[it].get(0));
    schema.get("const").or(listed).cloned()
}

/// Returns the type, or the first of several types that is not null.
fn kind(schema: &Value) -> &str {
    let several = schema["type"].as_array().into_iter().flatten();
    let first = several.filter_map(Value::as_str).find(|it| *it != "null");
    match schema["type"].as_str().or(first) {
        Some(kind) => kind,
        None if schema["properties"].is_object() => "object",
        None if schema["items"].is_object() => "array",
        None => "string",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{MAX_REFERENCES, value};

    fn fits(schema: &Value, value: &Value) {
        let faults: Vec<_> = jsonschema::validator_for(schema)
            .expect("the schema of the test is valid")
            .iter_errors(value)
            .map(|it| it.to_string())
            .collect();
        assert!(faults.is_empty(), "{value}: {faults:?}");
    }

    #[test]
    fn generated_values_match_the_schema() {
        for schema in [
            json!({}),
            json!({ "type": "object" }),
            json!({ "type": "object", "properties": { "a": { "type": "null" }, "b": { "type": "boolean" } }, "required": ["a", "b"], "additionalProperties": false }),
            json!({ "type": "array", "items": { "type": "string" } }),
            json!({ "type": "string", "enum": ["red", "blue"] }),
            json!({ "type": ["null", "integer"], "minimum": 5 }),
            json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }),
            json!({ "$ref": "#/$defs/it", "$defs": { "it": { "const": 7 } } }),
            json!({ "type": "object", "properties": { "node": { "anyOf": [{ "$ref": "#" }, { "type": "null" }] } }, "required": [] }),
        ] {
            fits(&schema, &value(&schema, "Hello!"));
        }
    }

    #[test]
    fn a_text_is_the_topic_of_the_message_or_else_the_name_of_its_property() {
        let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });

        assert_eq!(
            value(&schema, "Is it nice? Take the train to Rome."),
            json!({ "city": "Rome" })
        );
        assert_eq!(value(&schema, "Hello!"), json!({ "city": "city" }));
    }

    #[test]
    fn a_schema_that_multiplies_itself_gets_a_value_of_limited_size() {
        let again: Map<_, _> = ('a'..='l')
            .map(|it| (it.to_string(), json!({ "$ref": "#" })))
            .collect();

        let schema = json!({ "properties": again });

        let made = value(&schema, "").to_string();

        assert!(made.len() <= schema.to_string().len() * MAX_REFERENCES);
    }

    #[test]
    fn a_recursive_schema_terminates() {
        let schema = json!({ "properties": { "again": { "$ref": "#" } } });

        assert!(value(&schema, "").is_object());
    }
}
