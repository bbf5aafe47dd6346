//! Tests that the chunks of a chat completion together are its answer, and how each end is reported.

use base::clock::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::event::EncodedEvent;
use crate::fold::chat_choices;
use crate::fold::chat_fold::ChatFold;
use crate::fold::chat_objects::CompletionHeader;
use crate::fold::engine_event::{Completeness, EngineEvent, ResponseEnd, ResponseOutcome};
use crate::item::{CustomToolCall, FunctionCall, ItemBody};
use crate::response::{ResponseError, ResponseUsage};
use crate::status::ItemStatus;

fn header(include_usage: bool) -> CompletionHeader {
    CompletionHeader {
        id: "chatcmpl-1".to_owned(),
        created: 1,
        model: "m".to_owned(),
        include_usage,
    }
}

fn fold(include_usage: bool) -> ChatFold {
    ChatFold::new(header(include_usage), 0)
}

/// Returns the answer with this choice.
fn answer(fold: ChatFold) -> Value {
    let answer = chat_choices::completion(&header(false), vec![fold]);
    serde_json::to_value(answer.unwrap()).unwrap()
}

fn end(outcome: ResponseOutcome) -> EngineEvent {
    EngineEvent::Finished(ResponseEnd {
        outcome,
        usage: Some(ResponseUsage {
            input_tokens: 3,
            output_tokens: 2,
            reasoning_tokens: 1,
        }),
        at: Timestamp(2_000),
    })
}

fn function(id: &str, arguments: &str) -> EngineEvent {
    let call = FunctionCall {
        status: ItemStatus::Completed,
        call_id: id.to_owned(),
        name: "f".to_owned(),
        arguments: arguments.to_owned(),
        namespace: None,
    };
    EngineEvent::ClientToolCall(ItemBody::FunctionCall(call), Completeness::Complete)
}

fn custom(id: &str, input: &str) -> EngineEvent {
    let call = CustomToolCall {
        status: ItemStatus::Completed,
        call_id: id.to_owned(),
        name: "g".to_owned(),
        input: input.to_owned(),
    };
    EngineEvent::ClientToolCall(ItemBody::CustomToolCall(call), Completeness::Complete)
}

fn run(fold: &mut ChatFold, events: Vec<EngineEvent>) -> Vec<EncodedEvent> {
    events.into_iter().flat_map(|it| fold.apply(it)).collect()
}

fn read(chunks: &[EncodedEvent]) -> Vec<Value> {
    let parsed = chunks.iter().map(|it| serde_json::from_str(&it.json));
    parsed.collect::<Result<_, _>>().unwrap()
}

/// Builds the message from the chunks, as a client does.
fn add_up(chunks: &[Value]) -> Value {
    let mut message = json!({ "refusal": null, "annotations": [] });
    let mut logprobs = Vec::new();
    for choice in chunks
        .iter()
        .flat_map(|it| it["choices"].as_array().unwrap())
    {
        if let Some(tokens) = choice["logprobs"]["content"].as_array() {
            logprobs.extend(tokens.clone());
        }
        for (name, value) in choice["delta"].as_object().unwrap() {
            match (name.as_str(), value) {
                ("annotations", Value::Array(more)) => {
                    message[name].as_array_mut().unwrap().extend(more.clone());
                }
                ("tool_calls", Value::Array(more)) => more.iter().for_each(|it| {
                    add_call(&mut message, it);
                }),
                ("role" | "troupe", value) => message[name] = value.clone(),
                (_, Value::String(more)) => {
                    let text = message[name].as_str().unwrap_or_default();
                    message[name] = json!(format!("{text}{more}"));
                }
                _ => panic!("unexpected delta: {choice}"),
            }
        }
    }
    let has_other = message["tool_calls"].is_array() || message["refusal"].is_string();
    if message["content"] == "" && has_other {
        message["content"] = Value::Null;
    }
    json!({ "message": message, "logprobs": logprobs })
}

fn add_call(message: &mut Value, delta: &Value) {
    let index = delta["index"].as_u64().unwrap() as usize;
    if message["tool_calls"].is_null() {
        message["tool_calls"] = json!([]);
    }
    let calls = message["tool_calls"].as_array_mut().unwrap();
    if index == calls.len() {
        let mut first = delta.clone();
        first.as_object_mut().unwrap().shift_remove("index");
        calls.push(first);
        return;
    }
    for (kind, field) in [("function", "arguments"), ("custom", "input")] {
        if let Some(more) = delta[kind][field].as_str() {
            let text = calls[index][kind][field].as_str().unwrap();
            calls[index][kind][field] = json!(format!("{text}{more}"));
        }
    }
}

fn any_event() -> impl Strategy<Value = EngineEvent> {
    let text = "[a-z]{1,4}";
    prop_oneof![
        text.prop_map(EngineEvent::TextDelta),
        text.prop_map(EngineEvent::ReasoningDelta),
        text.prop_map(EngineEvent::RefusalDelta),
        text.prop_map(|it| EngineEvent::Logprobs(vec![json!({ "token": it })])),
        text.prop_map(|it| EngineEvent::Annotation(json!({ "url": it }))),
        "[a-z]{0,4}".prop_map(|it| function("a", &it)),
        "[a-z]{0,4}".prop_map(|it| custom("b", &it)),
        Just(EngineEvent::NextIteration),
        Just(EngineEvent::ToolProgress("x".to_owned())),
    ]
}

proptest! {
    #[test]
    fn the_chunks_together_are_the_answer(
        events in proptest::collection::vec(any_event(), 0..20),
        include_usage in any::<bool>(),
        has_speaker in any::<bool>(),
    ) {
        let mut fold = fold(include_usage);
        let mut all = vec![EngineEvent::Created, EngineEvent::Started];
        if has_speaker {
            all.push(EngineEvent::SpeakerChanged(json!({ "speaker": "Ada" })));
        }
        all.extend(events);
        all.push(end(ResponseOutcome::Completed));

        let chunks = run(&mut fold, all);

        let chunks = read(&chunks);
        let answer = answer(fold);
        let built = add_up(&chunks);
        prop_assert_eq!(&built["message"], &answer["choices"][0]["message"]);
        let tokens = &answer["choices"][0]["logprobs"]["content"];
        prop_assert_eq!(&built["logprobs"], &tokens.as_array().map_or(json!([]), |it| json!(it)));
        let with_end = chunks.iter().filter(|it| it["choices"][0]["finish_reason"].is_string());
        prop_assert_eq!(with_end.count(), 1);
        let empty = chunks.iter().filter(|it| it["choices"][0]["delta"] == json!({}));
        prop_assert_eq!(empty.count(), 1);
    }
}

#[test]
fn the_objects_have_exactly_this_json() {
    let mut fold = fold(true);
    let chunks = run(
        &mut fold,
        vec![
            EngineEvent::TextDelta("Hi.".to_owned()),
            function("a", "{}"),
            end(ResponseOutcome::Completed),
        ],
    );
    let mut json: Vec<&str> = chunks.iter().map(|it| it.json.as_str()).collect();
    let folds = vec![fold];
    let last = chat_choices::usage_chunk(&header(true), &folds).unwrap();
    json.extend(last.as_deref());
    let answer = chat_choices::completion(&header(true), folds).unwrap();
    let answer = serde_json::to_string(&answer).unwrap();

    let usage = r#"{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":1,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}"#;
    let chunk = |choices: &str, usage: &str| {
        format!(
            r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{choices}],"usage":{usage},"service_tier":"default","system_fingerprint":null}}"#
        )
    };
    let delta = |delta: &str, end: &str| {
        let choice =
            format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{end}}}"#);
        chunk(&choice, "null")
    };
    let expected = [
        delta(r#"{"role":"assistant","content":""}"#, "null"),
        delta(r#"{"content":"Hi."}"#, "null"),
        delta(
            r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}"#,
            "null",
        ),
        delta(
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}"#,
            "null",
        ),
        delta("{}", r#""tool_calls""#),
        chunk("", usage),
    ];
    assert_eq!(json, expected);
    let message = r#"{"role":"assistant","content":"Hi.","refusal":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],"annotations":[]}"#;
    let expected = format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{message},"logprobs":null,"finish_reason":"tool_calls"}}],"usage":{usage},"service_tier":"default","system_fingerprint":null}}"#
    );
    assert_eq!(answer, expected);
}

#[test]
fn each_end_has_its_finish_reason() {
    for (outcome, word) in [
        (ResponseOutcome::Completed, "stop"),
        (ResponseOutcome::Incomplete("max_output_tokens"), "length"),
        (ResponseOutcome::Incomplete("max_steps"), "length"),
        (ResponseOutcome::Incomplete("run_timeout"), "length"),
        (
            ResponseOutcome::Incomplete("content_filter"),
            "content_filter",
        ),
    ] {
        let mut fold = fold(false);
        let chunks = read(&fold.apply(end(outcome)));

        assert_eq!(chunks.len(), 2);
        assert_eq!(chunks[1]["choices"][0]["finish_reason"], word);
        let answer = answer(fold);
        assert_eq!(answer["choices"][0]["finish_reason"], word);
        assert_eq!(answer["choices"][0]["message"]["content"], "");
    }
}

#[test]
fn a_failure_sends_no_further_chunk() {
    for n_texts in [0, 1] {
        let mut fold = fold(true);
        let texts = vec![EngineEvent::TextDelta("Hi.".to_owned()); n_texts];
        let failed = end(ResponseOutcome::Failed(ResponseError {
            code: "rate_limit_exceeded".to_owned(),
            message: "Later.".to_owned(),
        }));

        let before = run(&mut fold, texts);
        let after = run(
            &mut fold,
            vec![failed, EngineEvent::TextDelta("x".to_owned())],
        );

        assert_eq!((before.len(), after.len()), (2 * n_texts, 0));
        assert_eq!(fold.has_output(), n_texts > 0);
        assert_eq!(fold.failure().unwrap().message, "Later.");
        assert_eq!(fold.into_choice().unwrap_err().message, "Later.");
    }
}
