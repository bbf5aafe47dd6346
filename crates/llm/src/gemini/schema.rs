//! Reduces JSON Schemas to the keywords that the Gemini API supports, because it may reject others.

use serde_json::{Map, Value, json};

/// Keywords whose value is not a schema.
const PLAIN_KEYWORDS: [&str; 14] = [
    "$anchor",
    "$id",
    "$ref",
    "description",
    "enum",
    "format",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "propertyOrdering",
    "required",
    "title",
    "type",
];

/// Returns the schema with supported keywords only.
pub fn supported_schema(schema: &Value) -> Value {
    let Value::Object(words) = schema else {
        return schema.clone();
    };
    let mut kept = Map::new();
    for (word, value) in words {
        let kept_value = match (word.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                let all = schemas.iter();
                Value::Object(
                    all.map(|(name, it)| (name.clone(), supported_schema(it)))
                        .collect(),
                )
            }
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter().map(supported_schema).collect()
            }
            ("items" | "additionalProperties", schema) => supported_schema(schema),
            (word, value) if PLAIN_KEYWORDS.contains(&word) => value.clone(),
            // A single value becomes an enum with one element.
            ("const", Value::String(_)) => {
                kept.insert("enum".to_owned(), json!([value]));
                continue;
            }
            _ => continue,
        };
        kept.insert(word.clone(), kept_value);
    }
    Value::Object(kept)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::supported_schema;

    #[test]
    fn unknown_keywords_are_dropped_but_not_property_names() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "pattern": { "type": "string", "pattern": "^a" },
                "kind": { "const": "x" },
                "list": { "type": "array", "items": { "type": "number", "multipleOf": 2 } },
            },
            "required": ["pattern"],
            "additionalProperties": false,
            "$defs": { "deep": { "anyOf": [{ "type": "null", "examples": [] }, true] } },
        });

        assert_eq!(
            supported_schema(&schema),
            json!({
                "type": "object",
                "properties": {
                    "pattern": { "type": "string" },
                    "kind": { "enum": ["x"] },
                    "list": { "type": "array", "items": { "type": "number" } },
                },
                "required": ["pattern"],
                "additionalProperties": false,
                "$defs": { "deep": { "anyOf": [{ "type": "null" }, true] } },
            })
        );
    }
}
