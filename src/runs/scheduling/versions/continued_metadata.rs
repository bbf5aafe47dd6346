//! Merges the metadata of a message with that of the text that continues it.

use serde_json::Value;

/// The keys that describe the whole text, so that they are kept from its first part.
const OF_WHOLE_TEXT: [&str; 4] = [
    "reasoning",
    "reasoning_truncated",
    "unscripted_reasoning",
    "tool_calls",
];

/// Returns the metadata of the whole text: that of the new part, and what the former text was based
/// on, unless the new part has its own. Why the former text ended no longer applies.
pub fn merge(before: &Value, mut new: Value) -> Value {
    let has_reasoning = new.get("reasoning").is_some();
    for key in OF_WHOLE_TEXT {
        let is_replaced = has_reasoning && key != "tool_calls";
        if let Some(value) = before.get(key).filter(|_| !is_replaced)
            && new.get(key).is_none()
        {
            new[key] = value.clone();
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::merge;

    #[test]
    fn a_continued_text_keeps_what_its_first_part_was_based_on() {
        let before = json!({
            "reasoning": "Why?", "reasoning_truncated": true, "tool_calls": [1],
            "truncated": true, "finish_reason": "length", "stopped": true, "greeting": true,
        });

        assert_eq!(
            merge(&before, json!({})),
            json!({ "reasoning": "Why?", "reasoning_truncated": true, "tool_calls": [1] })
        );
        assert_eq!(
            merge(&before, json!({ "reasoning": "Well.", "truncated": true })),
            json!({ "reasoning": "Well.", "truncated": true, "tool_calls": [1] })
        );
    }
}
