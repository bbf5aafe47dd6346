//! Marks up to where Anthropic's API caches a prompt: the system text, and the history up to and including the
//! second-to-last user message, because the next request begins with the same messages.

use serde_json::{Value, json};

use crate::anthropic::request_parts;
use crate::role_alternation::RoleGroup;

/// Returns the system text with a mark.
pub fn system(text: &str) -> Value {
    let mut block = json!({ "type": "text", "text": text });
    mark(&mut block);
    Value::Array(vec![block])
}

/// Returns the messages, with a mark on the last but one of the user, if there are two.
pub fn messages(groups: &[RoleGroup]) -> Value {
    let mut sent: Vec<Value> = groups.iter().map(request_parts::message).collect();
    let mut users = sent.iter_mut().rev().filter(|it| it["role"] == "user");
    if let Some(message) = users.nth(1) {
        let content = &mut message["content"];
        if let Some(text) = content.as_str() {
            *content = json!([{ "type": "text", "text": text }]);
        }
        if let Some(last) = content.as_array_mut().and_then(|it| it.last_mut()) {
            mark(last);
        }
    }
    Value::Array(sent)
}

fn mark(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole::{Assistant, User};
    use serde_json::{Value, json};

    use super::messages;
    use crate::request::{Message, Request};
    use crate::role_alternation::AlternatingMessages;

    fn sent(roles: &[(base::prompt_role::PromptRole, &str)]) -> Value {
        let messages = roles.iter().map(|(role, text)| Message::new(*role, *text));
        let request = Request {
            messages: messages.collect(),
            ..Request::default()
        };
        super::messages(&AlternatingMessages::from_messages(&request).groups)
    }

    #[test]
    fn the_message_before_the_newest_one_of_the_user_is_marked() {
        let sent = sent(&[
            (User, "One."),
            (Assistant, "Two."),
            (User, "Three."),
            (Assistant, "Four."),
            (User, "Five."),
        ]);

        let marked =
            json!([{"type": "text", "text": "Three.", "cache_control": {"type": "ephemeral"}}]);
        assert_eq!(sent[2]["content"], marked);
        assert_eq!(sent.to_string().matches("cache_control").count(), 1);
    }

    #[test]
    fn a_single_message_is_not_marked() {
        assert_eq!(
            sent(&[(User, "One.")]),
            json!([{"role": "user", "content": "One."}])
        );
        assert_eq!(messages(&[]), json!([]));
    }
}
