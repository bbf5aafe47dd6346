//! Converts the parts of messages of threads to parts of input items, from which prompts are made.

use serde_json::{Value, json};

use crate::threads::thread_status::ThreadMessageRole;

/// Returns the parts of an item for the content of a message.
pub fn of_message(role: ThreadMessageRole, content: &Value) -> Vec<Value> {
    let parts = content.as_array().into_iter().flatten();
    parts.map(|it| part(role, it)).collect()
}

fn part(role: ThreadMessageRole, part: &Value) -> Value {
    match (part["type"].as_str(), role) {
        (Some("image_url"), _) => {
            json!({ "type": "input_image", "image_url": part["image_url"]["url"] })
        }
        (Some("refusal"), _) => json!({ "type": "refusal", "refusal": part["refusal"] }),
        (_, ThreadMessageRole::User) => {
            json!({ "type": "input_text", "text": part["text"]["value"] })
        }
        (_, ThreadMessageRole::Assistant) => {
            json!({ "type": "output_text", "text": part["text"]["value"] })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::of_message;
    use crate::threads::thread_content;
    use crate::threads::thread_status::ThreadMessageRole;

    #[test]
    fn parts_that_are_stored_become_the_parts_that_were_sent() {
        let sent = [
            json!({ "type": "input_text", "text": "Look." }),
            json!({ "type": "input_image", "image_url": "data:x" }),
        ];
        let stored = json!(thread_content::from_item_parts(&sent));

        assert_eq!(of_message(ThreadMessageRole::User, &stored), sent);
    }

    #[test]
    fn a_text_of_the_assistant_is_an_output() {
        let text = json!({ "type": "text", "text": { "value": "Hi.", "annotations": [] } });
        let refusal = json!({ "type": "refusal", "refusal": "No." });

        let parts = of_message(ThreadMessageRole::Assistant, &json!([text, refusal]));

        assert_eq!(parts[0], json!({ "type": "output_text", "text": "Hi." }));
        assert_eq!(parts[1], refusal);
    }
}
