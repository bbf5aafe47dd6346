//! `text`: the output format and the verbosity.

use llm::tool::{OutputFormat, OutputSchema};
use serde_json::{Map, Value, json};

use crate::web::v1::error::{V1Error, V1Result};
use crate::web::v1::parsing::fields::{Fields, nested_in, wrong_type, wrong_value};

const MAX_NAME_CHARS: usize = 64;

/// Parses `text` into the output format for the model and the echo in the response.
///
/// # Errors
/// Returns 400 with the path of the invalid field.
pub fn text(fields: &Fields) -> V1Result<(OutputFormat, Value)> {
    let mut text = json!({ "format": { "type": "text" } });
    let Some(given) = fields.object("text")? else {
        return Ok((OutputFormat::Text, text));
    };
    let inner = Fields(given);
    let within = |problem: V1Error| nested_in("text", problem);
    inner
        .require_known(&["format", "verbosity"])
        .map_err(within)?;
    let verbosity = inner
        .one_of("verbosity", &["low", "medium", "high"])
        .map_err(within)?;
    if let Some(verbosity) = verbosity {
        text["verbosity"] = json!(verbosity);
    }
    let Some(given) = inner.object("format").map_err(within)? else {
        return Ok((OutputFormat::Text, text));
    };
    let format = match given.get("type").and_then(Value::as_str) {
        Some("text") => {
            require_no_schema(given)?;
            OutputFormat::Text
        }
        Some("json_object") => {
            require_no_schema(given)?;
            text["format"] = json!({ "type": "json_object" });
            OutputFormat::Json
        }
        Some("json_schema") => {
            let schema = schema(given).map_err(|it| nested_in("text.format", it))?;
            text["format"] = json!({
                "type": "json_schema", "name": schema.name, "description": schema.description,
                "schema": schema.schema, "strict": schema.strict.unwrap_or(false),
            });
            OutputFormat::Schema(schema)
        }
        _ => {
            let takes = "text, json_object or json_schema";
            return Err(wrong_value("text.format.type", takes));
        }
    };
    Ok((format, text))
}

/// Formats without a schema have only a `type`.
fn require_no_schema(given: &Map<String, Value>) -> V1Result<()> {
    let plain = Fields(given).require_known(&["type"]);
    plain.map_err(|it| nested_in("text.format", it))
}

fn schema(given: &Map<String, Value>) -> V1Result<OutputSchema> {
    let fields = Fields(given);
    fields.require_known(&["type", "name", "description", "schema", "strict"])?;
    let name = fields.text("name")?.unwrap_or_default();
    if !is_name(name) {
        let takes = "up to 64 letters, digits, `_` and `-`";
        return Err(wrong_value("name", takes));
    }
    let schema = fields
        .object("schema")?
        .ok_or_else(|| wrong_type("schema", "a JSON Schema"))?;
    let strict = match fields.get("strict") {
        None => None,
        Some(_) => Some(fields.flag("strict", false)?),
    };
    Ok(OutputSchema {
        name: name.to_owned(),
        description: fields.text("description")?.map(str::to_owned),
        schema: Value::Object(schema.clone()),
        strict,
    })
}

/// Returns whether every provider accepts this as the name of a schema.
pub fn is_name(name: &str) -> bool {
    let is_well = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.chars().all(is_well)
}

#[cfg(test)]
mod tests {
    use llm::tool::OutputFormat;
    use serde_json::{Value, json};

    use super::text;
    use crate::web::v1::parsing::fields::Fields;

    fn read(text_field: Value) -> Result<(OutputFormat, Value), Option<String>> {
        let body = json!({ "text": text_field });
        text(&Fields(body.as_object().unwrap())).map_err(|it| it.param)
    }

    #[test]
    fn a_schema_is_kept_and_echoed_whole() {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let given = json!({ "format": {
            "type": "json_schema", "name": "reply", "schema": schema, "strict": true,
        } });

        let (format, echo) = read(given).unwrap();

        let OutputFormat::Schema(kept) = format else {
            panic!("a schema was given");
        };
        assert_eq!((kept.schema, kept.strict), (schema.clone(), Some(true)));
        assert_eq!(
            echo["format"],
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
            assert_eq!(
                read(given.clone()).unwrap_err().as_deref(),
                Some(param),
                "{given}"
            );
        }
    }
}
