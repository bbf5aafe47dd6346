//! Converts tools, attachments and output formats to the JSON of the Chat Completions API, and
//! parses the tool calls in its responses.

use serde_json::{Map, Value, json};

use crate::request::Request;
use crate::stream::untrusted_json;
use crate::tool::{Attachment, OutputFormat, Tool, ToolCall, ToolCallDelta, ToolChoice};

/// Maximum number of calls per response; further ones are ignored.
pub const MAX_CALLS: usize = 128;

/// Adds the tools and the output format, if the request has them.
pub fn insert_tools_and_format(body: &mut Map<String, Value>, request: &Request) {
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
        if let Some(choice) = choice(&request.tool_choice) {
            body.insert("tool_choice".to_owned(), choice);
        }
        if request.is_serial {
            body.insert("parallel_tool_calls".to_owned(), json!(false));
        }
    }
    if let Some(format) = format(&request.format) {
        body.insert("response_format".to_owned(), format);
    }
}

fn tool(tool: &Tool) -> Value {
    let mut function = json!({ "name": tool.name, "parameters": tool.parameters });
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
    }
    if let Some(strict) = tool.strict {
        function["strict"] = json!(strict);
    }
    json!({ "type": "function", "function": function })
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Named(name) => {
            Some(json!({ "type": "function", "function": { "name": name } }))
        }
    }
}

fn format(format: &OutputFormat) -> Option<Value> {
    match format {
        OutputFormat::Text => None,
        OutputFormat::Json => Some(json!({ "type": "json_object" })),
        OutputFormat::Schema(it) => {
            let mut schema = json!({ "name": it.name, "schema": it.schema });
            if let Some(description) = &it.description {
                schema["description"] = json!(description);
            }
            if let Some(strict) = it.strict {
                schema["strict"] = json!(strict);
            }
            Some(json!({ "type": "json_schema", "json_schema": schema }))
        }
    }
}

/// Returns a call as a part of the assistant message.
pub fn call(call: &ToolCall) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

/// Name of a document without one; the API requires a name.
const DEFAULT_FILE_NAME: &str = "document.pdf";

/// Returns the text followed by its attachments.
pub fn content_parts(text: &Value, attached: &[Attachment]) -> Value {
    let text = text.as_str().filter(|it| !it.is_empty());
    let text = text.map(|it| json!({ "type": "text", "text": it }));
    let attached = attached.iter().map(|it| match it.is_image() {
        true => json!({ "type": "image_url", "image_url": { "url": it.data_url() } }),
        false => {
            let name = it.name.as_deref().unwrap_or(DEFAULT_FILE_NAME);
            json!({ "type": "file", "file": { "filename": name, "file_data": it.data_url() } })
        }
    });
    text.into_iter().chain(attached).collect()
}

/// Returns the pieces of tool calls in a message. Some servers omit the index; their calls are in
/// order.
pub fn call_deltas(message: &Value) -> Vec<ToolCallDelta> {
    let Some(calls) = message.get("tool_calls").and_then(Value::as_array) else {
        return Vec::new();
    };
    let pieces = calls.iter().enumerate().map(|(at, call)| ToolCallDelta {
        index: call["index"]
            .as_u64()
            .and_then(|it| usize::try_from(it).ok())
            .unwrap_or(at),
        id: untrusted_json::text_at(call, "/id"),
        name: untrusted_json::text_at(call, "/function/name"),
        arguments: match &call["function"]["arguments"] {
            Value::String(text) => text.clone(),
            // Some servers send an object instead of text.
            Value::Object(object) => Value::Object(object.clone()).to_string(),
            _ => String::new(),
        },
    });
    pieces.filter(|it| it.index < MAX_CALLS).collect()
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;
    use serde_json::{Value, json};

    use super::call_deltas;
    use crate::openai_chat::request::body;
    use crate::openai_chat::variant::ChatVariant;
    use crate::provider_options::ProviderOptions;
    use crate::request::{Message, Request};
    use crate::tool::{
        AnsweredCall, Attachment, OutputFormat, OutputSchema, Tool, ToolCall, ToolCallDelta,
        ToolChoice,
    };

    fn sent(request: Request) -> Value {
        body(
            &request,
            &ProviderOptions::default(),
            ChatVariant::Compatible,
        )
    }

    fn with_tool(tool_choice: ToolChoice) -> Request {
        Request {
            tools: vec![Tool {
                name: "weather".to_owned(),
                description: Some("Tells it.".to_owned()),
                parameters: json!({ "type": "object" }),
                strict: Some(true),
            }],
            tool_choice,
            ..Request::default()
        }
    }

    #[test]
    fn a_tool_is_sent_with_all_its_fields() {
        let function = json!({
            "name": "weather", "description": "Tells it.",
            "parameters": { "type": "object" }, "strict": true,
        });

        assert_eq!(
            sent(with_tool(ToolChoice::Auto))["tools"],
            json!([{ "type": "function", "function": function }])
        );
    }

    #[test]
    fn a_tool_choice_is_sent_only_if_set() {
        let named = json!({ "type": "function", "function": { "name": "weather" } });
        for (choice, expected) in [
            (ToolChoice::Auto, Value::Null),
            (ToolChoice::None, json!("none")),
            (ToolChoice::Required, json!("required")),
            (ToolChoice::Named("weather".to_owned()), named),
        ] {
            assert_eq!(sent(with_tool(choice))["tool_choice"], expected);
        }
        let serial = Request {
            is_serial: true,
            ..with_tool(ToolChoice::Auto)
        };
        assert_eq!(sent(serial)["parallel_tool_calls"], false);
    }

    #[test]
    fn calls_and_results_are_messages_of_their_own_kinds() {
        let call = ToolCall {
            id: "call_1".to_owned(),
            name: "weather".to_owned(),
            arguments: "{}".to_owned(),
        };
        let with_call = Message {
            calls: vec![call],
            ..Message::new(PromptRole::Assistant, "")
        };
        let with_result = Message {
            answers: Some(AnsweredCall {
                id: "call_1".to_owned(),
                name: "weather".to_owned(),
            }),
            ..Message::new(PromptRole::User, "rain")
        };

        let sent = sent(Request {
            messages: vec![with_call, with_result],
            ..Request::default()
        });

        let function = json!({ "name": "weather", "arguments": "{}" });
        let calls = json!([{ "id": "call_1", "type": "function", "function": function }]);
        assert_eq!(
            sent["messages"],
            json!([
                { "role": "assistant", "content": null, "tool_calls": calls },
                { "role": "tool", "tool_call_id": "call_1", "content": "rain" },
            ])
        );
    }

    #[test]
    fn images_follow_the_text() {
        let message = Message {
            attachments: vec![Attachment {
                media_type: "image/png".to_owned(),
                data: "AAAA".to_owned(),
                name: None,
                instead: None,
            }],
            ..Message::new(PromptRole::User, "What is this?")
        };

        let sent = sent(Request {
            messages: vec![message],
            ..Request::default()
        });

        let url = json!({ "url": "data:image/png;base64,AAAA" });
        assert_eq!(
            sent["messages"][0]["content"],
            json!([
                { "type": "text", "text": "What is this?" },
                { "type": "image_url", "image_url": url },
            ])
        );
    }

    #[test]
    fn a_schema_is_sent_unchanged() {
        let format = OutputFormat::Schema(OutputSchema {
            name: "reply".to_owned(),
            description: None,
            schema: json!({ "type": "object" }),
            strict: Some(true),
        });

        let sent = sent(Request {
            format,
            ..Request::default()
        });

        let schema = json!({ "name": "reply", "schema": { "type": "object" }, "strict": true });
        assert_eq!(
            sent["response_format"],
            json!({ "type": "json_schema", "json_schema": schema })
        );
    }

    #[test]
    fn deltas_are_parsed_with_and_without_an_index() {
        let whole = json!({ "id": "a", "function": { "name": "f", "arguments": { "x": 1 } } });
        let more = json!({ "index": 3, "function": { "arguments": "{}" } });
        let far = json!({ "index": 1_000_000_000_u64, "function": {} });

        let read = call_deltas(&json!({ "tool_calls": [whole, more, far, 7] }));

        assert_eq!(
            read,
            [
                ToolCallDelta {
                    index: 0,
                    id: Some("a".to_owned()),
                    name: Some("f".to_owned()),
                    arguments: "{\"x\":1}".to_owned(),
                },
                ToolCallDelta {
                    index: 3,
                    arguments: "{}".to_owned(),
                    ..ToolCallDelta::default()
                },
                ToolCallDelta {
                    index: 3,
                    ..ToolCallDelta::default()
                },
            ]
        );
    }
}
