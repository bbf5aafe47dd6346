//! Tests of the exact JSON of every event, item and document: names, values and the order of
//! fields.

use regex::Regex;
use serde_json::{Value, json};

use super::tests::{body, call, finished, fold, run, server_tool_call, text_delta};
use super::{
    Completeness, EncodedEvent, EngineEvent, Fold, ItemBody, ResponseOutcome, SequencedEvent,
    StreamEvent,
};
use crate::item::ContentPart;
use crate::response::ResponseError;
use crate::status::ResponseStatus;

/// One line for each event of the five scripts below, in order.
const EXPECTED: &str = include_str!("event_json.jsonl");

fn client_call(call: ItemBody) -> EngineEvent {
    EngineEvent::ClientToolCall(call, Completeness::Complete)
}

fn speaker_changed(name: &str) -> EngineEvent {
    EngineEvent::SpeakerChanged(json!({ "speaker": name, "speaker_id": "character:1" }))
}

fn mcp_call(arguments: &str, approval_request_id: Option<&str>) -> ItemBody {
    body(json!({
        "type": "mcp_call", "server_label": "wiki", "name": "look", "arguments": arguments,
        "approval_request_id": approval_request_id, "output": null, "error": null,
    }))
}

fn texts() -> Vec<EngineEvent> {
    let logprob = json!({ "token": "a", "logprob": -0.25, "bytes": [97], "top_logprobs": [] });
    let citation = json!({
        "type": "url_citation", "url": "https://example.org", "start_index": 0, "end_index": 1,
        "title": "t",
    });
    vec![
        EngineEvent::ReasoningDelta("hm \"".to_owned()),
        EngineEvent::ReasoningDelta("é\n".to_owned()),
        EngineEvent::Logprobs(vec![logprob.clone(), logprob]),
        text_delta("a漢"),
        EngineEvent::Annotation(citation.clone()),
        EngineEvent::Annotation(citation),
        text_delta("b"),
        EngineEvent::RefusalDelta("No".to_owned()),
        text_delta("c"),
        EngineEvent::NextIteration,
    ]
}

fn client_calls() -> Vec<EngineEvent> {
    let action = json!({ "type": "exec", "command": ["ls", "-l"], "env": { "Z": "1", "A": "2" } });
    let long_action = json!({
        "type": "exec", "command": ["ls"], "env": {}, "timeout_ms": 5, "user": "u",
        "working_directory": "/",
    });
    let shell = |action: Value| {
        client_call(body(
            json!({ "type": "local_shell_call", "call_id": "call_1", "action": action }),
        ))
    };
    let tool = json!({
        "name": "look", "description": null, "input_schema": { "type": "object" },
        "annotations": { "readOnlyHint": true },
    });
    let list =
        |tools: Value| json!({ "type": "mcp_list_tools", "server_label": "wiki", "tools": tools });
    let mut failed_list = list(json!([]));
    failed_list["error"] = json!("It is down.");
    vec![
        client_call(call("function_call", "arguments", "{\"x\": 1}")),
        client_call(call("function_call", "arguments", "")),
        EngineEvent::ClientToolCall(
            call("function_call", "arguments", "{"),
            Completeness::Truncated,
        ),
        client_call(call("custom_tool_call", "input", "SELECT")),
        client_call(call("custom_tool_call", "input", "")),
        shell(action),
        shell(long_action),
        client_call(body(json!({
            "type": "mcp_approval_request", "server_label": "wiki", "name": "look",
            "arguments": "{}",
        }))),
        client_call(body(list(json!([tool])))),
        client_call(body(failed_list)),
    ]
}

fn server_calls() -> Vec<EngineEvent> {
    vec![
        EngineEvent::ToolStarted(mcp_call("{}", None)),
        EngineEvent::ToolProgress("half".to_owned()),
        EngineEvent::ToolFinished(Ok("found".to_owned())),
        EngineEvent::ToolStarted(mcp_call("", Some("mcpr_1"))),
        EngineEvent::ToolFinished(Err("lost".to_owned())),
        EngineEvent::ToolStarted(server_tool_call()),
        EngineEvent::ToolProgress("half".to_owned()),
        EngineEvent::ToolFinished(Ok("noon".to_owned())),
        EngineEvent::ToolStarted(server_tool_call()),
        EngineEvent::ToolFinished(Err("lost".to_owned())),
    ]
}

fn searches() -> Vec<EngineEvent> {
    let action = json!({ "type": "search", "query": "dogs" });
    let search = || body(json!({ "type": "web_search_call", "action": action }));
    vec![
        EngineEvent::ToolStarted(search()),
        EngineEvent::ToolFinished(Ok("found".to_owned())),
        EngineEvent::ToolStarted(search()),
        EngineEvent::ToolFinished(Err("lost".to_owned())),
        EngineEvent::ToolStarted(search()),
        finished(ResponseOutcome::Cancelled),
    ]
}

/// Returns the scripts, each with its initial status.
fn scripts() -> Vec<(ResponseStatus, Vec<EngineEvent>)> {
    let begin = || vec![EngineEvent::Created, EngineEvent::Started];
    let speakers = vec![
        speaker_changed("Ada"),
        EngineEvent::ReasoningDelta("hm".to_owned()),
        text_delta("One."),
        client_call(call("function_call", "arguments", "{}")),
        speaker_changed("Bob"),
        speaker_changed("Cyd"),
        EngineEvent::ToolStarted(server_tool_call()),
        EngineEvent::ToolFinished(Ok("noon".to_owned())),
    ];
    let error = ResponseError {
        code: "upstream_error".to_owned(),
        message: "Busy.".to_owned(),
    };
    vec![
        (
            ResponseStatus::Queued,
            [
                begin(),
                texts(),
                client_calls(),
                server_calls(),
                speakers,
                vec![finished(ResponseOutcome::Completed)],
            ]
            .concat(),
        ),
        (
            ResponseStatus::InProgress,
            [
                begin(),
                vec![
                    text_delta("a"),
                    finished(ResponseOutcome::Incomplete("max_output_tokens")),
                ],
            ]
            .concat(),
        ),
        (
            ResponseStatus::InProgress,
            [
                begin(),
                vec![
                    EngineEvent::ToolStarted(mcp_call("{}", None)),
                    finished(ResponseOutcome::Failed(error)),
                ],
            ]
            .concat(),
        ),
        (
            ResponseStatus::InProgress,
            [
                begin(),
                vec![
                    EngineEvent::ReasoningDelta("hm".to_owned()),
                    finished(ResponseOutcome::Cancelled),
                ],
            ]
            .concat(),
        ),
        (ResponseStatus::InProgress, [begin(), searches()].concat()),
    ]
}

/// Replaces the random digits of each id by its number.
fn with_numbered_ids(text: &str) -> String {
    let mut known: Vec<String> = Vec::new();
    let id = Regex::new("_([0-9a-f]{32})").unwrap();
    let numbered = id.replace_all(text, |found: &regex::Captures<'_>| {
        let at = known.iter().position(|it| *it == found[1]);
        let at = at.unwrap_or_else(|| {
            known.push(found[1].to_owned());
            known.len() - 1
        });
        format!("_{at}")
    });
    numbered.into_owned()
}

fn emitted_lines() -> String {
    let mut lines = String::new();
    for (status, script) in scripts() {
        let (events, fold): (Vec<EncodedEvent>, _) = run(status, &script);
        for event in &events {
            lines.push_str(&event.json);
            lines.push('\n');
        }
        // The blocking body has the same bytes as the document in the last event.
        let document = serde_json::to_string(&fold.document()).unwrap();
        assert!(events.last().unwrap().json.contains(&document));
    }
    with_numbered_ids(&lines)
}

#[test]
fn every_event_and_item_has_exactly_this_json() {
    let emitted = emitted_lines();

    for (line, expected) in emitted.lines().zip(EXPECTED.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(emitted.lines().count(), EXPECTED.lines().count());
}

#[test]
fn every_stored_event_is_read_and_written_as_it_was() {
    for line in EXPECTED.lines() {
        let read: SequencedEvent = serde_json::from_str(line).unwrap();

        let event = &read.event;
        assert!(!matches!(event, StreamEvent::Other(_)), "{line}");
        if let StreamEvent::ItemAdded(it) | StreamEvent::ItemDone(it) = event {
            assert!(!matches!(it.item.body, ItemBody::Other(_)), "{line}");
        }
        assert_eq!(serde_json::to_string(&read).unwrap(), line);
        assert!(line.starts_with(&format!("{{\"type\":\"{}\"", event.kind())));
    }
}

#[test]
fn unknown_events_and_items_are_kept_as_they_are() {
    let item = r#"{"id":"x_1","type":"image","b":1,"a":[2.5]}"#;
    let added =
        r#"{"type":"response.output_item.done","output_index":0,"item":#,"sequence_number":0}"#;
    let added = added.replace('#', item);
    let unknown = r#"{"type":"response.image.done","z":1,"a":null,"sequence_number":7}"#;
    let events: Vec<SequencedEvent> = [added.as_str(), unknown]
        .map(|it| serde_json::from_str(it).unwrap())
        .to_vec();
    for (event, line) in events.iter().zip([added.as_str(), unknown]) {
        assert_eq!(serde_json::to_string(event).unwrap(), line);
    }

    let header = fold(ResponseStatus::InProgress).header;
    let mut restored = Fold::replay(header, ResponseStatus::InProgress, events);

    assert_eq!(restored.items()[0].to_value().to_string(), item);
    assert_eq!(restored.apply(text_delta("a"))[0].seq, 8);
}

#[test]
fn a_text_that_was_stored_without_its_lists_is_read() {
    let part = r#"{"type":"output_text","text":"a"}"#;
    let delta = r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"a","sequence_number":0}"#;

    let part: ContentPart = serde_json::from_str(part).unwrap();
    let delta: SequencedEvent = serde_json::from_str(delta).unwrap();

    let expected = json!({ "type": "output_text", "text": "a", "annotations": [], "logprobs": [] });
    assert_eq!(serde_json::to_value(part).unwrap(), expected);
    assert!(matches!(delta.event, StreamEvent::OutputTextDelta(it) if it.logprobs.is_empty()));
}
