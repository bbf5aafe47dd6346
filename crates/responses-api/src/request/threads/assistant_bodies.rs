//! Parses and validates the bodies of requests to `/v1/assistants`.

use serde_json::{Map, Value, json};

use crate::request::chat::chat_completion;
use crate::request::error::RequestError;
use crate::request::object_reader;
use crate::request::object_reader::ObjectReader;
use crate::request::server_rules::ServerRules;
use crate::request::threads::{thread_bodies, thread_tools};

/// The fields that a request may name. `tool_resources` must be empty.
const KNOWN_FIELDS: [&str; 10] = [
    "description",
    "instructions",
    "metadata",
    "model",
    "name",
    "response_format",
    "temperature",
    "tool_resources",
    "tools",
    "top_p",
];

// The maximum lengths in characters, as in OpenAI's API.
const MAX_NAME_CHARS: usize = 256;
const MAX_DESCRIPTION_CHARS: usize = 512;
const MAX_INSTRUCTIONS_CHARS: usize = 256_000;

/// The settings of an assistant that a request contains.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantSettings {
    pub name: Option<String>,
    pub description: Option<String>,
    pub instructions: Option<String>,
    /// The declarations as the client sent them.
    pub tools: Option<Vec<Value>>,
    /// Texts of the client.
    pub metadata: Option<Map<String, Value>>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    /// As the client sent it.
    pub response_format: Option<Value>,
}

/// A new assistant.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAssistant {
    pub model: String,
    pub settings: AssistantSettings,
}

/// A change of an assistant; what is absent remains.
#[derive(Clone, Debug, PartialEq)]
pub struct AssistantChange {
    pub model: Option<String>,
    pub settings: AssistantSettings,
}

impl NewAssistant {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(body: &Map<String, Value>, rules: &ServerRules) -> Result<Self, RequestError> {
        object_reader::parse(body, |body| {
            body.require_known(&KNOWN_FIELDS);
            let model = model(body);
            if model.is_none() {
                body.missing("model", "`GET /v1/models` lists the models.");
            }
            Self {
                model: model.unwrap_or_default(),
                settings: AssistantSettings::read(body, rules),
            }
        })
    }
}

impl AssistantChange {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(body: &Map<String, Value>, rules: &ServerRules) -> Result<Self, RequestError> {
        object_reader::parse(body, |body| {
            body.require_known(&KNOWN_FIELDS);
            Self {
                model: model(body),
                settings: AssistantSettings::read(body, rules),
            }
        })
    }
}

fn model(body: &ObjectReader) -> Option<String> {
    let model = body.text("model")?;
    body.require(!model.is_empty(), "model", "the name of a model");
    Some(model.to_owned())
}

impl AssistantSettings {
    fn read(body: &ObjectReader, rules: &ServerRules) -> Self {
        let name = short_text(body, "name", MAX_NAME_CHARS);
        let description = short_text(body, "description", MAX_DESCRIPTION_CHARS);
        let instructions = short_text(body, "instructions", MAX_INSTRUCTIONS_CHARS);
        thread_tools::tools(body, rules);
        thread_tools::reject_resources(body);
        Self {
            name,
            description,
            instructions,
            tools: body.list("tools").map(<[Value]>::to_vec),
            metadata: thread_bodies::metadata_change(body),
            temperature: body.number("temperature", 0.0..=2.0),
            top_p: body.number("top_p", 0.0..=1.0),
            response_format: response_format(body),
        }
    }
}

fn short_text(body: &ObjectReader, name: &str, max_chars: usize) -> Option<String> {
    let text = body.text(name)?;
    let is_short = text.chars().count() <= max_chars;
    body.require(is_short, name, &format!("at most {max_chars} characters"));
    Some(text.to_owned())
}

/// Checks the format of the answers, which is returned unchanged.
fn response_format(body: &ObjectReader) -> Option<Value> {
    let given = body.get("response_format")?;
    match given.as_str() {
        Some(word) => body.require(word == "auto", "response_format", "auto, or an object"),
        None => {
            chat_completion::response_format(body);
        }
    }
    Some(json!(given))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{AssistantChange, KNOWN_FIELDS, NewAssistant};
    use crate::request::error::RequestError;
    use crate::request::server_rules::ServerRules;
    use crate::schemas::request_values;
    use crate::schemas::thread_bodies::{AssistantChangeBody, NewAssistantBody};

    const RULES: ServerRules = ServerRules {
        is_builtin_tool: |name| name == "dice",
        is_allowed_header: |_, _| true,
        has_web_search: false,
    };

    fn parse(body: &Value) -> Result<NewAssistant, RequestError> {
        NewAssistant::parse(body.as_object().unwrap(), &RULES)
    }

    #[test]
    fn a_new_assistant_requires_only_a_model() {
        let assistant = parse(&json!({ "model": "m", "name": null })).unwrap();

        assert_eq!(assistant.model, "m");
        assert_eq!(assistant.settings, Default::default());
        let error = parse(&json!({ "name": "Ada" })).unwrap_err();
        assert_eq!(error.code, "missing_required_parameter");
        assert_eq!(error.param, "model");
    }

    #[test]
    fn tools_and_formats_are_kept_as_they_were_sent() {
        let tools = json!([
            { "type": "function", "function": { "name": "f", "strict": true } },
            { "type": "troupe:dice" },
        ]);
        let schema = json!({ "name": "s", "schema": { "type": "object" } });
        let format = json!({ "type": "json_schema", "json_schema": schema });
        let body = json!({ "model": "m", "tools": tools, "response_format": format });

        let assistant = parse(&body).unwrap();

        assert_eq!(json!(assistant.settings.tools), tools);
        assert_eq!(assistant.settings.response_format, Some(format));
        let auto = parse(&json!({ "model": "m", "response_format": "auto" })).unwrap();
        assert_eq!(auto.settings.response_format, Some(json!("auto")));
    }

    #[test]
    fn a_change_contains_only_what_was_sent() {
        let body = json!({ "metadata": {}, "tools": [], "top_p": 0.5 });

        let change = AssistantChange::parse(body.as_object().unwrap(), &RULES).unwrap();

        assert_eq!(change.model, None);
        assert_eq!(change.settings.tools, Some(Vec::new()));
        assert_eq!(change.settings.metadata, Some(Default::default()));
        assert_eq!(change.settings.top_p, Some(0.5));
        assert_eq!(change.settings.instructions, None);
    }

    #[test]
    fn an_invalid_assistant_is_rejected_with_the_path_of_its_field() {
        let tool = |tool: Value| json!({ "tools": [tool] });
        let named = |name: &str| json!({ "type": "function", "function": { "name": name } });
        for (fields, code, param) in [
            (json!({ "wobble": 1 }), "unknown_parameter", "wobble"),
            (json!({ "model": 1 }), "invalid_type", "model"),
            (json!({ "model": "" }), "invalid_value", "model"),
            (json!({ "name": "x".repeat(257) }), "invalid_value", "name"),
            (
                json!({ "description": "x".repeat(513) }),
                "invalid_value",
                "description",
            ),
            (
                json!({ "instructions": "x".repeat(256_001) }),
                "invalid_value",
                "instructions",
            ),
            (json!({ "temperature": 3 }), "invalid_value", "temperature"),
            (json!({ "top_p": "1" }), "invalid_type", "top_p"),
            (
                json!({ "response_format": "json" }),
                "invalid_value",
                "response_format",
            ),
            (
                json!({ "response_format": { "type": "xml" } }),
                "invalid_value",
                "response_format.type",
            ),
            (
                json!({ "metadata": { "a": 1 } }),
                "invalid_type",
                "metadata.a",
            ),
            (
                tool(json!({ "type": "file_search" })),
                "unsupported_tool",
                "tools[0].type",
            ),
            (
                tool(json!({ "type": "code_interpreter" })),
                "unsupported_tool",
                "tools[0].type",
            ),
            (
                tool(json!({ "type": "troupe:none" })),
                "unsupported_tool",
                "tools[0].type",
            ),
            (
                tool(json!({ "type": "function", "name": "f" })),
                "unknown_parameter",
                "tools[0].name",
            ),
            (
                tool(json!({ "type": "function" })),
                "missing_required_parameter",
                "tools[0].function",
            ),
            (
                tool(named("two words")),
                "invalid_value",
                "tools[0].function.name",
            ),
            (
                json!({ "tools": [named("f"), named("f")] }),
                "invalid_value",
                "tools[1].name",
            ),
            (
                json!({ "tools": vec![named("f"); 129] }),
                "invalid_value",
                "tools",
            ),
            (
                json!({ "tool_resources": { "file_search": {} } }),
                "unsupported_tool",
                "tool_resources",
            ),
        ] {
            let mut body = json!({ "model": "m" });
            for (name, value) in fields.as_object().unwrap() {
                body[name] = value.clone();
            }

            let error = parse(&body).unwrap_err();

            assert_eq!(
                (error.code, error.param.as_str()),
                (code, param),
                "{fields}"
            );
        }
        for empty in [json!({}), json!(null)] {
            assert!(parse(&json!({ "model": "m", "tool_resources": empty })).is_ok());
        }
    }

    #[test]
    fn the_message_names_the_unsupported_tool() {
        let body = json!({ "model": "m", "tools": [{ "type": "file_search" }] });

        let error = parse(&body).unwrap_err();

        let expected =
            "Unsupported tool type 'file_search' at tools[0]; supported: function, troupe:*.";
        assert_eq!(error.message, expected);
    }

    #[test]
    fn the_api_document_has_every_field() {
        let changed = request_values::field_names::<AssistantChangeBody>();

        assert_eq!(changed, KNOWN_FIELDS);
        assert_eq!(
            request_values::field_names::<NewAssistantBody>(),
            KNOWN_FIELDS
        );
    }
}
