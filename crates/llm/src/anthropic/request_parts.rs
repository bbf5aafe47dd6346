//! Converts messages, tools, attachments and output formats to the JSON of Anthropic's Messages
//! API.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::reasoning::thought::Thought;
use crate::request::Request;
use crate::role_alternation::{AlternatingMessages, ContentBlock, RoleGroup};
use crate::stream::untrusted_json;
use crate::tool::{Attachment, OutputFormat, Tool, ToolChoice};

/// Returns a message with a plain text or a list of blocks.
pub fn message(turn: &RoleGroup) -> Value {
    let role = match turn.is_model {
        true => "assistant",
        false => "user",
    };
    let content = match &turn.blocks[..] {
        [ContentBlock::Text(text)] => json!(text),
        blocks => blocks.iter().map(block).collect(),
    };
    json!({ "role": role, "content": content })
}

fn block(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text(text) => json!({ "type": "text", "text": text }),
        ContentBlock::Attachment(it) => attachment(it),
        ContentBlock::Call(it, _) => {
            let input = untrusted_json::arguments_object(&it.arguments);
            json!({ "type": "tool_use", "id": sanitize_id(&it.id), "name": it.name, "input": input })
        }
        ContentBlock::Thought(it) => thought(it),
        ContentBlock::Result(call, text, files) => {
            let content = result_content(text, files);
            json!({ "type": "tool_result", "tool_use_id": sanitize_id(&call.id), "content": content })
        }
    }
}

fn attachment(file: &Attachment) -> Value {
    let source = json!({ "type": "base64", "media_type": file.media_type, "data": file.data });
    match file.is_image() {
        true => json!({ "type": "image", "source": source }),
        false => json!({ "type": "document", "source": source, "title": file.name }),
    }
}

/// Returns the content of a tool result: a plain text, or a list of blocks. Text blocks must not be
/// empty.
fn result_content(text: &str, files: &[Attachment]) -> Value {
    if files.is_empty() {
        return json!(text);
    }
    let text = Some(text).filter(|it| !it.trim().is_empty());
    let text = text.map(|it| json!({ "type": "text", "text": it }));
    text.into_iter()
        .chain(files.iter().map(attachment))
        .collect()
}

/// Returns a thinking block. Role groups contain no other variants.
fn thought(thought: &Thought) -> Value {
    match thought {
        Thought::Redacted { data } => json!({ "type": "redacted_thinking", "data": data }),
        Thought::Signed { text, signature } => {
            json!({ "type": "thinking", "thinking": text, "signature": signature })
        }
        Thought::Text { .. } | Thought::CallSignature { .. } => Value::Null,
    }
}

/// Replaces characters that this API rejects in ids, because ids from other APIs may contain them.
fn sanitize_id(id: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    id.chars()
        .map(|it| if is_plain(it) { it } else { '_' })
        .collect()
}

/// Adds the tools and the tool choice.
pub fn insert_tools(
    body: &mut Map<String, Value>,
    request: &Request,
    prompt: &AlternatingMessages,
) {
    if request.tools.is_empty() {
        // The API rejects a prompt with tool calls if no tool is declared.
        if prompt.has_calls() {
            body.insert("tools".to_owned(), past_tools(prompt));
            body.insert("tool_choice".to_owned(), json!({ "type": "none" }));
        }
        return;
    }
    body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    if let Some(choice) = choice(request) {
        body.insert("tool_choice".to_owned(), choice);
    }
}

/// Returns declarations, without arguments, of the tools that the prompt has called.
fn past_tools(prompt: &AlternatingMessages) -> Value {
    let blocks = prompt.groups.iter().flat_map(|it| &it.blocks);
    let names = blocks.filter_map(|it| match it {
        ContentBlock::Call(it, _) => Some(it.name.as_str()),
        ContentBlock::Result(it, ..) => Some(it.name.as_str()),
        _ => None,
    });
    let names: BTreeSet<&str> = names.collect();
    let declared = names
        .into_iter()
        .map(|it| json!({ "name": it, "input_schema": { "type": "object" } }));
    declared.collect()
}

fn tool(tool: &Tool) -> Value {
    let mut sent = json!({ "name": tool.name, "input_schema": tool.parameters });
    if !sent["input_schema"].is_object() {
        sent["input_schema"] = json!({});
    }
    // Unlike other APIs, this one rejects a schema without a type.
    if sent["input_schema"].get("type").is_none() {
        sent["input_schema"]["type"] = json!("object");
    }
    if let Some(description) = &tool.description {
        sent["description"] = json!(description);
    }
    if tool.strict == Some(true) {
        sent["strict"] = json!(true);
    }
    sent
}

fn choice(request: &Request) -> Option<Value> {
    let mut choice = match &request.tool_choice {
        ToolChoice::None => return Some(json!({ "type": "none" })),
        ToolChoice::Auto if !request.is_serial => return None,
        ToolChoice::Auto => json!({ "type": "auto" }),
        ToolChoice::Required => json!({ "type": "any" }),
        ToolChoice::Named(name) => json!({ "type": "tool", "name": name }),
    };
    if request.is_serial {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    Some(choice)
}

/// Returns the output format as a part of `output_config`. JSON without a schema cannot be
/// requested; see [`Capability::Json`](crate::provider::Capability::Json).
pub fn format(format: &OutputFormat) -> Map<String, Value> {
    let mut output = Map::new();
    if let OutputFormat::Schema(it) = format {
        let format = json!({ "type": "json_schema", "schema": it.schema });
        output.insert("format".to_owned(), format);
    }
    output
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;
    use serde_json::{Map, Value, json};

    use super::{block, format, insert_tools, message};
    use crate::request::{Message, Request};
    use crate::role_alternation::{AlternatingMessages, ContentBlock};
    use crate::tool::{
        AnsweredCall, Attachment, OutputFormat, OutputSchema, Tool, ToolCall, ToolChoice,
    };

    fn request_with_call() -> Request {
        let call = ToolCall {
            id: "call|1".to_owned(),
            name: "weather".to_owned(),
            arguments: "{\"city\":\"Oslo\"}".to_owned(),
        };
        let answers = Some(AnsweredCall {
            id: "call|1".to_owned(),
            name: "weather".to_owned(),
        });
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
                ..Message::new(PromptRole::Assistant, "Let me see.")
            },
            Message {
                answers,
                ..Message::new(PromptRole::User, "rain")
            },
        ];
        Request {
            messages,
            ..Request::default()
        }
    }

    fn tools(request: &Request) -> Value {
        let mut body = Map::new();
        insert_tools(
            &mut body,
            request,
            &AlternatingMessages::from_messages(request),
        );
        Value::Object(body)
    }

    fn with_tool(tool_choice: ToolChoice, is_serial: bool) -> Request {
        Request {
            tools: vec![Tool {
                name: "weather".to_owned(),
                description: Some("Tells it.".to_owned()),
                parameters: json!({ "properties": {} }),
                strict: Some(true),
            }],
            tool_choice,
            is_serial,
            ..Request::default()
        }
    }

    #[test]
    fn a_message_with_more_than_text_is_sent_as_blocks() {
        let request = request_with_call();

        let sent: Vec<Value> = AlternatingMessages::from_messages(&request)
            .groups
            .iter()
            .map(message)
            .collect();

        let source = json!({ "type": "base64", "media_type": "image/png", "data": "AAAA" });
        let input = json!({ "city": "Oslo" });
        assert_eq!(
            Value::from(sent),
            json!([
                { "role": "user", "content": [
                    { "type": "text", "text": "Is it sunny here?" },
                    { "type": "image", "source": source },
                ] },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "Let me see." },
                    { "type": "tool_use", "id": "call_1", "name": "weather", "input": input },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "call_1", "content": "rain" },
                ] },
            ])
        );
    }

    #[test]
    fn a_tool_is_always_sent_with_a_valid_schema() {
        assert_eq!(
            tools(&with_tool(ToolChoice::Auto, false)),
            json!({ "tools": [{
                "name": "weather", "description": "Tells it.", "strict": true,
                "input_schema": { "type": "object", "properties": {} },
            }] })
        );
    }

    #[test]
    fn a_tool_choice_is_sent_only_if_set() {
        let named = ToolChoice::Named("weather".to_owned());
        for (choice, is_serial, expected) in [
            (ToolChoice::None, true, json!({ "type": "none" })),
            (ToolChoice::Required, false, json!({ "type": "any" })),
            (named, false, json!({ "type": "tool", "name": "weather" })),
            (
                ToolChoice::Auto,
                true,
                json!({ "type": "auto", "disable_parallel_tool_use": true }),
            ),
        ] {
            let sent = tools(&with_tool(choice, is_serial));

            assert_eq!(sent["tool_choice"], expected);
        }
    }

    #[test]
    fn a_prompt_with_past_calls_declares_those_tools_and_forbids_new_calls() {
        assert_eq!(
            tools(&request_with_call()),
            json!({
                "tools": [{ "name": "weather", "input_schema": { "type": "object" } }],
                "tool_choice": { "type": "none" },
            })
        );
        assert_eq!(tools(&Request::default()), json!({}));
    }

    #[test]
    fn only_a_schema_sets_the_output_format() {
        let schema = OutputFormat::Schema(OutputSchema {
            name: "reply".to_owned(),
            description: None,
            schema: json!({ "type": "object" }),
            strict: Some(true),
        });

        let expected = json!({ "type": "json_schema", "schema": { "type": "object" } });
        assert_eq!(format(&schema).get("format"), Some(&expected));
        assert!(format(&OutputFormat::Text).is_empty());
    }

    #[test]
    fn a_tool_result_contains_its_pictures() {
        let picture = Attachment {
            media_type: "image/png".to_owned(),
            data: "AAAA".to_owned(),
            name: None,
            instead: None,
        };
        let call = AnsweredCall {
            id: "1".to_owned(),
            name: "look".to_owned(),
        };
        let files = [picture];

        let sent = block(&ContentBlock::Result(&call, "a map", &files));

        let source = json!({ "type": "base64", "media_type": "image/png", "data": "AAAA" });
        let content =
            json!([{ "type": "text", "text": "a map" }, { "type": "image", "source": source }]);
        assert_eq!(
            sent,
            json!({ "type": "tool_result", "tool_use_id": "1", "content": content })
        );
    }

    #[test]
    fn a_document_is_sent_as_a_document_block() {
        let attachment = Attachment {
            media_type: "application/pdf".to_owned(),
            data: "JVBERi0=".to_owned(),
            name: Some("a.pdf".to_owned()),
            instead: None,
        };

        let sent = block(&ContentBlock::Attachment(&attachment));

        let source = json!({
            "type": "base64", "media_type": "application/pdf", "data": "JVBERi0=",
        });
        assert_eq!(
            sent,
            json!({ "type": "document", "source": source, "title": "a.pdf" })
        );
    }
}
