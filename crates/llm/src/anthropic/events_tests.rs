//! Tests of the conversion of stream events to deltas.

use serde_json::{Value, json};

use super::AnthropicEventParser;
use crate::delta::{Delta, FinishReason, TokenUsage};
use crate::dialect::{ChunkParser, ParsedChunk};
use crate::reasoning::thought::Thought;
use crate::tool::ToolCallDelta;

fn read(events: &mut AnthropicEventParser, event: Value) -> ParsedChunk {
    events.parse("", &event.to_string(), None).unwrap()
}

fn usage(prompt_tokens: i64, completion_tokens: i64) -> Delta {
    Delta::Usage(TokenUsage {
        prompt_tokens,
        completion_tokens,
    })
}

#[test]
fn cached_tokens_count_as_prompt_tokens_and_later_reports_keep_them() {
    let mut events = AnthropicEventParser::default();
    let start = json!({ "type": "message_start", "message": { "usage": {
        "input_tokens": 3, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 900, "output_tokens": 1,
    } } });
    let late = json!({ "type": "message_delta", "delta": { "stop_reason": "max_tokens" }, "usage": { "output_tokens": 9 } });

    assert_eq!(read(&mut events, start).deltas, [usage(913, 1)]);
    assert_eq!(read(&mut events, late).deltas, [usage(913, 9)]);
    assert_eq!(
        read(&mut events, json!({ "type": "message_stop" })),
        ParsedChunk::last(vec![Delta::End(FinishReason::Length)])
    );
}

#[test]
fn an_event_without_content_is_a_keep_alive() {
    for event in [
        json!({ "type": "ping" }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "content_block_start", "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "delta": { "type": "signature_delta", "signature": "Eq" } }),
        json!({ "type": "content_block_delta", "delta": 7 }),
        json!({ "type": "message_start", "message": null }),
        json!({ "type": "message_delta", "delta": { "stop_reason": null } }),
        json!({ "type": "something_new" }),
        json!({}),
    ] {
        assert_eq!(
            read(&mut AnthropicEventParser::default(), event.clone()).deltas,
            [Delta::KeepAlive],
            "{event}"
        );
    }
}

#[test]
fn an_error_has_the_status_that_its_type_means() {
    for (kind, status) in [
        ("overloaded_error", Some(529)),
        ("rate_limit_error", Some(429)),
        ("odd", None),
    ] {
        let event = json!({ "type": "error", "error": { "type": kind, "message": "Overloaded" } });

        let error = AnthropicEventParser::default()
            .parse("error", &event.to_string(), None)
            .unwrap_err();

        assert_eq!(error.status(), status, "{kind}");
        assert!(error.to_string().contains("Overloaded"), "{error}");
    }
}

#[test]
fn a_thinking_block_is_complete_with_its_signature() {
    let mut events = AnthropicEventParser::default();
    let start =
        |block: Value| json!({ "type": "content_block_start", "index": 0, "content_block": block });
    let more = |delta: Value| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    let stop = json!({ "type": "content_block_stop", "index": 0 });

    let read: Vec<Delta> = [
        start(json!({ "type": "thinking", "thinking": "", "signature": "" })),
        more(json!({ "type": "thinking_delta", "thinking": "Hm. " })),
        more(json!({ "type": "thinking_delta", "thinking": "Yes." })),
        more(json!({ "type": "signature_delta", "signature": "Eq" })),
        stop.clone(),
        start(json!({ "type": "redacted_thinking", "data": "Em" })),
        stop.clone(),
        start(json!({ "type": "thinking", "thinking": "" })),
        more(json!({ "type": "thinking_delta", "thinking": "unsigned" })),
        stop,
    ]
    .into_iter()
    .flat_map(|it| read(&mut events, it).deltas)
    .filter(|it| *it != Delta::KeepAlive)
    .collect();

    let reasoning = |text: &str| Delta::Reasoning(text.to_owned());
    assert_eq!(
        read,
        [
            reasoning("Hm. "),
            reasoning("Yes."),
            Delta::Thought(Thought::Signed {
                text: "Hm. Yes.".to_owned(),
                signature: "Eq".to_owned(),
            }),
            Delta::Thought(Thought::Redacted {
                data: "Em".to_owned(),
            }),
            reasoning("unsigned"),
        ]
    );
}

fn call(index: usize, name: Option<&str>, arguments: &str) -> Delta {
    Delta::ToolCall(ToolCallDelta {
        index,
        id: name.map(|it| format!("toolu_{it}")),
        name: name.map(str::to_owned),
        arguments: arguments.to_owned(),
    })
}

fn tool_use(name: &str, input: &Value) -> Value {
    json!({ "type": "tool_use", "id": format!("toolu_{name}"), "name": name, "input": input })
}

#[test]
fn a_call_comes_in_pieces_and_one_without_arguments_has_an_empty_object() {
    let mut events = AnthropicEventParser::default();
    let start = |index: usize, name: &str| json!({ "type": "content_block_start", "index": index, "content_block": tool_use(name, &json!({})) });
    let more = |index: u64, json: &str| json!({ "type": "content_block_delta", "index": index, "delta": { "type": "input_json_delta", "partial_json": json } });
    let stop = json!({ "type": "content_block_stop" });

    let read: Vec<Delta> = [
        start(1, "a"),
        more(1, ""),
        more(1, "{\"x\""),
        more(1, ":1}"),
        stop.clone(),
        start(2, "b"),
        more(2, ""),
        stop,
        more(u64::MAX, "{}"),
    ]
    .into_iter()
    .flat_map(|it| read(&mut events, it).deltas)
    .filter(|it| *it != Delta::KeepAlive)
    .collect();

    assert_eq!(
        read,
        [
            call(1, Some("a"), ""),
            call(1, None, "{\"x\""),
            call(1, None, ":1}"),
            call(2, Some("b"), ""),
            call(2, None, "{}"),
        ]
    );
}

#[test]
fn calls_of_an_unstreamed_message_are_complete() {
    let blocks = [
        json!({ "type": "text", "text": "Hm." }),
        tool_use("a", &json!({ "x": 1 })),
        tool_use("b", &json!({})),
    ];
    let message = json!({ "type": "message", "content": blocks, "stop_reason": "tool_use" });

    assert_eq!(
        read(&mut AnthropicEventParser::default(), message).deltas,
        [
            Delta::Text("Hm.".to_owned()),
            call(1, Some("a"), "{\"x\":1}"),
            call(2, Some("b"), ""),
            call(2, None, "{}"),
            Delta::End(FinishReason::ToolCalls),
        ]
    );
}

#[test]
fn an_unstreamed_message_is_parsed() {
    let message = json!({
        "type": "message",
        "content": [{ "type": "thinking", "thinking": "Hm." }, { "type": "text", "text": "Hi" }],
        "stop_reason": "end_turn",
        "usage": { "input_tokens": 3, "output_tokens": 2 },
    });

    assert_eq!(
        read(&mut AnthropicEventParser::default(), message),
        ParsedChunk::last(vec![
            Delta::Reasoning("Hm.".to_owned()),
            Delta::Text("Hi".to_owned()),
            Delta::End(FinishReason::Stop),
            usage(3, 2),
        ])
    );
}
