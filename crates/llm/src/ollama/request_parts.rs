//! Converts messages, tools, images and output formats to the JSON of Ollama's native API.

use serde_json::{Value, json};

use crate::openai_chat::request;
use crate::openai_chat::variant::ChatVariant;
use crate::reasoning::thought::Thought;
use crate::request::{Message, Request};
use crate::stream::untrusted_json;
use crate::tool::{OutputFormat, Tool, ToolCall, ToolChoice};

/// Returns one message of the prompt.
pub fn message(message: &Message) -> Value {
    if let Some(call) = &message.answers {
        return json!({ "role": "tool", "tool_name": call.name, "content": message.content });
    }
    let plain = Message::new(message.role, &message.content);
    let name = message.name.clone();
    let mut sent = request::message(&Message { name, ..plain }, ChatVariant::Compatible);
    if !message.calls.is_empty() {
        sent["tool_calls"] = message.calls.iter().map(call).collect();
    }
    let thoughts: String = message.thoughts.iter().filter_map(Thought::text).collect();
    if !thoughts.is_empty() {
        sent["thinking"] = json!(thoughts);
    }
    let images = message.attachments.iter().filter(|it| it.is_image());
    let pictures: Vec<&String> = images.map(|it| &it.data).collect();
    if !pictures.is_empty() {
        sent["images"] = json!(pictures);
    }
    sent
}

fn call(call: &ToolCall) -> Value {
    let arguments = untrusted_json::arguments_object(&call.arguments);
    json!({ "function": { "name": call.name, "arguments": arguments } })
}

/// Adds the tools and the output format. A tool call cannot be forced; see
/// [`Capability::RequiredToolCall`](crate::provider::Capability::RequiredToolCall). If one of
/// several tools is required, only that one is sent.
pub fn insert_tools_and_format(body: &mut Value, request: &Request) {
    let is_callable = |it: &&Tool| match &request.tool_choice {
        ToolChoice::Auto | ToolChoice::Required => true,
        ToolChoice::None => false,
        ToolChoice::Named(name) => it.name == *name,
    };
    let tools: Vec<Value> = request.tools.iter().filter(is_callable).map(tool).collect();
    if !tools.is_empty() {
        body["tools"] = json!(tools);
    }
    match &request.format {
        OutputFormat::Text => {}
        OutputFormat::Json => body["format"] = json!("json"),
        OutputFormat::Schema(it) => body["format"] = it.schema.clone(),
    }
}

fn tool(tool: &Tool) -> Value {
    let mut function = json!({ "name": tool.name, "parameters": tool.parameters });
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
    }
    json!({ "type": "function", "function": function })
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;
    use serde_json::{Value, json};

    use super::{insert_tools_and_format, message};
    use crate::request::{Message, Request};
    use crate::tool::{
        AnsweredCall, Attachment, OutputFormat, OutputSchema, Tool, ToolCall, ToolChoice,
    };

    #[test]
    fn call_arguments_are_objects_and_results_have_a_name() {
        let call = |arguments: &str| ToolCall {
            id: "1".to_owned(),
            name: "weather".to_owned(),
            arguments: arguments.to_owned(),
        };
        let called = Message {
            calls: vec![call("{\"city\":\"Oslo\"}"), call(""), call("Oslo")],
            ..Message::new(PromptRole::Assistant, "")
        };
        let result = Message {
            answers: Some(AnsweredCall {
                id: "1".to_owned(),
                name: "weather".to_owned(),
            }),
            ..Message::new(PromptRole::User, "rain")
        };

        let sent =
            |arguments: Value| json!({ "function": { "name": "weather", "arguments": arguments } });
        assert_eq!(
            message(&called),
            json!({ "role": "assistant", "content": "", "tool_calls": [
                sent(json!({ "city": "Oslo" })), sent(json!({})), sent(json!({ "arguments": "Oslo" })),
            ] })
        );
        assert_eq!(
            message(&result),
            json!({ "role": "tool", "tool_name": "weather", "content": "rain" })
        );
    }

    #[test]
    fn images_are_sent_in_their_own_field() {
        let shown = Message {
            attachments: vec![Attachment {
                media_type: "image/png".to_owned(),
                data: "AAAA".to_owned(),
                name: None,
                instead: None,
            }],
            ..Message::new(PromptRole::User, "What is this?").with_name("Eve")
        };

        assert_eq!(
            message(&shown),
            json!({ "role": "user", "content": "Eve: What is this?", "images": ["AAAA"] })
        );
    }

    #[test]
    fn only_callable_tools_are_sent() {
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            description: Some("Tells it.".to_owned()),
            parameters: json!({ "type": "object" }),
            strict: Some(true),
        };
        let shown = |tool_choice| {
            let mut body = json!({});
            let request = Request {
                tools: vec![tool("a"), tool("b")],
                tool_choice,
                ..Request::default()
            };
            insert_tools_and_format(&mut body, &request);
            body
        };
        let function = |name| json!({ "name": name, "description": "Tells it.", "parameters": { "type": "object" } });
        let sent = |name| json!({ "type": "function", "function": function(name) });

        assert_eq!(
            shown(ToolChoice::Auto),
            json!({ "tools": [sent("a"), sent("b")] })
        );
        let named = ToolChoice::Named("b".to_owned());
        assert_eq!(shown(named), json!({ "tools": [sent("b")] }));
        assert_eq!(shown(ToolChoice::None), json!({}));
    }

    #[test]
    fn an_output_format_is_json_or_the_schema() {
        let format = |format| {
            let mut body = json!({});
            let request = Request {
                format,
                ..Request::default()
            };
            insert_tools_and_format(&mut body, &request);
            body["format"].clone()
        };
        let schema = OutputSchema {
            name: "reply".to_owned(),
            description: None,
            schema: json!({ "type": "object" }),
            strict: None,
        };

        assert_eq!(format(OutputFormat::Text), Value::Null);
        assert_eq!(format(OutputFormat::Json), "json");
        assert_eq!(
            format(OutputFormat::Schema(schema)),
            json!({ "type": "object" })
        );
    }
}
