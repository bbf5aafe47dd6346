//! Tools, images and output formats in the wire format of every kind.

use agent::model_call::complete;
use agent::outcome::{CallEnd, ModelOutput};
use agent::trim::ReplyTrimmer;
use base::prompt_role::PromptRole;
use llm::delta::FinishReason;
use llm::provider::Capability;
use llm::registry::ProviderKind;
use llm::request::{Message, Request};
use llm::tool::{AnsweredCall, Attachment, OutputFormat, OutputSchema, Tool, ToolCall, ToolChoice};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::kinds::{ALL, provider, recorded, sends, stream};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::model_call;
use crate::support::model_call::patient_watches;

/// Returns the request that follows a tool call.
fn request() -> Request {
    let call = Message {
        calls: vec![ToolCall {
            id: "call_1".to_owned(),
            name: "weather".to_owned(),
            arguments: "{\"city\":\"Oslo\"}".to_owned(),
        }],
        ..Message::new(PromptRole::Assistant, "Let me see.")
    };
    let result = Message {
        answers: Some(AnsweredCall {
            id: "call_1".to_owned(),
            name: "weather".to_owned(),
        }),
        ..Message::new(PromptRole::User, "rain")
    };
    let image = Message {
        attachments: vec![Attachment {
            media_type: "image/png".to_owned(),
            data: "AAAA".to_owned(),
            name: None,
            instead: None,
        }],
        ..Message::new(PromptRole::User, "Like here?")
    };
    Request {
        messages: vec![Message::new(PromptRole::User, "Hi."), call, result, image],
        tools: vec![Tool {
            name: "weather".to_owned(),
            description: Some("Tells it.".to_owned()),
            parameters: parameters(),
            strict: None,
        }],
        ..model_call::request()
    }
}

fn parameters() -> Value {
    json!({ "type": "object", "properties": { "city": { "type": "string" } } })
}

async fn call_model(
    kind: ProviderKind,
    script: ResponseScript,
    request: &Request,
) -> (ModelOutput, Value) {
    let upstream = FakeProvider::start().await;
    upstream.always(script);
    let mut output = String::new();
    let output = complete(
        &*provider(kind, &upstream),
        request,
        ReplyTrimmer::new(&["Ada"], &["Bob"]),
        &patient_watches(),
        &mut output,
        &CancellationToken::new(),
    )
    .await;
    (output, upstream.body(0).clone())
}

/// Returns the body that a provider of this kind receives for the request.
async fn sent(kind: ProviderKind, request: &Request) -> Value {
    call_model(kind, sends(kind, recorded(kind, "hello").unwrap()), request)
        .await
        .1
}

#[tokio::test]
async fn tool_calls_are_read_next_to_text_in_every_dialect() {
    for kind in ALL {
        let bytes = recorded(kind, "calls").unwrap();
        let whole = sends(kind, &bytes);
        let byte_by_byte = bytes.iter().fold(stream(kind), |it, byte| it.raw([*byte]));
        for script in [whole, byte_by_byte] {
            let (output, _) = call_model(kind, script, &request()).await;

            assert_eq!(
                output.end,
                CallEnd::Answered(FinishReason::ToolCalls),
                "{kind}"
            );
            assert_eq!(output.text, "Let me see.", "{kind}");
            let calls = output.calls.iter();
            let calls: Vec<_> = calls.map(|it| (&*it.name, &*it.arguments)).collect();
            assert_eq!(
                calls,
                [("weather", "{\"city\":\"Grøt\"}"), ("time", "{}")],
                "{kind}"
            );
            let ids: Vec<&str> = output.calls.iter().map(|it| &*it.id).collect();
            let own = match kind {
                ProviderKind::Anthropic => ["toolu_1", "toolu_2"],
                ProviderKind::OpenaiCompatible => ["call_1", "call_2"],
                // The other kinds have no call ids.
                _ => ["", ""],
            };
            assert_eq!(ids, own, "{kind}");
        }
    }
}

#[tokio::test]
async fn tools_calls_results_and_images_are_sent_in_the_format_of_every_kind() {
    for kind in ALL {
        let body = sent(kind, &request()).await;

        let city = json!({ "city": "Oslo" });
        let (tools, messages) = match kind {
            ProviderKind::Anthropic => (
                json!([{ "name": "weather", "description": "Tells it.", "input_schema": parameters() }]),
                json!([
                    { "role": "user", "content": [
                        { "type": "text", "text": "Hi.", "cache_control": { "type": "ephemeral" } },
                    ] },
                    { "role": "assistant", "content": [
                        { "type": "text", "text": "Let me see." },
                        { "type": "tool_use", "id": "call_1", "name": "weather", "input": city },
                    ] },
                    { "role": "user", "content": [
                        { "type": "tool_result", "tool_use_id": "call_1", "content": "rain" },
                        { "type": "text", "text": "Like here?" },
                        { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
                    ] },
                ]),
            ),
            ProviderKind::Gemini => (
                json!([{ "functionDeclarations": [
                    { "name": "weather", "description": "Tells it.", "parametersJsonSchema": parameters() },
                ] }]),
                json!([
                    { "role": "user", "parts": [{ "text": "Hi." }] },
                    { "role": "model", "parts": [
                        { "text": "Let me see." }, { "functionCall": { "name": "weather", "args": city } },
                    ] },
                    { "role": "user", "parts": [
                        { "functionResponse": { "name": "weather", "response": { "result": "rain" } } },
                        { "text": "Like here?" },
                        { "inlineData": { "mimeType": "image/png", "data": "AAAA" } },
                    ] },
                ]),
            ),
            ProviderKind::Ollama => (
                chat_tools(),
                json!([
                    { "role": "user", "content": "Hi." },
                    { "role": "assistant", "content": "Let me see.", "tool_calls": [
                        { "function": { "name": "weather", "arguments": city } },
                    ] },
                    { "role": "tool", "tool_name": "weather", "content": "rain" },
                    { "role": "user", "content": "Like here?", "images": ["AAAA"] },
                ]),
            ),
            _ => (
                chat_tools(),
                json!([
                    { "role": "user", "content": "Hi." },
                    { "role": "assistant", "content": "Let me see.", "tool_calls": [
                        { "id": "call_1", "type": "function", "function": {
                            "name": "weather", "arguments": "{\"city\":\"Oslo\"}",
                        } },
                    ] },
                    { "role": "tool", "tool_call_id": "call_1", "content": "rain" },
                    { "role": "user", "content": [
                        { "type": "text", "text": "Like here?" },
                        { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
                    ] },
                ]),
            ),
        };
        assert_eq!(body["tools"], tools, "{kind}");
        let field = match kind {
            ProviderKind::Gemini => "contents",
            _ => "messages",
        };
        assert_eq!(body[field], messages, "{kind}");
    }
}

fn chat_tools() -> Value {
    let function =
        json!({ "name": "weather", "description": "Tells it.", "parameters": parameters() });
    json!([{ "type": "function", "function": function }])
}

#[tokio::test]
async fn a_required_tool_call_is_sent_by_every_kind_that_supports_it() {
    let request = Request {
        tool_choice: ToolChoice::Named("weather".to_owned()),
        ..request()
    };
    for kind in ALL {
        let upstream = FakeProvider::start().await;
        if !provider(kind, &upstream).has_capability(Capability::RequiredToolCall) {
            assert_eq!(kind, ProviderKind::Ollama);
            continue;
        }

        let body = sent(kind, &request).await;

        let (pointer, expected) = match kind {
            ProviderKind::Anthropic => {
                ("/tool_choice", json!({ "type": "tool", "name": "weather" }))
            }
            ProviderKind::Gemini => (
                "/toolConfig/functionCallingConfig",
                json!({ "mode": "ANY", "allowedFunctionNames": ["weather"] }),
            ),
            _ => (
                "/tool_choice",
                json!({ "type": "function", "function": { "name": "weather" } }),
            ),
        };
        assert_eq!(body.pointer(pointer), Some(&expected), "{kind}");
    }
}

#[tokio::test]
async fn an_output_format_is_sent_by_every_kind_that_supports_it() {
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let named = OutputFormat::Schema(OutputSchema {
        name: "reply".to_owned(),
        description: None,
        schema: schema.clone(),
        strict: Some(true),
    });
    for kind in ALL {
        for (ability, format) in [
            (Capability::Json, OutputFormat::Json),
            (Capability::Schema, named.clone()),
        ] {
            let upstream = FakeProvider::start().await;
            if !provider(kind, &upstream).has_capability(ability) {
                assert_eq!((kind, ability), (ProviderKind::Anthropic, Capability::Json));
                continue;
            }
            let is_any = ability == Capability::Json;
            let request = Request {
                format,
                ..model_call::request()
            };

            let body = sent(kind, &request).await;

            let (pointer, expected) = match kind {
                ProviderKind::Anthropic => (
                    "/output_config/format",
                    json!({ "type": "json_schema", "schema": schema }),
                ),
                ProviderKind::Gemini if is_any => (
                    "/generationConfig",
                    json!({ "responseMimeType": "application/json" }),
                ),
                ProviderKind::Gemini => (
                    "/generationConfig",
                    json!({ "responseMimeType": "application/json", "responseJsonSchema": schema }),
                ),
                ProviderKind::Ollama if is_any => ("/format", json!("json")),
                ProviderKind::Ollama => ("/format", schema.clone()),
                _ if is_any => ("/response_format", json!({ "type": "json_object" })),
                _ => (
                    "/response_format",
                    json!({ "type": "json_schema", "json_schema": {
                        "name": "reply", "schema": schema, "strict": true,
                    } }),
                ),
            };
            assert_eq!(body.pointer(pointer), Some(&expected), "{kind}");
        }
    }
}
