//! Property tests of the fold: for any events, the order and numbers of its stream are valid, and
//! stream, replay and document agree.

use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq};
use proptest::sample::Index;
use proptest::{prop_oneof, proptest};
use regex::Regex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::tests::{
    body, call, document, finished, fold, items, run, server_tool_call, text_delta,
};
use super::{EncodedEvent, EngineEvent, Fold, ItemBody, ResponseOutcome, SequencedEvent};
use crate::fold::engine_event::Completeness;
use crate::response::ResponseError;
use crate::status::ResponseStatus;

fn read<T: DeserializeOwned>(events: &[EncodedEvent]) -> Vec<T> {
    let read = |it: &EncodedEvent| serde_json::from_str(&it.json).unwrap();
    events.iter().map(read).collect()
}

/// Rebuilds the output items from the events alone, as a client does.
fn rebuild_items(events: &[Value]) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut n_done = 0;
    for event in events {
        let Some(at) = event["output_index"].as_u64() else {
            assert_eq!(n_done, items.len(), "status events are between items");
            continue;
        };
        let kind = event["type"].as_str().unwrap();
        let kind = kind.trim_start_matches("response.");
        assert_eq!(
            at, n_done as u64,
            "events of items do not interleave: {kind}"
        );
        if kind == "output_item.added" {
            assert_eq!(n_done, items.len(), "one item is open at a time");
            items.push(event["item"].clone());
            continue;
        }
        let item = &mut items[n_done];
        if kind == "output_item.done" {
            let early_fields = |it: &Value| {
                let mut early_fields = it.clone();
                for late_field in ["status", "output", "error", "tools"] {
                    early_fields.as_object_mut().unwrap().remove(late_field);
                }
                early_fields
            };
            assert_eq!(
                early_fields(item),
                early_fields(&event["item"]),
                "the deltas add up to the finished item"
            );
            *item = event["item"].clone();
            n_done += 1;
            continue;
        }
        assert_eq!(
            event["item_id"], item["id"],
            "{kind} has the id of its item"
        );
        apply_to_item(kind, event, item);
    }
    items
}

fn apply_to_item(kind: &str, event: &Value, item: &mut Value) {
    let (list, at) = match event["summary_index"].as_u64() {
        Some(at) => ("summary", at as usize),
        None => (
            "content",
            event["content_index"].as_u64().unwrap_or(0) as usize,
        ),
    };
    match kind {
        "content_part.added" | "reasoning_summary_part.added" => {
            let parts = item[list].as_array_mut().unwrap();
            assert_eq!(parts.len(), at, "parts are added in order");
            parts.push(event["part"].clone());
        }
        "content_part.done" | "reasoning_summary_part.done" => {
            assert_eq!(item[list][at], event["part"]);
        }
        "output_text.delta" => {
            append_delta(&mut item[list][at]["text"], event);
            let logprobs = event["logprobs"].as_array().unwrap().iter().cloned();
            let all = item[list][at]["logprobs"].as_array_mut().unwrap();
            all.extend(logprobs);
        }
        "reasoning_summary_text.delta" => append_delta(&mut item[list][at]["text"], event),
        "output_text.annotation.added" => {
            let all = item[list][at]["annotations"].as_array_mut().unwrap();
            assert_eq!(event["annotation_index"], all.len());
            all.push(event["annotation"].clone());
        }
        "output_text.done" | "reasoning_summary_text.done" => {
            assert_eq!(item[list][at]["text"], event["text"]);
            assert_eq!(item[list][at].get("logprobs"), event.get("logprobs"));
        }
        "refusal.delta" => append_delta(&mut item[list][at]["refusal"], event),
        "refusal.done" => assert_eq!(item[list][at]["refusal"], event["refusal"]),
        "function_call_arguments.delta" | "mcp_call_arguments.delta" => {
            append_delta(&mut item["arguments"], event);
        }
        "function_call_arguments.done" | "mcp_call_arguments.done" => {
            assert_eq!(item["arguments"], event["arguments"]);
        }
        "custom_tool_call_input.delta" => append_delta(&mut item["input"], event),
        "custom_tool_call_input.done" => assert_eq!(item["input"], event["input"]),
        _ => {}
    }
}

fn append_delta(text: &mut Value, event: &Value) {
    let delta = event["delta"].as_str().unwrap();
    assert!(!delta.is_empty());
    *text = json!(text.as_str().unwrap().to_owned() + delta);
}

/// Returns a pattern for the events between `added` and `done` of an item of this type.
fn expected_order(item: &Value) -> &'static str {
    match item["type"].as_str().unwrap() {
        "message" => {
            "(content_part.added ((output_text.delta )*(output_text.annotation.added )*output_text.done|(refusal.delta )+refusal.done) content_part.done )+"
        }
        "reasoning" => {
            "reasoning_summary_part.added (reasoning_summary_text.delta )+reasoning_summary_text.done reasoning_summary_part.done "
        }
        "function_call" => "(function_call_arguments.delta )?function_call_arguments.done ",
        "custom_tool_call" => "(custom_tool_call_input.delta )?custom_tool_call_input.done ",
        "mcp_list_tools" => "mcp_list_tools.in_progress mcp_list_tools.(completed|failed) ",
        "mcp_call" => {
            "mcp_call.in_progress (mcp_call_arguments.delta )?mcp_call_arguments.done (troupe:tool.progress )*mcp_call.(completed|failed) "
        }
        "web_search_call" => {
            "web_search_call.in_progress web_search_call.searching (troupe:tool.progress )*(web_search_call.completed )?"
        }
        "troupe:time" => "(troupe:tool.progress )*",
        "local_shell_call" | "mcp_approval_request" => "",
        other => panic!("unexpected item type {other}"),
    }
}

/// Returns the kinds of all events of one item, each followed by a blank.
fn event_kinds(events: &[Value], at: usize) -> String {
    let item_events = events.iter().filter(|it| it["output_index"] == at);
    let kind = |it: &Value| {
        let kind = it["type"].as_str().unwrap();
        kind.trim_start_matches("response.").to_owned() + " "
    };
    item_events.map(kind).collect()
}

fn mcp(kind: &str, more: Value) -> ItemBody {
    let mut item = json!({ "type": kind, "server_label": "wiki" });
    for (name, value) in more.as_object().unwrap() {
        item[name] = value.clone();
    }
    body(item)
}

fn any_call() -> impl Strategy<Value = ItemBody> {
    let text = "[a-z{}\"é]{0,4}";
    let of_name = |text: String| json!({ "name": "look", "arguments": text });
    prop_oneof![
        text.prop_map(|it| call("function_call", "arguments", &it)),
        text.prop_map(|it| call("custom_tool_call", "input", &it)),
        text.prop_map(|it| {
            let action = json!({ "type": "exec", "command": [it], "env": {} });
            body(json!({ "type": "local_shell_call", "call_id": "call_1", "action": action }))
        }),
        text.prop_map(move |it| mcp("mcp_approval_request", of_name(it))),
        "[a-z]{1,4}".prop_map(|it| mcp("mcp_list_tools", json!({ "tools": [{ "name": it }] }))),
        Just(mcp(
            "mcp_list_tools",
            json!({ "tools": [], "error": "It is down." }),
        )),
    ]
}

fn any_server_tool_call() -> impl Strategy<Value = ItemBody> {
    prop_oneof![
        Just(server_tool_call()),
        "[a-z]{0,4}".prop_map(|it| {
            let action = json!({ "type": "search", "query": it });
            body(json!({ "type": "web_search_call", "action": action }))
        }),
        "[a-z{}\"]{0,4}".prop_map(|it| {
            let call = json!({
                "name": "look", "arguments": it, "approval_request_id": null, "output": null,
                "error": null,
            });
            mcp("mcp_call", call)
        }),
    ]
}

fn any_event() -> impl Strategy<Value = EngineEvent> {
    let word = "[a-z]{1,4}";
    prop_oneof![
        any_call().prop_map(|it| EngineEvent::ClientToolCall(it, Completeness::Complete)),
        "[a-z{]{0,4}".prop_map(|it| {
            EngineEvent::ClientToolCall(
                call("function_call", "arguments", &it),
                Completeness::Truncated,
            )
        }),
        any_server_tool_call().prop_map(EngineEvent::ToolStarted),
        word.prop_map(EngineEvent::ToolProgress),
        word.prop_map(|it| EngineEvent::ToolFinished(Ok(it))),
        word.prop_map(|it| EngineEvent::ToolFinished(Err(it))),
        Just(EngineEvent::NextIteration),
        word.prop_map(|it| EngineEvent::SpeakerChanged(json!({ "speaker": it }))),
        "[a-zé漢🦀 \n\"]{1,4}".prop_map(EngineEvent::TextDelta),
        "[a-z]{1,2}"
            .prop_map(|it| EngineEvent::Annotation(json!({ "type": "url_citation", "url": it }))),
        "[a-z]{1,2}".prop_map(|it| {
            EngineEvent::Logprobs(vec![
                json!({ "token": it, "logprob": -0.5, "top_logprobs": [] }),
            ])
        }),
        "[a-zé漢🦀 \n\"]{1,4}".prop_map(EngineEvent::RefusalDelta),
        "[a-z ]{1,3}".prop_map(EngineEvent::ReasoningDelta),
    ]
}

fn any_outcome() -> impl Strategy<Value = ResponseOutcome> {
    prop_oneof![
        Just(ResponseOutcome::Completed),
        Just(ResponseOutcome::Incomplete("max_output_tokens")),
        Just(ResponseOutcome::Cancelled),
        Just(ResponseOutcome::Failed(ResponseError {
            code: "server_error".to_owned(),
            message: "No.".to_owned(),
        })),
    ]
}

/// Removes the random digits of ids, which differ between two folds.
fn without_ids(document: &Value) -> String {
    let id = Regex::new("[0-9a-f]{32}").unwrap();
    id.replace_all(&document.to_string(), "").into_owned()
}

proptest! {
    #[test]
    fn the_stream_and_the_document_agree(
        middle in proptest::collection::vec(any_event(), 0..16),
        outcome in any_outcome(),
        is_queued in proptest::bool::ANY,
    ) {
        let status = if is_queued { ResponseStatus::Queued } else { ResponseStatus::InProgress };
        let begin = vec![EngineEvent::Created, EngineEvent::Started];
        let end = vec![finished(outcome), text_delta("late"), finished(ResponseOutcome::Completed)];
        let all = [begin, middle, end].concat();

        let (events, whole) = run(status, &all);
        let values: Vec<Value> = read(&events);

        let numbers: Vec<i64> = events.iter().map(|it| it.seq).collect();
        prop_assert_eq!(numbers, (0..i64::try_from(events.len()).unwrap()).collect::<Vec<_>>());
        prop_assert!(events.iter().filter(|it| it.is_terminal()).count() == 1);
        prop_assert!(events.last().unwrap().is_terminal());
        prop_assert_eq!(&values.last().unwrap()["response"], &document(&whole));
        prop_assert_eq!(&values[0]["response"]["output"], &json!([]));
        let output = document(&whole)["output"].clone();
        prop_assert_eq!(json!(rebuild_items(&values)), output);
        for (event, value) in events.iter().zip(&values) {
            prop_assert_eq!(&value["type"], &json!(event.kind));
            prop_assert_eq!(&value["sequence_number"], &json!(event.seq));
        }
    }

    #[test]
    fn item_events_are_ordered_and_state_the_result(
        middle in proptest::collection::vec(any_event(), 0..16),
        outcome in any_outcome(),
    ) {
        let all = [vec![EngineEvent::Created, EngineEvent::Started], middle, vec![finished(outcome)]].concat();

        let (events, whole) = run(ResponseStatus::InProgress, &all);

        let values: Vec<Value> = read(&events);
        for (at, item) in items(&whole).iter().enumerate() {
            let order = format!("^output_item.added {}output_item.done $", expected_order(item)).replace('.', "\\.");
            let group = event_kinds(&values, at);
            prop_assert!(Regex::new(&order).unwrap().is_match(&group), "{} does not match {}", group, order);
            let is_success = match item["type"].as_str().unwrap() {
                "mcp_list_tools" => item.get("error").is_none(),
                "mcp_call" => item["output"].is_string(),
                _ => continue,
            };
            prop_assert_eq!(group.contains(".completed "), is_success, "{}", item);
        }
    }

    #[test]
    fn a_replayed_fold_continues_like_the_original(
        middle in proptest::collection::vec(any_event(), 0..16),
        outcome in any_outcome(),
        is_queued in proptest::bool::ANY,
        cut in proptest::prelude::any::<Index>(),
    ) {
        let status = if is_queued { ResponseStatus::Queued } else { ResponseStatus::InProgress };
        let all = [vec![EngineEvent::Created, EngineEvent::Started], middle].concat();
        // Annotations are emitted only when the part ends, so a replay does not know them.
        let is_annotation = |it: &EngineEvent| matches!(it, EngineEvent::Annotation(_));
        let all: Vec<EngineEvent> = all.into_iter().filter(|it| !is_annotation(it)).collect();
        let before = &all[..=cut.index(all.len())];
        // A replay learns the speaker from its items only. For a speaker without items it emits no
        // empty text on completion, so this case is excluded.
        let has_speaker = before.iter().any(|it| matches!(it, EngineEvent::SpeakerChanged(_)));
        let outcome = if has_speaker && outcome == ResponseOutcome::Completed { ResponseOutcome::Cancelled } else { outcome };

        let (events, mut first) = run(status, before);
        let mut second = Fold::replay(fold(status).header, status, read::<SequencedEvent>(&events));

        prop_assert_eq!(second.has_output(), first.has_output());
        prop_assert_eq!(second.next_seq, first.next_seq);
        let kinds = |events: Vec<EncodedEvent>| events.into_iter().map(|it| it.kind).collect::<Vec<_>>();
        prop_assert_eq!(kinds(second.apply(finished(outcome.clone()))), kinds(first.apply(finished(outcome))));
        prop_assert_eq!(without_ids(&document(&second)), without_ids(&document(&first)));
        prop_assert_eq!(second.next_seq, first.next_seq);
    }
}
