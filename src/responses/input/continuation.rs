//! Lets the model continue a message of its own at the end of the input, instead of answering it.

use base::prompt_role::PromptRole;
use llm::provider::Provider;
use llm::request::{Message, Request};
use tavern::presets::preset_texts::PresetTexts;

/// Makes the model continue the last message if it is a text of the model: as the beginning of the
/// response where the provider supports that, otherwise by an instruction.
pub fn continue_last_message(request: &mut Request, provider: &dyn Provider) {
    if !request.messages.last().is_some_and(is_text_of_model) {
        return;
    }
    if can_prefill(request, provider) {
        request.is_prefilled = true;
        if let Some(last) = request.messages.last_mut() {
            // APIs reject whitespace at its end.
            last.content.truncate(last.content.trim_end().len());
        }
        return;
    }
    let nudge = PresetTexts::default().continue_nudge_prompt;
    request
        .messages
        .push(Message::new(PromptRole::System, nudge));
}

/// Returns whether the last message of this request may be the beginning of the response. A tool call
/// cannot follow a text that has begun already.
pub fn can_prefill(request: &Request, provider: &dyn Provider) -> bool {
    provider.can_prefill(request) && !request.requires_tool_call()
}

/// Returns whether a message is a text of the model alone.
pub fn is_text_of_model(message: &Message) -> bool {
    let is_alone = message.calls.is_empty() && message.attachments.is_empty();
    let is_text = is_alone && message.answers.is_none() && !message.content.trim().is_empty();
    message.role == PromptRole::Assistant && is_text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use base::prompt_role::PromptRole;
    use llm::demo::model::DemoModel;
    use llm::error::LlmError;
    use llm::provider::{Capability, DeltaStream, Provider};
    use llm::request::{Message, Request};

    use super::continue_last_message;

    /// A provider that cannot continue a text.
    struct Other;

    #[async_trait]
    impl Provider for Other {
        async fn stream(&self, _: &Request) -> Result<DeltaStream, LlmError> {
            unreachable!("nothing is sent")
        }

        fn kind(&self) -> &'static str {
            "other"
        }

        fn has_capability(&self, _: Capability) -> bool {
            false
        }
    }

    fn continued(last: Message, provider: &dyn Provider) -> Request {
        let mut request = Request {
            messages: vec![Message::new(PromptRole::User, "Tell me a story."), last],
            ..Request::default()
        };
        continue_last_message(&mut request, provider);
        request
    }

    #[test]
    fn a_text_of_the_model_at_the_end_is_continued() {
        let text = || Message::new(PromptRole::Assistant, "Once upon \n");

        let begun = continued(text(), &DemoModel::new(Duration::ZERO));
        assert!(begun.is_prefilled);
        assert_eq!(begun.messages[1].content, "Once upon");
        assert_eq!(begun.messages.len(), 2);

        let nudged = continued(text(), &Other);
        assert!(!nudged.is_prefilled);
        assert_eq!(nudged.messages[1], text());
        assert_eq!(nudged.messages[2].role, PromptRole::System);
    }

    #[test]
    fn any_other_message_at_the_end_is_answered() {
        let user = Message::new(PromptRole::User, "Well?");
        let blank = Message::new(PromptRole::Assistant, " ");

        for last in [user, blank] {
            let request = continued(last.clone(), &Other);
            assert_eq!(
                (request.messages.last(), request.is_prefilled),
                (Some(&last), false)
            );
        }
    }
}
