//! The laws of the one fold: order, numbers, and that everybody is told the same.

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
use proptest::prelude::Just;
use proptest::prelude::Strategy;
use proptest::prelude::prop_assert;
use proptest::prelude::prop_assert_eq;
use proptest::prop_oneof;
use proptest::proptest;
use proptest::sample::Index;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

fn fold(status: Status) -> Fold {
    let header = Header {
        id: "resp_1".to_owned(),
        created_at: Timestamp(1_000),
        echo: Map::from_iter([("model".to_owned(), json!("m"))]),
    };
    Fold::new(header, status)
}

fn ended(how: How) -> Happening {
    Happening::Ended(Ending {
        how,
        usage: Some(Bill::default()),
        at: Timestamp(2_000),
    })
}

fn said(text: &str) -> Happening {
    Happening::Said(text.to_owned())
}

fn thought(text: &str) -> Happening {
    Happening::Thought(text.to_owned())
}

/// All events of these happenings, and the fold behind them.
fn run(status: Status, happenings: &[Happening]) -> (Vec<Event>, Fold) {
    let mut fold = fold(status);
    let events = happenings
        .iter()
        .flat_map(|it| fold.apply(it.clone()))
        .collect();
    (events, fold)
}

fn read(events: &[Event]) -> Vec<Value> {
    events
        .iter()
        .map(|it| serde_json::from_str(&it.json).unwrap())
        .collect()
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events
        .iter()
        .map(|it| it.kind.trim_start_matches("response."))
        .collect()
}

/// What a client that only knows the events makes of them: the items of the output.
fn naive(events: &[Value]) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    for event in events {
        let at = event["output_index"].as_u64().unwrap_or_default() as usize;
        match event["type"].as_str().unwrap() {
            "response.output_item.added" => {
                assert_eq!(at, items.len(), "groups never interleave");
                items.push(event["item"].clone());
            }
            "response.content_part.added" => items[at]["content"] = json!([event["part"]]),
            "response.reasoning_summary_part.added" => {
                items[at]["summary"] = json!([event["part"]]);
            }
            "response.output_text.delta" => grow(&mut items[at]["content"][0]["text"], event),
            "response.reasoning_summary_text.delta" => {
                grow(&mut items[at]["summary"][0]["text"], event);
            }
            "response.function_call_arguments.delta" => grow(&mut items[at]["arguments"], event),
            "response.custom_tool_call_input.delta" => grow(&mut items[at]["input"], event),
            "response.output_item.done" => {
                let mut done = event["item"].clone();
                done["status"] = json!("in_progress");
                if done["type"] == "troupe:time" {
                    (done["output"], done["error"]) = (Value::Null, Value::Null);
                }
                assert_eq!(items[at], done, "deltas are what is done");
                items[at] = event["item"].clone();
            }
            _ => {}
        }
    }
    items
}

fn grow(text: &mut Value, event: &Value) {
    let delta = event["delta"].as_str().unwrap();
    assert!(!delta.is_empty());
    *text = json!(text.as_str().unwrap().to_owned() + delta);
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

fn call(kind: &str, field: &str, text: &str) -> Value {
    json!({ "type": kind, "call_id": "call_1", "name": "f", field: text })
}

fn receipt() -> Value {
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

fn anything() -> impl Strategy<Value = Happening> {
    prop_oneof![
        "[a-z{}\"]{0,4}".prop_map(|it| {
            Happening::Called(call("function_call", "arguments", &it), Cut::Whole)
        }),
        "[a-z]{0,4}".prop_map(|it| {
            Happening::Called(call("custom_tool_call", "input", &it), Cut::Short)
        }),
        Just(Happening::ToolBegan(receipt())),
        "[a-z]{1,4}".prop_map(Happening::ToolMoved),
        "[a-z]{1,4}".prop_map(|it| Happening::ToolEnded(Ok(it))),
        Just(Happening::AskedAgain),
        "[a-zé漢🦀 \n\"]{1,4}".prop_map(Happening::Said),
        "[a-z ]{1,3}".prop_map(Happening::Thought),
    ]
}

fn any_end() -> impl Strategy<Value = How> {
    prop_oneof![
        Just(How::Completed),
        Just(How::Incomplete("max_output_tokens")),
        Just(How::Cancelled),
        Just(How::Failed(Trouble {
            code: "server_error".to_owned(),
            message: "No.".to_owned(),
        })),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_everybody_is_told_the_same(
        middle in proptest::collection::vec(anything(), 0..12),
        how in any_end(),
        is_queued in proptest::bool::ANY,
        cut in proptest::prelude::any::<Index>(),
    ) {
        let status = if is_queued { Status::Queued } else { Status::InProgress };
        let begin = vec![Happening::Created, Happening::Began];
        let end = vec![ended(how), said("late"), ended(How::Completed)];
        let all = [begin, middle, end].concat();

        let (events, whole) = run(status, &all);
        let told = read(&events);

        let numbers: Vec<i64> = events.iter().map(|it| it.seq).collect();
        prop_assert_eq!(numbers, (0..i64::try_from(events.len()).unwrap()).collect::<Vec<_>>());
        prop_assert!(events.iter().filter(|it| it.is_terminal()).count() == 1);
        prop_assert!(events.last().unwrap().is_terminal());
        prop_assert_eq!(&told.last().unwrap()["response"], &whole.document());
        prop_assert_eq!(&told[0]["response"]["output"], &json!([]));
        let output = whole.document()["output"].clone();
        prop_assert_eq!(json!(naive(&told)), output);
        for (event, value) in events.iter().zip(&told) {
            prop_assert_eq!(&value["type"], &json!(event.kind));
            prop_assert_eq!(&value["sequence_number"], &json!(event.seq));
        }

        // Who takes over anywhere goes on as the first one would have.
        let n_before = cut.index(all.len() - 3) + 1;
        let (before, first) = run(status, &all[..n_before]);
        let header = fold(status).header;
        let mut second = Fold::replay(header, status, &read(&before));
        prop_assert_eq!(second.has_output(), first.has_output());
        let mut first = first;
        let last = all[all.len() - 3].clone();
        prop_assert_eq!(second.apply(last.clone()).len(), first.apply(last).len());
        let texts = |it: &Fold| it.document()["output"].to_string().replace("msg_", "");
        prop_assert_eq!(without_ids(&texts(&second)), without_ids(&texts(&first)));
        prop_assert_eq!(second.next_seq, first.next_seq);
    }
}

/// The 32 digits of an id are minted anew.
fn without_ids(text: &str) -> String {
    let id = regex::Regex::new("[0-9a-f]{32}").unwrap();
    id.replace_all(text, "").into_owned()
}
