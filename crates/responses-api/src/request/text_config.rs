//! Parses the parameter `text` of a request (the output format and the verbosity), and returns it
//! as the response repeats it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::request::object_reader::ObjectReader;
use crate::request::tools::tool_names::is_name;

/// `text`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextConfig {
    pub format: TextFormat,
    pub verbosity: Option<Verbosity>,
}

/// The required format of the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TextFormat {
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    JsonSchema(TextSchema),
}

/// A schema of the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct TextSchema {
    pub name: String,
    pub description: Option<String>,
    pub schema: Map<String, Value>,
    pub strict: Option<bool>,
}

/// How long the answer is; only echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verbosity {
    Low,
    Medium,
    High,
}

impl TextConfig {
    pub(super) fn read(body: &ObjectReader) -> Self {
        let Some(text) = body.object("text") else {
            return Self::default();
        };
        text.require_known(&["format", "verbosity"]);
        let verbosity = text.word("verbosity");
        let format = text.object("format").map(|it| TextFormat::read(&it));
        Self {
            format: format.unwrap_or_default(),
            verbosity,
        }
    }

    /// Returns the echo in the response.
    pub fn echo(&self) -> Value {
        let format = match &self.format {
            TextFormat::Text => json!({ "type": "text" }),
            TextFormat::JsonObject => json!({ "type": "json_object" }),
            TextFormat::JsonSchema(it) => json!({
                "type": "json_schema", "name": it.name, "description": it.description,
                "schema": it.schema, "strict": it.strict.unwrap_or(false),
            }),
        };
        let mut text = json!({ "format": format });
        if let Some(verbosity) = self.verbosity {
            text["verbosity"] = json!(verbosity);
        }
        text
    }
}

impl TextFormat {
    fn read(format: &ObjectReader) -> Self {
        match format.fields.get("type").and_then(Value::as_str) {
            Some("text") => {
                format.require_known(&["type"]);
                Self::Text
            }
            Some("json_object") => {
                format.require_known(&["type"]);
                Self::JsonObject
            }
            Some("json_schema") => TextSchema::read(format).map_or(Self::Text, Self::JsonSchema),
            _ => {
                format.wrong_value("type", "text, json_object or json_schema");
                Self::Text
            }
        }
    }
}

impl TextSchema {
    pub(super) fn read(format: &ObjectReader) -> Option<Self> {
        format.require_known(&["type", "name", "description", "schema", "strict"]);
        let name = format.text("name").unwrap_or_default();
        let expected = "up to 64 letters, digits, `_` and `-`";
        format.require(is_name(name), "name", expected);
        let schema = format.object("schema");
        if schema.is_none() {
            format.wrong_type("schema", "a JSON Schema");
        }
        Some(Self {
            name: name.to_owned(),
            schema: schema?.fields.clone(),
            strict: format.flag("strict"),
            description: format.text("description").map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{TextConfig, TextFormat};
    use crate::request::object_reader;

    fn read(text_field: Value) -> Result<TextConfig, String> {
        let body = json!({ "text": text_field });
        let parsed = object_reader::parse(body.as_object().unwrap(), TextConfig::read);
        parsed.map_err(|it| it.param)
    }

    #[test]
    fn a_schema_is_stored_and_returned_unchanged() {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let given = json!({ "format": {
            "type": "json_schema", "name": "reply", "schema": schema, "strict": true,
        } });

        let text = read(given).unwrap();

        let TextFormat::JsonSchema(kept) = &text.format else {
            panic!("the format is not a schema");
        };
        assert_eq!(json!(kept.schema), schema);
        assert_eq!(kept.strict, Some(true));
        assert_eq!(
            text.echo()["format"],
            json!({
                "type": "json_schema", "name": "reply", "description": null,
                "schema": schema, "strict": true,
            })
        );
    }

    #[test]
    fn an_invalid_format_is_rejected_with_its_path() {
        let schema = |name: &str, schema: Value| json!({ "format": { "type": "json_schema", "name": name, "schema": schema } });
        for (given, param) in [
            (json!({ "format": { "type": "xml" } }), "text.format.type"),
            (json!({ "format": "text" }), "text.format"),
            (schema("", json!({})), "text.format.name"),
            (schema("two words", json!({})), "text.format.name"),
            (schema("a", json!([])), "text.format.schema"),
            (json!({ "verbosity": "loud" }), "text.verbosity"),
            (json!({ "form": {} }), "text.form"),
            (
                json!({ "format": { "type": "text", "schema": {} } }),
                "text.format.schema",
            ),
        ] {
            assert_eq!(read(given.clone()).unwrap_err(), param, "{given}");
        }
    }
}
