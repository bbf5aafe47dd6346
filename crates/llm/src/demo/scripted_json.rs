//! Generates sample JSON for the demo model: values that match a schema, with required properties
//! only. Values come from the message if it contains `name=value`.

use serde_json::{Map, Value, json};
use unicode_segmentation::UnicodeSegmentation;

/// Limits recursive schemas.
const MAX_DEPTH: usize = 8;
const MAX_ITEMS: u64 = 8;
const MAX_LENGTH: u64 = 1_000;

/// Returns a value that matches the schema, as far as its keywords are supported.
pub fn value(schema: &Value, message: &str) -> Value {
    let builder = SampleBuilder {
        root: schema,
        message,
    };
    builder.build(schema, "", 0)
}

struct SampleBuilder<'a> {
    /// The root schema, in which references are resolved.
    root: &'a Value,
    message: &'a str,
}

impl SampleBuilder<'_> {
    /// Builds a value; `name` is the name of the property, or empty.
    fn build(&self, schema: &Value, name: &str, depth: usize) -> Value {
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
            "array" => self.array(schema, name, depth),
            "integer" | "number" => self.number(schema, name),
            "boolean" => json!(self.stated_value(name).is_none_or(|it| it != "false")),
            "null" => Value::Null,
            _ => json!(self.text(schema, name)),
        }
    }

    /// Returns the target of a reference, or the first of several alternative schemas.
    fn resolve<'s>(&'s self, schema: &'s Value) -> Option<&'s Value> {
        if let Some(pointer) = schema["$ref"].as_str() {
            return self.root.pointer(pointer.strip_prefix('#')?);
        }
        let several = ["anyOf", "oneOf", "allOf"];
        several.iter().find_map(|it| schema[it].get(0))
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let required = schema["required"].as_array();
        let is_required = |name: &str| required.is_none_or(|all| all.iter().any(|it| it == name));
        let properties = schema["properties"].as_object().into_iter().flatten();
        let made = properties
            .filter(|(name, _)| is_required(name))
            .map(|(name, it)| (name.clone(), self.build(it, name, depth + 1)));
        Value::Object(made.collect::<Map<_, _>>())
    }

    fn array(&self, schema: &Value, name: &str, depth: usize) -> Value {
        let least = schema["minItems"].as_u64().unwrap_or(1).min(MAX_ITEMS);
        let most = schema["maxItems"].as_u64().unwrap_or(MAX_ITEMS);
        let item = self.build(&schema["items"], name, depth + 1);
        (0..least.max(1).min(most)).map(|_| item.clone()).collect()
    }

    fn number(&self, schema: &Value, name: &str) -> Value {
        let bound = |word: &str| schema[word].as_f64();
        let least = bound("minimum").or(bound("exclusiveMinimum").map(|it| it + 1.0));
        let most = bound("maximum").or(bound("exclusiveMaximum").map(|it| it - 1.0));
        let told = self
            .stated_value(name)
            .and_then(|it| it.parse::<f64>().ok());
        let number = told.filter(|it| it.is_finite()).unwrap_or(1.0);
        let number = number.max(least.unwrap_or(number));
        let number = number.min(most.unwrap_or(number));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a float is truncated to the nearest value"
        )]
        match kind(schema) == "integer" || number.fract() == 0.0 {
            true => json!(number as i64),
            false => json!(number),
        }
    }

    fn text(&self, schema: &Value, name: &str) -> String {
        let usual = match schema["format"].as_str().unwrap_or_default() {
            "date" => "2026-01-01",
            "time" => "12:00:00Z",
            "date-time" => "2026-01-01T12:00:00Z",
            "email" => "somebody@example.com",
            "uri" => "https://example.com/",
            "uuid" => "00000000-0000-4000-8000-000000000000",
            _ => "",
        };
        let text = match (self.stated_value(name), usual) {
            (Some(told), _) => told.to_owned(),
            (None, "") => self.last_name().unwrap_or(name).to_owned(),
            (None, usual) => usual.to_owned(),
        };
        let length = |word: &str| schema[word].as_u64();
        let most = length("maxLength").unwrap_or(MAX_LENGTH).min(MAX_LENGTH);
        let least = length("minLength").unwrap_or(0).min(most);
        let size = |it: u64| usize::try_from(it).unwrap_or_default();
        let padding = std::iter::repeat_n('x', size(least));
        let n_chars = text.chars().count().max(size(least)).min(size(most));
        text.chars().chain(padding).take(n_chars).collect()
    }

    /// Returns the text after `name=` or `name:`, up to the next blank or comma, or between quotes.
    fn stated_value(&self, name: &str) -> Option<&str> {
        if name.is_empty() {
            return None;
        }
        let (at, _) = self.message.match_indices(name).find(|(at, _)| {
            let before = self.message[..*at].chars().next_back();
            let after = self.message[at + name.len()..].chars().next();
            before.is_none_or(|it| !it.is_alphanumeric()) && matches!(after, Some('=' | ':'))
        })?;
        let rest = self.message[at + name.len() + 1..].trim_start();
        let told = match rest.strip_prefix('"') {
            Some(rest) => rest.split('"').next(),
            None => {
                let word = rest
                    .split(|it: char| it.is_whitespace() || it == ',')
                    .next();
                word.map(|it| it.trim_end_matches(['.', '?', '!', ';']))
            }
        };
        told.filter(|it| !it.is_empty())
    }

    /// Returns the last capitalized word that does not begin a sentence, because it is most often
    /// the topic.
    fn last_name(&self) -> Option<&str> {
        let sentences = self.message.unicode_sentences();
        let names = sentences.flat_map(|it| it.unicode_words().skip(1));
        let is_name = |it: &&str| it.chars().count() > 1 && it.starts_with(char::is_uppercase);
        names.filter(is_name).last()
    }
}

/// Returns the value that a schema fixes or suggests.
fn fixed_value(schema: &Value) -> Option<Value> {
    let words = ["const", "default", "example"];
    let said = words.iter().find_map(|it| schema.get(it));
    let listed = ["enum", "examples"].iter().find_map(|it| schema[it].get(0));
    said.or(listed).cloned()
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
    use serde_json::{Value, json};

    use super::value;

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
            json!({ "type": "array", "items": { "type": "string", "minLength": 5 }, "minItems": 3 }),
            json!({ "type": "array", "items": {}, "maxItems": 0 }),
            json!({ "type": "string", "minLength": 3, "maxLength": 4 }),
            json!({ "type": "string", "enum": ["red", "blue"] }),
            json!({ "type": ["null", "integer"], "minimum": 5 }),
            json!({ "type": "number", "exclusiveMaximum": 0 }),
            json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }),
            json!({ "$ref": "#/$defs/it", "$defs": { "it": { "const": 7 } } }),
            json!({ "type": "object", "properties": { "node": { "anyOf": [{ "$ref": "#" }, { "type": "null" }] } }, "required": [] }),
        ] {
            fits(&schema, &value(&schema, "Hello!"));
        }
    }

    #[test]
    fn values_come_from_the_message() {
        let schema = json!({ "type": "object", "properties": {
            "city": { "type": "string" }, "days": { "type": "integer" }, "note": { "type": "string" },
            "person": { "type": "string" }, "wet": { "type": "boolean" },
        } });

        let made = value(
            &schema,
            "Is it nice? Take days=3, note: \"no rain\", wet=false and city=Rome. Ask Ada.",
        );

        assert_eq!(
            made,
            json!({ "city": "Rome", "days": 3, "note": "no rain", "person": "Ada", "wet": false })
        );
    }

    #[test]
    fn a_property_without_a_stated_value_gets_its_name() {
        let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });

        assert_eq!(value(&schema, "hello"), json!({ "city": "city" }));
    }

    #[test]
    fn a_recursive_schema_terminates() {
        let schema = json!({ "properties": { "again": { "$ref": "#" } } });

        assert!(value(&schema, "").is_object());
    }
}
