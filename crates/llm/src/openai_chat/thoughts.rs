//! Adds the reasoning before tool calls to the messages of the Chat Completions API, for endpoints that
//! sent it: some reject a message with calls without its reasoning. OpenAI's own API has no reasoning
//! text.

use serde_json::{Value, json};

use crate::reasoning::thought::{Thought, ThoughtField};

/// Adds the texts of the thoughts to a message, each in the field in which it arrived.
pub fn insert_thoughts(message: &mut Value, thoughts: &[Thought]) {
    for field in [ThoughtField::ReasoningContent, ThoughtField::Reasoning] {
        let texts = thoughts.iter().filter_map(|it| match it {
            Thought::Text { field: own, text } if *own == field => Some(text.as_str()),
            _ => None,
        });
        let text: String = texts.collect();
        if !text.is_empty() {
            message[field.as_str()] = json!(text);
        }
    }
}

/// Adds an empty `reasoning_content` to each message with calls that has none, if another message
/// has one. DeepSeek's API requires the field although the model may call a tool without reasoning.
pub fn complete_reasoning_content(messages: &mut [Value]) {
    let field = ThoughtField::ReasoningContent.as_str();
    if !messages.iter().any(|it| it.get(field).is_some()) {
        return;
    }
    let with_calls = messages
        .iter_mut()
        .filter(|it| it.get("tool_calls").is_some() && it.get(field).is_none());
    for message in with_calls {
        message[field] = json!("");
    }
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;
    use serde_json::{Value, json};

    use crate::openai_chat::request::body;
    use crate::openai_chat::variant::ChatVariant;
    use crate::provider_options::ProviderOptions;
    use crate::reasoning::thought::{Thought, ThoughtField};
    use crate::request::{Message, Request};
    use crate::tool::ToolCall;

    fn called(thoughts: Vec<Thought>) -> Message {
        Message {
            calls: vec![ToolCall::default()],
            thoughts,
            ..Message::new(PromptRole::Assistant, "")
        }
    }

    fn text(field: ThoughtField, text: &str) -> Thought {
        let text = text.to_owned();
        Thought::Text { field, text }
    }

    fn sent(messages: Vec<Message>, variant: ChatVariant) -> Value {
        let request = Request {
            messages,
            ..Request::default()
        };
        body(&request, &ProviderOptions::default(), variant)["messages"].clone()
    }

    #[test]
    fn reasoning_is_sent_back_in_its_field() {
        let foreign = Thought::Redacted {
            data: "x".to_owned(),
        };
        let thoughts = vec![
            text(ThoughtField::ReasoningContent, "Hm. "),
            text(ThoughtField::ReasoningContent, "Yes."),
            foreign,
        ];
        let without = called(Vec::new());

        let messages = vec![called(thoughts), without];
        let compatible = sent(messages.clone(), ChatVariant::Compatible);
        let openai = sent(messages, ChatVariant::Openai);

        assert_eq!(compatible[0]["reasoning_content"], "Hm. Yes.");
        assert_eq!(compatible[1]["reasoning_content"], "");
        assert!(openai[0].get("reasoning_content").is_none());
        let other = called(vec![text(ThoughtField::Reasoning, "Hm.")]);
        let plain = sent(vec![other, called(Vec::new())], ChatVariant::Compatible);
        assert_eq!(
            (&plain[0]["reasoning"], plain[1].get("reasoning")),
            (&json!("Hm."), None)
        );
        assert!(plain[1].get("reasoning_content").is_none());
    }
}
