//! Converts messages, tools, attachments and output formats to the JSON of the Gemini API.

use std::iter;

use serde_json::{Map, Value, json};

use crate::gemini::schema;
use crate::request::Request;
use crate::role_alternation::{ContentBlock, RoleGroup};
use crate::stream::untrusted_json;
use crate::tool::{Attachment, OutputFormat, Tool, ToolChoice};

/// Replaces the signature of a call, which models require since the third generation: the API's
/// documented value for calls without a signature, for example of another model.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Returns a content object with the blocks of one role group.
pub fn content(turn: &RoleGroup, model: &str) -> Value {
    let role = match turn.is_model {
        true => "model",
        false => "user",
    };
    // Of parallel calls, the API signs only the first one.
    let is_signed = |it: &ContentBlock| matches!(it, ContentBlock::Call(_, Some(_)));
    let lacks_signatures = is_third_generation(model) && !turn.blocks.iter().any(is_signed);
    let parts = turn.blocks.iter();
    let parts: Vec<Value> = parts
        .flat_map(|it| self::parts(it, model, lacks_signatures))
        .collect();
    json!({ "role": role, "parts": parts })
}

/// Returns the parts of a block; reasoning of other APIs is left out.
fn parts(block: &ContentBlock, model: &str, lacks_signatures: bool) -> Vec<Value> {
    vec![match block {
        ContentBlock::Thought(_) => return Vec::new(),
        ContentBlock::Text(text) => json!({ "text": text }),
        ContentBlock::Attachment(it) => inline_data(it),
        ContentBlock::Call(it, signature) => {
            let args = untrusted_json::arguments_object(&it.arguments);
            let mut part = json!({ "functionCall": { "name": it.name, "args": args } });
            let replacement = lacks_signatures.then_some(NO_SIGNATURE);
            if let Some(signature) = signature.or(replacement) {
                part["thoughtSignature"] = json!(signature);
            }
            part
        }
        ContentBlock::Result(call, text, files) => {
            let response =
                untrusted_json::parse_object(text).unwrap_or_else(|| json!({ "result": text }));
            let mut response = json!({ "name": call.name, "response": response });
            let files: Vec<Value> = files.iter().map(inline_data).collect();
            // Generations before the third accept files only next to the result.
            if !files.is_empty() && is_third_generation(model) {
                response["parts"] = json!(files);
                return vec![json!({ "functionResponse": response })];
            }
            let result = json!({ "functionResponse": response });
            return iter::once(result).chain(files).collect();
        }
    }]
}

fn inline_data(file: &Attachment) -> Value {
    json!({ "inlineData": { "mimeType": file.media_type, "data": file.data } })
}

/// Returns whether a model is of the third or a later generation. These require signatures, and accept
/// files in results.
fn is_third_generation(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    let rest = name.strip_prefix("gemini-").unwrap_or_default();
    let generation: String = rest.chars().take_while(char::is_ascii_digit).collect();
    generation.parse::<u32>().is_ok_and(|it| it >= 3)
}

/// Adds the tools and the tool choice.
pub fn insert_tools(body: &mut Value, request: &Request) {
    if request.tools.is_empty() {
        return;
    }
    let declared: Vec<Value> = request.tools.iter().map(tool).collect();
    body["tools"] = json!([{ "functionDeclarations": declared }]);
    if let Some(choice) = choice(&request.tool_choice) {
        body["toolConfig"] = json!({ "functionCallingConfig": choice });
    }
}

fn tool(tool: &Tool) -> Value {
    let mut sent = json!({ "name": tool.name });
    if let Some(description) = &tool.description {
        sent["description"] = json!(description);
    }
    // A function without arguments must not have parameters; the API rejects an empty object.
    let properties = tool.parameters["properties"].as_object();
    if properties.is_some_and(|it| !it.is_empty()) {
        sent["parametersJsonSchema"] = schema::supported_schema(&tool.parameters);
    }
    sent
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({ "mode": "NONE" })),
        ToolChoice::Required => Some(json!({ "mode": "ANY" })),
        ToolChoice::Named(name) => Some(json!({ "mode": "ANY", "allowedFunctionNames": [name] })),
    }
}

/// Returns the output format as a part of `generationConfig`.
pub fn format(format: &OutputFormat) -> Map<String, Value> {
    let mut config = Map::new();
    if *format != OutputFormat::Text {
        config.insert("responseMimeType".to_owned(), json!("application/json"));
    }
    if let OutputFormat::Schema(it) = format {
        let schema = schema::supported_schema(&it.schema);
        config.insert("responseJsonSchema".to_owned(), schema);
    }
    config
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;
    use serde_json::{Value, json};

    use super::{content, format, insert_tools};
    use crate::request::{Message, Request};
    use crate::role_alternation::AlternatingMessages;
    use crate::tool::{
        AnsweredCall, Attachment, OutputFormat, OutputSchema, Tool, ToolCall, ToolChoice,
    };

    fn tool_result(text: &str) -> Message {
        let answers = Some(AnsweredCall {
            id: "1".to_owned(),
            name: "weather".to_owned(),
        });
        Message {
            answers,
            ..Message::new(PromptRole::User, text)
        }
    }

    #[test]
    fn calls_and_results_are_parts_by_name() {
        let call = ToolCall {
            id: "1".to_owned(),
            name: "weather".to_owned(),
            arguments: "{\"city\":\"Oslo\"}".to_owned(),
        };
        let messages = vec![
            Message {
                attachments: vec![Attachment {
                    media_type: "image/png".to_owned(),
                    data: "AAAA".to_owned(),
                    name: None,
                    instead: None,
                }],
                ..Message::new(PromptRole::User, "Is it sunny here?")
            },
            Message {
                calls: vec![call],
                ..Message::new(PromptRole::Assistant, "")
            },
            tool_result("rain"),
            tool_result("{\"sky\":\"grey\"}"),
        ];
        let request = Request {
            messages,
            ..Request::default()
        };

        let turns = AlternatingMessages::from_messages(&request).groups;
        let sent: Vec<Value> = turns
            .iter()
            .map(|it| content(it, "gemini-2.5-pro"))
            .collect();

        let response =
            |it: Value| json!({ "functionResponse": { "name": "weather", "response": it } });
        assert_eq!(
            Value::from(sent),
            json!([
                { "role": "user", "parts": [
                    { "text": "Is it sunny here?" },
                    { "inlineData": { "mimeType": "image/png", "data": "AAAA" } },
                ] },
                { "role": "model", "parts": [
                    { "functionCall": { "name": "weather", "args": { "city": "Oslo" } } },
                ] },
                { "role": "user", "parts": [
                    response(json!({ "result": "rain" })), response(json!({ "sky": "grey" })),
                ] },
            ])
        );
        let newer = content(&turns[1], "models/gemini-3.5-flash");
        assert!(newer["parts"][0]["thoughtSignature"].is_string());
    }

    #[test]
    fn pictures_of_a_result_are_in_it_or_next_to_it() {
        let picture = Attachment {
            media_type: "image/png".to_owned(),
            data: "AAAA".to_owned(),
            name: None,
            instead: None,
        };
        let shown = Message {
            attachments: vec![picture],
            ..tool_result("a map")
        };
        let request = Request {
            messages: vec![shown],
            ..Request::default()
        };
        let groups = AlternatingMessages::from_messages(&request).groups;

        let older = content(&groups[0], "gemini-2.5-pro");
        let newer = content(&groups[0], "gemini-3-pro");

        let data = json!({ "inlineData": { "mimeType": "image/png", "data": "AAAA" } });
        let response = json!({ "name": "weather", "response": { "result": "a map" } });
        assert_eq!(
            older["parts"],
            json!([{ "functionResponse": response }, data])
        );
        let mut with_parts = response;
        with_parts["parts"] = json!([data]);
        assert_eq!(newer["parts"], json!([{ "functionResponse": with_parts }]));
    }

    #[test]
    fn a_tool_is_declared_and_a_tool_choice_is_sent_only_if_set() {
        let named = ToolChoice::Named("weather".to_owned());
        for (tool_choice, expected) in [
            (ToolChoice::Auto, Value::Null),
            (ToolChoice::None, json!({ "mode": "NONE" })),
            (ToolChoice::Required, json!({ "mode": "ANY" })),
            (
                named,
                json!({ "mode": "ANY", "allowedFunctionNames": ["weather"] }),
            ),
        ] {
            let tool = |name: &str, parameters| Tool {
                name: name.to_owned(),
                description: None,
                parameters,
                strict: Some(true),
            };
            let city = json!({ "city": { "type": "string" } });
            let request = Request {
                tools: vec![
                    tool("weather", json!({ "$schema": "x", "properties": city })),
                    tool("time", json!({ "type": "object", "properties": {} })),
                ],
                tool_choice,
                ..Request::default()
            };
            let mut body = json!({});

            insert_tools(&mut body, &request);

            let weather =
                json!({ "name": "weather", "parametersJsonSchema": { "properties": city } });
            assert_eq!(
                body["tools"],
                json!([{ "functionDeclarations": [weather, { "name": "time" }] }])
            );
            assert_eq!(body["toolConfig"]["functionCallingConfig"], expected);
        }
    }

    #[test]
    fn an_output_format_is_a_media_type_with_an_optional_schema() {
        let schema = OutputFormat::Schema(OutputSchema {
            name: "reply".to_owned(),
            description: None,
            schema: json!({ "type": "object" }),
            strict: Some(true),
        });
        let sent = |it| Value::Object(format(it));
        let json = json!({ "responseMimeType": "application/json" });

        assert_eq!(sent(&OutputFormat::Text), json!({}));
        assert_eq!(sent(&OutputFormat::Json), json);
        let mut with_schema = json;
        with_schema["responseJsonSchema"] = json!({ "type": "object" });
        assert_eq!(sent(&schema), with_schema);
    }
}
