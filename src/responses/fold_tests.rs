//! The laws of the one fold, by examples: order, and what each ending leaves.

use super::Cut;
use super::Ending;
use super::Event;
use super::Fold;
use super::Happening;
use super::How;
use crate::clock::Timestamp;
use crate::responses::document::Bill;
use crate::responses::document::Header;
use crate::responses::document::Trouble;
use crate::responses::response::Status;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

pub fn fold(status: Status) -> Fold {
    let header = Header {
        id: "resp_1".to_owned(),
        created_at: Timestamp(1_000),
        echo: Map::from_iter([("model".to_owned(), json!("m"))]),
    };
    Fold::new(header, status)
}

pub fn ended(how: How) -> Happening {
    Happening::Ended(Ending {
        how,
        usage: Some(Bill::default()),
        at: Timestamp(2_000),
    })
}

pub fn said(text: &str) -> Happening {
    Happening::Said(text.to_owned())
}

fn thought(text: &str) -> Happening {
    Happening::Thought(text.to_owned())
}

/// All events of these happenings, and the fold behind them.
pub fn run(status: Status, happenings: &[Happening]) -> (Vec<Event>, Fold) {
    let mut fold = fold(status);
    let events = happenings
        .iter()
        .flat_map(|it| fold.apply(it.clone()))
        .collect();
    (events, fold)
}

pub fn kinds(events: &[Event]) -> Vec<&str> {
    events
        .iter()
        .map(|it| it.kind.trim_start_matches("response."))
        .collect()
}

#[test]
fn text_comes_in_the_agreed_order() {
    let all = [
        Happening::Created,
        Happening::Began,
        said("Hel"),
        said("lo"),
        ended(How::Completed),
    ];

    let (events, _) = run(Status::InProgress, &all);

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
fn what_is_thought_is_an_item_before_the_text() {
    let all = [
        Happening::Created,
        thought("hm"),
        said("Hello"),
        ended(How::Completed),
    ];

    let (_, fold) = run(Status::InProgress, &all);

    let document = fold.document();
    assert_eq!(document["output"][0]["type"], "reasoning");
    assert_eq!(document["output"][0]["summary"][0]["text"], "hm");
    assert_eq!(document["output"][1]["content"][0]["text"], "Hello");
}

#[test]
fn a_model_that_stops_at_once_has_said_the_empty_text() {
    for before in [vec![], vec![thought("hm")]] {
        let all = [
            vec![Happening::Created],
            before,
            vec![ended(How::Completed)],
        ]
        .concat();

        let (_, fold) = run(Status::InProgress, &all);

        let document = fold.document();
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
fn who_fails_before_any_output_has_none() {
    let trouble = Trouble {
        code: "upstream_error".to_owned(),
        message: "Busy.".to_owned(),
    };
    let all = [
        Happening::Created,
        Happening::Began,
        ended(How::Failed(trouble)),
    ];

    let (events, fold) = run(Status::InProgress, &all);

    assert_eq!(kinds(&events), ["created", "in_progress", "failed"]);
    assert_eq!(fold.document()["error"]["code"], "upstream_error");
}

#[test]
fn a_cancelled_stream_ends_with_incomplete() {
    let all = [Happening::Created, said("Hel"), ended(How::Cancelled)];

    let (events, fold) = run(Status::InProgress, &all);

    let document = fold.document();
    assert_eq!(kinds(&events).last(), Some(&"incomplete"));
    assert_eq!(document["status"], "cancelled");
    assert_eq!(document["incomplete_details"]["reason"], "cancelled");
    assert_eq!(document["output"][0]["status"], "incomplete");
    assert_eq!(document["completed_at"], Value::Null);
}

pub fn call(kind: &str, field: &str, text: &str) -> Value {
    json!({ "type": kind, "call_id": "call_1", "name": "f", field: text })
}

pub fn receipt() -> Value {
    json!({
        "type": "troupe:time", "call_id": "call_1", "arguments": "{}", "output": null,
        "error": null,
    })
}

#[test]
fn each_kind_of_call_has_its_group() {
    let action = json!({ "type": "exec", "command": ["ls"], "env": {} });
    let shell = json!({ "type": "local_shell_call", "call_id": "call_1", "action": action });
    let all = [
        Happening::Created,
        said("a"),
        Happening::Called(call("function_call", "arguments", "{}"), Cut::Whole),
        Happening::Called(call("custom_tool_call", "input", "x"), Cut::Whole),
        Happening::Called(shell, Cut::Whole),
        ended(How::Completed),
    ];

    let (events, fold) = run(Status::InProgress, &all);

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
        .map(|it| it["id"].as_str().unwrap().split('_').next().unwrap());
    assert_eq!(prefixes.collect::<Vec<_>>(), ["msg", "fc", "ctc", "lsc"]);
}

#[test]
fn a_tool_of_ours_moves_and_ends_and_what_follows_is_another_item() {
    let all = [
        Happening::Created,
        said("a"),
        Happening::AskedAgain,
        said("b"),
        Happening::ToolBegan(receipt()),
        Happening::ToolMoved("half".to_owned()),
        Happening::ToolEnded(Ok("noon".to_owned())),
        Happening::ToolMoved("late".to_owned()),
        Happening::ToolEnded(Ok("again".to_owned())),
        Happening::AskedAgain,
        ended(How::Completed),
    ];

    let (events, fold) = run(Status::InProgress, &all);

    let told: Vec<&str> = events.iter().map(|it| it.kind.as_str()).collect();
    assert_eq!(
        told.iter()
            .filter(|it| **it == "troupe:tool.progress")
            .count(),
        1
    );
    let items = fold.items();
    let types: Vec<&str> = items
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["message", "message", "troupe:time", "message"]);
    assert_eq!(items[2]["output"], "noon");
    assert_eq!(
        items[3]["content"][0]["text"], "",
        "the last round said nothing"
    );
}

#[test]
fn a_tool_that_was_cut_off_is_incomplete() {
    let all = [
        Happening::Created,
        Happening::ToolBegan(receipt()),
        ended(How::Cancelled),
    ];

    let (_, fold) = run(Status::InProgress, &all);

    assert_eq!(fold.items()[0]["status"], "incomplete");
}

#[test]
fn a_refusal_is_a_part_of_its_own_in_the_one_message() {
    let refused = |text: &str| Happening::Refused(text.to_owned());
    let all = [
        Happening::Created,
        said("Well, "),
        refused("I can"),
        refused("not."),
        said("Sorry."),
        ended(How::Completed),
    ];

    let (events, fold) = run(Status::InProgress, &all);

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
    let item = &fold.items()[0];
    assert_eq!(item["content"][0]["text"], "Well, ");
    let refusal = json!({ "type": "refusal", "refusal": "I cannot." });
    assert_eq!(item["content"][1], refusal);
    assert_eq!(item["content"][2]["text"], "Sorry.");
}

#[test]
fn who_only_refuses_has_answered() {
    let refused = Happening::Refused("No.".to_owned());
    let all = [Happening::Created, refused, ended(How::Completed)];

    let (_, fold) = run(Status::InProgress, &all);

    let [item] = fold.items() else {
        panic!("{:?}", fold.items());
    };
    let content = json!([{ "type": "refusal", "refusal": "No." }]);
    assert_eq!(
        (&item["type"], &item["content"]),
        (&json!("message"), &content)
    );
}
