//! Converts the parts of input items to the parts of messages of threads, as these are stored and
//! returned.

use serde_json::{Value, json};

/// Returns the parts of a message of a thread for these parts of an item.
pub fn from_item_parts(parts: &[Value]) -> Vec<Value> {
    parts.iter().map(from_item_part).collect()
}

fn from_item_part(part: &Value) -> Value {
    match part["type"].as_str() {
        Some("input_image") => {
            let detail = part["detail"].as_str().unwrap_or("auto");
            let picture = json!({ "url": part["image_url"], "detail": detail });
            json!({ "type": "image_url", "image_url": picture })
        }
        _ => {
            let text = json!({ "value": part["text"], "annotations": [] });
            json!({ "type": "text", "text": text })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::from_item_parts;

    #[test]
    fn texts_and_pictures_are_converted() {
        let parts = [
            json!({ "type": "input_text", "text": "a" }),
            json!({ "type": "output_text", "text": "b", "annotations": [], "logprobs": [] }),
            json!({ "type": "input_image", "image_url": "data:x" }),
            json!({ "type": "input_image", "image_url": "data:y", "detail": "low" }),
        ];

        assert_eq!(
            json!(from_item_parts(&parts)),
            json!([
                { "type": "text", "text": { "value": "a", "annotations": [] } },
                { "type": "text", "text": { "value": "b", "annotations": [] } },
                { "type": "image_url", "image_url": { "url": "data:x", "detail": "auto" } },
                { "type": "image_url", "image_url": { "url": "data:y", "detail": "low" } },
            ])
        );
    }
}
