//! A client that builds the items of a response from its events alone.

use serde_json::{Value, json};

/// Fields that are only present at the end of an item.
const SENT_AT_THE_END: [&str; 4] = ["status", "output", "error", "tools"];

/// Returns the items of these events. Panics if the text of the deltas differs from that of the
/// finished item, or if the deltas of two items overlap.
pub fn fold_items(events: &[Value]) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut n_done = 0;
    for event in events {
        let Some(at) = event["output_index"].as_u64() else {
            continue;
        };
        let at = usize::try_from(at).expect("a list is short");
        let kind = event["type"].as_str().expect("an event has its type");
        if kind == "response.output_item.added" {
            assert_eq!(
                (at, n_done),
                (items.len(), items.len()),
                "groups never interleave"
            );
            items.push(event["item"].clone());
            continue;
        }
        assert_eq!(
            (at, at + 1),
            (n_done, items.len()),
            "{kind} stands in its group"
        );
        let item = &mut items[at];
        match kind {
            "response.output_item.done" => {
                assert_eq!(
                    known_before(item),
                    known_before(&event["item"]),
                    "deltas are what is done"
                );
                *item = event["item"].clone();
                n_done += 1;
            }
            "response.mcp_list_tools.in_progress" => {}
            _ => apply(kind, event, item),
        }
    }
    assert_eq!(n_done, items.len(), "every group has its end");
    items
}

fn apply(kind: &str, event: &Value, item: &mut Value) {
    assert!(item["id"] == event["item_id"], "{kind} is of this item");
    let (part, list) = match event["summary_index"].as_u64() {
        Some(part) => (part, "summary"),
        None => (
            event["content_index"].as_u64().unwrap_or_default(),
            "content",
        ),
    };
    let part = usize::try_from(part).expect("a list is short");
    match kind.trim_start_matches("response.") {
        "content_part.added" | "reasoning_summary_part.added" => {
            let parts = item[list].as_array_mut().expect("an item has its parts");
            assert_eq!(part, parts.len(), "parts come in order");
            parts.push(event["part"].clone());
        }
        "content_part.done" | "reasoning_summary_part.done" => {
            assert_eq!(item[list][part], event["part"]);
        }
        "output_text.delta" => {
            let weights = event["logprobs"].as_array().expect("a list").clone();
            let all = item[list][part]["logprobs"].as_array_mut();
            all.expect("a part has its list").extend(weights);
            grow(&mut item[list][part]["text"], event)
        }
        "output_text.annotation.added" => {
            let all = item[list][part]["annotations"].as_array_mut();
            all.expect("a part has its list")
                .push(event["annotation"].clone());
        }
        "reasoning_summary_text.delta" => grow(&mut item[list][part]["text"], event),
        "output_text.done" | "reasoning_summary_text.done" => {
            assert_eq!(item[list][part]["text"], event["text"])
        }
        "refusal.delta" => grow(&mut item[list][part]["refusal"], event),
        "refusal.done" => assert_eq!(item[list][part]["refusal"], event["refusal"]),
        "function_call_arguments.delta" | "mcp_call_arguments.delta" => {
            grow(&mut item["arguments"], event)
        }
        "custom_tool_call_input.delta" => grow(&mut item["input"], event),
        _ => {}
    }
}

fn grow(text: &mut Value, event: &Value) {
    let delta = event["delta"].as_str().expect("a delta is text");
    assert!(!delta.is_empty(), "a delta says something");
    *text = json!(text.as_str().expect("what grows is text").to_owned() + delta);
}

fn known_before(item: &Value) -> Value {
    let mut known = item.clone();
    for name in SENT_AT_THE_END {
        known
            .as_object_mut()
            .expect("an item is an object")
            .remove(name);
    }
    known
}
