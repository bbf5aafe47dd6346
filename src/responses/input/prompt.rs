//! Converts response items to prompt messages, and drops the oldest exchanges of the history and of
//! the new input until the prompt fits the context window. No I/O.

use base::prompt_role::PromptRole;
use llm::reasoning::thought::Thought;
use llm::request::Message;
use responses_api::request::items::item_view::{ItemContent, ItemView, MessageRole};
use serde_json::Value;

use crate::responses::input::prompt_assembler::PromptItem;
use crate::responses::input::{part_content, prompt_assembler};
use crate::responses::persona_models::speaker_selection;

/// The tokens that a model adds around the text of each message.
const FRAME_TOKENS: i64 = 4;

/// The approximate tokens of an image or document; models count them by size, each in its own way.
const ATTACHMENT_TOKENS: i64 = 1_000;

/// The prompt does not fit the context window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptTooLong {
    pub n_tokens: i64,
}

/// Returns the prompt of a response: its instructions, the history, the new input.
pub fn assemble(instructions: Option<&str>, prior: &[Value], input: &[Value]) -> Vec<PromptItem> {
    let first = instructions.map(|it| PromptItem {
        message: Message::new(PromptRole::System, it),
        is_droppable: false,
    });
    let all: Vec<&Value> = prior.iter().chain(input).collect();
    let mut items = prompt_assembler::assemble(&all, message);
    mark_droppable(&mut items);
    first.into_iter().chain(items).collect()
}

/// Marks what may be dropped: everything before the newest message of the user, except system
/// messages.
fn mark_droppable(items: &mut [PromptItem]) {
    let newest = items.iter().rposition(|it| begins_a_turn(&it.message));
    for item in &mut items[..newest.unwrap_or_default()] {
        item.is_droppable = item.message.role != PromptRole::System;
    }
}

/// Converts a message; all other items return `None`.
fn message(item: &ItemView) -> Option<Message> {
    let ItemContent::Message(message) = &item.content else {
        return None;
    };
    let role = match message.role {
        MessageRole::System | MessageRole::Developer => PromptRole::System,
        MessageRole::Assistant => PromptRole::Assistant,
        MessageRole::User => PromptRole::User,
    };
    let name = Some(role).filter(|it| *it != PromptRole::System);
    Some(Message {
        name: name.and_then(|_| speaker_selection::speaker_name(item)),
        attachments: part_content::attachments(&message.content),
        ..Message::new(role, part_content::text(&message.content))
    })
}

/// Fits the messages and `reserve` tokens for the answer into `window`. If `window` is `None`, the
/// limit is unknown and everything is kept. If `truncates` is set, drops the oldest exchanges, each
/// from a user message up to the next.
///
/// # Errors
/// Returns `PromptTooLong` when it does not fit and nothing more may be dropped.
pub fn fit(
    entries: Vec<PromptItem>,
    window: Option<i64>,
    reserve: i64,
    truncates: bool,
    count: &dyn Fn(&str) -> i64,
) -> Result<Vec<Message>, PromptTooLong> {
    let Some(window) = window else {
        return Ok(entries.into_iter().map(|it| it.message).collect());
    };
    let cost = |it: &PromptItem| cost(&it.message, count);
    let entries: Vec<(i64, PromptItem)> = entries.into_iter().map(|it| (cost(&it), it)).collect();
    let mut n_tokens: i64 = entries.iter().map(|(cost, _)| cost).sum::<i64>() + reserve;
    let mut fits = n_tokens <= window || !truncates;
    let mut kept = Vec::with_capacity(entries.len());
    for (cost, it) in entries {
        // Checked at user messages only, so that an exchange is dropped or kept as a whole.
        fits |= n_tokens <= window && it.is_droppable && begins_a_turn(&it.message);
        match it.is_droppable && !fits {
            true => n_tokens -= cost,
            false => kept.push(it.message),
        }
    }
    match n_tokens > window {
        true => Err(PromptTooLong { n_tokens }),
        false => Ok(kept),
    }
}

/// Returns the tokens of a message.
fn cost(message: &Message, count: &dyn Fn(&str) -> i64) -> i64 {
    let calls = message.calls.iter();
    let calls = calls.map(|it| count(&it.name) + count(&it.arguments) + FRAME_TOKENS);
    let n_attached = i64::try_from(message.attachments.len()).unwrap_or(i64::MAX);
    let thoughts = message.thoughts.iter().filter_map(Thought::text);
    let thoughts: i64 = thoughts.map(count).sum();
    let attachments = n_attached * ATTACHMENT_TOKENS;
    count(&message.content) + FRAME_TOKENS + attachments + calls.sum::<i64>() + thoughts
}

/// Returns whether a message begins an exchange; a tool result belongs to the current one.
fn begins_a_turn(message: &Message) -> bool {
    message.role == PromptRole::User && message.answers.is_none()
}

#[cfg(test)]
mod tests {
    use llm::request::Message;
    use serde_json::{Value, json};

    use super::{PromptTooLong, assemble, fit};

    fn message_item(role: &str, text: &str) -> Value {
        json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] })
    }

    fn texts(messages: &[Message]) -> Vec<&str> {
        messages.iter().map(|it| it.content.as_str()).collect()
    }

    fn three_turns() -> Vec<Value> {
        let all = [
            ("developer", "rule"),
            ("user", "one"),
            ("assistant", "first"),
            ("user", "two"),
            ("assistant", "second"),
        ];
        all.map(|(role, text)| message_item(role, text)).to_vec()
    }

    #[test]
    fn instructions_come_first_and_reasoning_is_omitted() {
        let prior = [json!({ "type": "reasoning", "summary": [{ "text": "hm" }] })];

        let all = assemble(Some("be kind"), &prior, &three_turns());

        let all: Vec<_> = all.into_iter().map(|it| it.message).collect();
        assert_eq!(
            texts(&all),
            ["be kind", "rule", "one", "first", "two", "second"]
        );
    }

    #[test]
    fn the_oldest_turn_is_dropped_as_a_whole() {
        let all = assemble(None, &three_turns(), &[message_item("user", "three")]);
        // Each costs 1 token plus its frame.
        let fits = |window, truncates| fit(all.clone(), Some(window), 0, truncates, &|_| 1);

        assert_eq!(texts(&fits(30, false).unwrap()).len(), 6);
        assert_eq!(fits(29, false), Err(PromptTooLong { n_tokens: 30 }));
        assert_eq!(
            texts(&fits(29, true).unwrap()),
            ["rule", "two", "second", "three"]
        );
        assert_eq!(texts(&fits(15, true).unwrap()), ["rule", "three"]);
        let one_input = [three_turns(), vec![message_item("user", "three")]].concat();
        let of_input = fit(assemble(None, &[], &one_input), Some(15), 0, true, &|_| 1);
        assert_eq!(texts(&of_input.unwrap()), ["rule", "three"]);
        assert_eq!(fits(9, true), Err(PromptTooLong { n_tokens: 10 }));
    }

    #[test]
    fn everything_is_sent_if_the_window_is_unknown() {
        let all = assemble(None, &three_turns(), &[]);

        assert_eq!(fit(all, None, 0, false, &|_| 1_000_000).unwrap().len(), 5);
    }
}
