//! Example tests of the fold: the order of events, and the result of each kind of end.

use base::clock::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Completeness, EncodedEvent, EngineEvent, Fold, ItemBody, ResponseEnd, ResponseOutcome,
    SealedReasoning,
};
use crate::item::{OutputItem, SEALED_FIELD, visible};
use crate::response::{ResponseError, ResponseHeader, ResponseUsage};
use crate::status::ResponseStatus;

pub fn fold(status: ResponseStatus) -> Fold {
    let header = ResponseHeader {
        id: "resp_1".to_owned(),
        created_at: Timestamp(1_000),
        echo: Map::from_iter([("model".to_owned(), json!("m"))]),
    };
    Fold::new(header, status)
}

pub fn finished(outcome: ResponseOutcome) -> EngineEvent {
    EngineEvent::Finished(ResponseEnd {
        outcome,
        usage: Some(ResponseUsage::default()),
        at: Timestamp(2_000),
    })
}

pub fn text_delta(text: &str) -> EngineEvent {
    EngineEvent::TextDelta(text.to_owned())
}

fn reasoning_delta(text: &str) -> EngineEvent {
    EngineEvent::ReasoningDelta(text.to_owned())
}

/// Returns all stream events for these engine events, and the fold afterwards.
pub fn run(status: ResponseStatus, all: &[EngineEvent]) -> (Vec<EncodedEvent>, Fold) {
    let mut fold = fold(status);
    let events = all.iter().flat_map(|it| fold.apply(it.clone())).collect();
    (events, fold)
}

/// Returns the body of a call from its JSON.
pub fn body(call: Value) -> ItemBody {
    let body = serde_json::from_value(call).unwrap();
    assert!(!matches!(body, ItemBody::Other(_)), "{body:?}");
    body
}

/// Returns the finished items as JSON.
pub fn items(fold: &Fold) -> Vec<Value> {
    fold.items().iter().map(OutputItem::to_value).collect()
}

/// Returns the response object as JSON.
pub fn document(fold: &Fold) -> Value {
    serde_json::to_value(fold.document()).unwrap()
}

pub fn kinds(events: &[EncodedEvent]) -> Vec<&str> {
    events
        .iter()
        .map(|it| it.kind.trim_start_matches("response."))
        .collect()
}

#[test]
fn text_events_are_in_the_documented_order() {
    let all = [
        EngineEvent::Created,
        EngineEvent::Started,
        text_delta("Hel"),
        text_delta("lo"),
        finished(ResponseOutcome::Completed),
    ];

    let (events, _) = run(ResponseStatus::InProgress, &all);

    assert_eq!(
        kinds(&events),
        [
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "completed",
        ]
    );
}

#[test]
fn reasoning_is_an_item_before_the_text() {
    let all = [
        EngineEvent::Created,
        reasoning_delta("hm"),
        text_delta("Hello"),
        finished(ResponseOutcome::Completed),
    ];

    let (_, fold) = run(ResponseStatus::InProgress, &all);

    let document = document(&fold);
    assert_eq!(document["output"][0]["type"], "reasoning");
    assert_eq!(document["output"][0]["summary"][0]["text"], "hm");
    assert_eq!(document["output"][1]["content"][0]["text"], "Hello");
}

#[test]
fn sealed_reasoning_ends_its_item_and_is_shown_only_if_requested() {
    let sealed = |text: &str, is_shown| {
        let text = text.to_owned();
        EngineEvent::ReasoningSealed(SealedReasoning { text, is_shown })
    };
    let all = [
        EngineEvent::Created,
        EngineEvent::Started,
        reasoning_delta("a"),
        sealed("A", true),
        reasoning_delta("b"),
        sealed("B", false),
        sealed("C", true),
        text_delta("Hi"),
        finished(ResponseOutcome::Completed),
    ];

    let (_, fold) = run(ResponseStatus::InProgress, &all);

    let content = items(&fold);
    let content: Vec<_> = content
        .iter()
        .map(|it| it.get("encrypted_content"))
        .collect();
    assert_eq!(content, [Some(&json!("A")), None, Some(&json!("C")), None]);
    let stored = fold.items().iter().map(OutputItem::to_stored_value);
    let stored: Vec<Value> = stored.map(|it| it[SEALED_FIELD].clone()).collect();
    assert_eq!(stored, [Value::Null, json!("B"), Value::Null, Value::Null]);
    let hidden = visible(fold.items()[1].to_stored_value());
    assert_eq!(hidden, fold.items()[1].to_value());
    assert_eq!(fold.items()[2].to_value()["summary"], json!([]));
}

#[test]
fn a_model_that_stops_immediately_gives_an_empty_text() {
    for before in [vec![], vec![reasoning_delta("hm")]] {
        let all = [
            vec![EngineEvent::Created],
            before,
            vec![finished(ResponseOutcome::Completed)],
        ]
        .concat();

        let (_, fold) = run(ResponseStatus::InProgress, &all);

        let document = document(&fold);
        let last = document["output"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        assert_eq!(last["content"][0]["text"], "");
        assert_eq!(last["status"], "completed");
    }
}

#[test]
fn a_failure_before_any_output_leaves_none() {
    let error = ResponseError {
        code: "upstream_error".to_owned(),
        message: "Busy.".to_owned(),
    };
    let all = [
        EngineEvent::Created,
        EngineEvent::Started,
        finished(ResponseOutcome::Failed(error)),
    ];

    let (events, fold) = run(ResponseStatus::InProgress, &all);

    assert_eq!(kinds(&events), ["created", "in_progress", "failed"]);
    assert_eq!(document(&fold)["error"]["code"], "upstream_error");
}

#[test]
fn a_cancelled_stream_ends_with_incomplete() {
    let all = [
        EngineEvent::Created,
        text_delta("Hel"),
        finished(ResponseOutcome::Cancelled),
    ];

    let (events, fold) = run(ResponseStatus::InProgress, &all);

    let document = document(&fold);
    assert_eq!(kinds(&events).last(), Some(&"incomplete"));
    assert_eq!(document["status"], "cancelled");
    assert_eq!(document["incomplete_details"]["reason"], "cancelled");
    assert_eq!(document["output"][0]["status"], "incomplete");
    assert_eq!(document["completed_at"], Value::Null);
}

pub fn call(kind: &str, field: &str, text: &str) -> ItemBody {
    body(json!({ "type": kind, "call_id": "call_1", "name": "f", field: text }))
}

pub fn server_tool_call() -> ItemBody {
    body(json!({
        "type": "troupe:time", "call_id": "call_1", "arguments": "{}", "output": null,
        "error": null,
    }))
}

#[test]
fn each_kind_of_call_has_its_events() {
    let action = json!({ "type": "exec", "command": ["ls"], "env": {} });
    let shell = json!({ "type": "local_shell_call", "call_id": "call_1", "action": action });
    let all = [
        EngineEvent::Created,
        text_delta("a"),
        EngineEvent::ClientToolCall(
            call("function_call", "arguments", "{}"),
            Completeness::Complete,
        ),
        EngineEvent::ClientToolCall(
            call("custom_tool_call", "input", "x"),
            Completeness::Complete,
        ),
        EngineEvent::ClientToolCall(body(shell), Completeness::Complete),
        finished(ResponseOutcome::Completed),
    ];

    let (events, fold) = run(ResponseStatus::InProgress, &all);

    assert_eq!(
        kinds(&events)[6..],
        [
            "output_item.done",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "output_item.added",
            "custom_tool_call_input.delta",
            "custom_tool_call_input.done",
            "output_item.done",
            "output_item.added",
            "output_item.done",
            "completed",
        ]
    );
    let prefixes = fold
        .items()
        .iter()
        .map(|it| it.id.split('_').next().unwrap());
    assert_eq!(prefixes.collect::<Vec<_>>(), ["msg", "fc", "ctc", "lsc"]);
}

#[test]
fn output_after_a_server_tool_is_another_item() {
    let all = [
        EngineEvent::Created,
        text_delta("a"),
        EngineEvent::NextIteration,
        text_delta("b"),
        EngineEvent::ToolStarted(server_tool_call()),
        EngineEvent::ToolProgress("half".to_owned()),
        EngineEvent::ToolFinished(Ok("noon".to_owned())),
        EngineEvent::ToolProgress("late".to_owned()),
        EngineEvent::ToolFinished(Ok("again".to_owned())),
        EngineEvent::NextIteration,
        finished(ResponseOutcome::Completed),
    ];

    let (events, fold) = run(ResponseStatus::InProgress, &all);

    let event_kinds: Vec<&str> = events.iter().map(|it| it.kind.as_str()).collect();
    assert_eq!(
        event_kinds
            .iter()
            .filter(|it| **it == "troupe:tool.progress")
            .count(),
        1
    );
    let items = items(&fold);
    let types: Vec<&str> = items
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["message", "message", "troupe:time", "message"]);
    assert_eq!(items[2]["output"], "noon");
    assert_eq!(
        items[3]["content"][0]["text"], "",
        "the last iteration had no output"
    );
}

#[test]
fn a_canceled_tool_is_incomplete() {
    let all = [
        EngineEvent::Created,
        EngineEvent::ToolStarted(server_tool_call()),
        finished(ResponseOutcome::Cancelled),
    ];

    let (_, fold) = run(ResponseStatus::InProgress, &all);

    assert_eq!(items(&fold)[0]["status"], "incomplete");
}

#[test]
fn a_refusal_is_a_separate_part_of_the_message() {
    let refused = |text: &str| EngineEvent::RefusalDelta(text.to_owned());
    let all = [
        EngineEvent::Created,
        text_delta("Well, "),
        refused("I can"),
        refused("not."),
        text_delta("Sorry."),
        finished(ResponseOutcome::Completed),
    ];

    let (events, fold) = run(ResponseStatus::InProgress, &all);

    assert_eq!(
        kinds(&events)[1..],
        [
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "content_part.added",
            "refusal.delta",
            "refusal.delta",
            "refusal.done",
            "content_part.done",
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "completed",
        ]
    );
    let item = &items(&fold)[0];
    assert_eq!(item["content"][0]["text"], "Well, ");
    let refusal = json!({ "type": "refusal", "refusal": "I cannot." });
    assert_eq!(item["content"][1], refusal);
    assert_eq!(item["content"][2]["text"], "Sorry.");
}

#[test]
fn a_refusal_counts_as_an_answer() {
    let refused = EngineEvent::RefusalDelta("No.".to_owned());
    let all = [
        EngineEvent::Created,
        refused,
        finished(ResponseOutcome::Completed),
    ];

    let (_, fold) = run(ResponseStatus::InProgress, &all);

    let items = items(&fold);
    let [item] = items.as_slice() else {
        panic!("{items:?}");
    };
    let content = json!([{ "type": "refusal", "refusal": "No." }]);
    assert_eq!(
        (&item["type"], &item["content"]),
        (&json!("message"), &content)
    );
}
