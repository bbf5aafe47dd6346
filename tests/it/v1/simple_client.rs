//! A client that builds the items of a response from its events alone.

use serde_json::{Value, json};

/// Fields that are only present at the end of an item.
const SENT_AT_THE_END: [&str; 5] = ["status", "output", "error", "tools", "encrypted_content"];

/// Returns the items of these events. Panics if the text of the deltas differs from that of the
/// finished item, or if the deltas of two items overlap.
pub fn fold_items(events: &[Value]) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut n_done = 0;
    for event in events {
        let Some(at) = event["output_index"].as_u64() else {
            continue;
        };
        let at = usize::try_from(at).expect("the index does not fit into usize");
        let kind = event["type"].as_str().expect("the event has no type");
        if kind == "response.output_item.added" {
            assert_eq!(
                (at, n_done),
                (items.len(), items.len()),
                "the events of two items interleave"
            );
            items.push(event["item"].clone());
            continue;
        }
        assert_eq!(
            (at, at + 1),
            (n_done, items.len()),
            "{kind} is outside of its item"
        );
        let item = &mut items[at];
        match kind {
            "response.output_item.done" => {
                assert_eq!(
                    without_final_fields(item),
                    without_final_fields(&event["item"]),
                    "the deltas differ from the finished item"
                );
                *item = event["item"].clone();
                n_done += 1;
            }
            "response.mcp_list_tools.in_progress" => {}
            _ => apply(kind, event, item),
        }
    }
    assert_eq!(n_done, items.len(), "an item is not finished");
    items
}

fn apply(kind: &str, event: &Value, item: &mut Value) {
    assert!(
        item["id"] == event["item_id"],
        "{kind} has the id of another item"
    );
    let (part, list) = match event["summary_index"].as_u64() {
        Some(part) => (part, "summary"),
        None => (
            event["content_index"].as_u64().unwrap_or_default(),
            "content",
        ),
    };
    let part = usize::try_from(part).expect("the index does not fit into usize");
    match kind.trim_start_matches("response.") {
        "content_part.added" | "reasoning_summary_part.added" => {
            let parts = item[list]
                .as_array_mut()
                .expect("the item has no list of parts");
            assert_eq!(part, parts.len(), "parts are not in order");
            parts.push(event["part"].clone());
        }
        "content_part.done" | "reasoning_summary_part.done" => {
            assert_eq!(item[list][part], event["part"]);
        }
        "output_text.delta" => {
            let logprobs = event["logprobs"]
                .as_array()
                .expect("`logprobs` is not a list")
                .clone();
            let all = item[list][part]["logprobs"].as_array_mut();
            all.expect("the part has no `logprobs`").extend(logprobs);
            append_delta(&mut item[list][part]["text"], event)
        }
        "output_text.annotation.added" => {
            let all = item[list][part]["annotations"].as_array_mut();
            all.expect("the part has no `annotations`")
                .push(event["annotation"].clone());
        }
        "reasoning_summary_text.delta" => append_delta(&mut item[list][part]["text"], event),
        "output_text.done" | "reasoning_summary_text.done" => {
            assert_eq!(item[list][part]["text"], event["text"])
        }
        "refusal.delta" => append_delta(&mut item[list][part]["refusal"], event),
        "refusal.done" => assert_eq!(item[list][part]["refusal"], event["refusal"]),
        "function_call_arguments.delta" | "mcp_call_arguments.delta" => {
            append_delta(&mut item["arguments"], event)
        }
        "custom_tool_call_input.delta" => append_delta(&mut item["input"], event),
        _ => {}
    }
}

fn append_delta(text: &mut Value, event: &Value) {
    let delta = event["delta"].as_str().expect("`delta` is not a string");
    assert!(!delta.is_empty(), "the delta is empty");
    *text = json!(
        text.as_str()
            .expect("the target of the delta is not a string")
            .to_owned()
            + delta
    );
}

fn without_final_fields(item: &Value) -> Value {
    let mut item_before = item.clone();
    for name in SENT_AT_THE_END {
        item_before
            .as_object_mut()
            .expect("the item is not an object")
            .remove(name);
    }
    item_before
}
