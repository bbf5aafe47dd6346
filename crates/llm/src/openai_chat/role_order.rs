//! Arranges the messages of a request for models whose chat templates restrict roles and their order.
//!
//! **Invariant:** no text is lost, the order of texts stays the same, and neither tool calls nor their
//! results are merged or moved.

use std::borrow::Cow;

use base::prompt_role::PromptRole;

use crate::compatibility::name_prefix::text_with_name;
use crate::compatibility::role_handling::{RoleHandling, SystemRole};
use crate::request::{Message, Request};
use crate::role_alternation;

/// Returns the messages of a request in an order that the model accepts.
pub fn arrange(
    request: &Request,
    handling: RoleHandling,
    system: SystemRole,
) -> Cow<'_, [Message]> {
    if handling <= RoleHandling::Native && system != SystemRole::User {
        return Cow::Borrowed(&request.messages);
    }
    let mut arranged: Vec<Message> = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        push(&mut arranged, message.clone(), handling);
    }
    if handling == RoleHandling::StrictAlternation {
        begin_and_end_with_user(&mut arranged, request);
    }
    if system == SystemRole::User {
        move_system_text(&mut arranged);
    }
    Cow::Owned(arranged)
}

/// Adds a message, or joins it to the last one.
fn push(arranged: &mut Vec<Message>, mut message: Message, handling: RoleHandling) {
    let is_later = arranged.iter().any(|it| it.role != PromptRole::System);
    if handling >= RoleHandling::NoSystemAfterFirst
        && message.role == PromptRole::System
        && is_later
    {
        message.role = PromptRole::User;
        // The name of a system message only distinguishes examples.
        message.name = None;
    }
    if handling < RoleHandling::MergeConsecutive {
        return arranged.push(message);
    }
    if role_alternation::is_blank(&message) {
        return;
    }
    match arranged.last_mut() {
        Some(last) if last.role == message.role && is_text(last) && is_text(&message) => {
            last.content = text_with_name(last);
            last.name = None;
            let text = text_with_name(&message);
            role_alternation::append_paragraph(&mut last.content, &text);
            last.attachments.append(&mut message.attachments);
        }
        _ => arranged.push(message),
    }
}

/// Returns whether a message is neither a tool call nor its result.
fn is_text(message: &Message) -> bool {
    message.calls.is_empty() && message.answers.is_none()
}

/// Inserts a user message after the system text and at the end where there is none; not at the end if the model
/// continues its last message.
fn begin_and_end_with_user(arranged: &mut Vec<Message>, request: &Request) {
    let is_system = |it: &&Message| it.role == PromptRole::System;
    let start = arranged.iter().take_while(is_system).count();
    let is_users = |it: &Message| it.role == PromptRole::User && it.answers.is_none();
    if !arranged.get(start).is_some_and(is_users) {
        let opening = Message::new(PromptRole::User, role_alternation::OPENING_TEXT);
        arranged.insert(start, opening);
    }
    let is_models = |it: &Message| it.role == PromptRole::Assistant && is_text(it);
    if arranged.last().is_some_and(is_models) && !request.is_prefilled {
        let closing = role_alternation::closing_text(&request.speaker);
        arranged.push(Message::new(PromptRole::User, closing));
    }
}

/// Moves the leading system text to the beginning of the first user message.
fn move_system_text(arranged: &mut Vec<Message>) {
    let is_system = |it: &&Message| it.role == PromptRole::System;
    let n = arranged.iter().take_while(is_system).count();
    let mut text = String::new();
    for message in arranged.drain(..n) {
        role_alternation::append_paragraph(&mut text, &message.content);
    }
    if text.is_empty() {
        return;
    }
    match arranged.first_mut() {
        Some(first) if first.role == PromptRole::User && is_text(first) => {
            role_alternation::append_paragraph(&mut text, &text_with_name(first));
            first.content = text;
            first.name = None;
        }
        _ => arranged.insert(0, Message::new(PromptRole::User, text)),
    }
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole::{Assistant, System, User};
    use proptest::collection::vec;
    use proptest::prelude::{
        Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
    };

    use super::arrange;
    use crate::compatibility::role_handling::{RoleHandling, SystemRole};
    use crate::request::{Message, Request};
    use crate::tool::{AnsweredCall, ToolCall};

    fn request(messages: Vec<Message>) -> Request {
        Request {
            messages,
            speaker: "Mina".to_owned(),
            ..Request::default()
        }
    }

    /// System text, three speakers, a later instruction, and the nudge at the end.
    fn scene() -> Request {
        request(vec![
            Message::new(System, "You are Mina."),
            Message::new(System, "An example.").with_name("example_user"),
            Message::new(Assistant, "Welcome.").with_name("Mina"),
            Message::new(User, "Hi.").with_name("Ann"),
            Message::new(User, "Hello.").with_name("Bob"),
            Message::new(System, "It rains."),
            Message::new(Assistant, "Sit down.").with_name("Rook"),
            Message::new(System, "Write as Mina."),
        ])
    }

    fn lines(request: &Request, handling: RoleHandling, system: SystemRole) -> Vec<String> {
        let arranged = arrange(request, handling, system);
        let line = |it: &Message| {
            let name = it
                .name
                .as_deref()
                .map(|it| format!("({it})"))
                .unwrap_or_default();
            format!("{}{name}: {}", it.role.as_str(), it.content)
        };
        arranged.iter().map(line).collect()
    }

    #[test]
    fn native_messages_are_sent_as_they_were_built() {
        let scene = scene();

        let sent = arrange(&scene, RoleHandling::Native, SystemRole::System);

        assert_eq!(*sent, scene.messages);
    }

    #[test]
    fn consecutive_messages_of_one_role_are_merged_with_their_names() {
        let expected = [
            "system: You are Mina.\n\nAn example.",
            "assistant(Mina): Welcome.",
            "user: Ann: Hi.\n\nBob: Hello.",
            "system: It rains.",
            "assistant(Rook): Sit down.",
            "system: Write as Mina.",
        ];
        let sent = lines(&scene(), RoleHandling::MergeConsecutive, SystemRole::System);
        assert_eq!(sent, expected);
    }

    #[test]
    fn later_system_text_becomes_the_users() {
        let expected = [
            "system: You are Mina.\n\nAn example.",
            "assistant(Mina): Welcome.",
            "user: Ann: Hi.\n\nBob: Hello.\n\nIt rains.",
            "assistant(Rook): Sit down.",
            "user: Write as Mina.",
        ];
        let sent = lines(
            &scene(),
            RoleHandling::NoSystemAfterFirst,
            SystemRole::System,
        );
        assert_eq!(sent, expected);
    }

    #[test]
    fn alternating_roles_begin_and_end_with_the_user() {
        let mut scene = scene();
        scene.messages.pop();

        let sent = lines(&scene, RoleHandling::StrictAlternation, SystemRole::System);
        assert_eq!(sent[1..3], ["user: [Start]", "assistant(Mina): Welcome."]);
        assert_eq!(
            sent.last().unwrap(),
            "user: [Write the next reply as Mina.]"
        );
        scene.is_prefilled = true;
        let sent = lines(&scene, RoleHandling::StrictAlternation, SystemRole::System);
        assert_eq!(sent.last().unwrap(), "assistant(Rook): Sit down.");
    }

    #[test]
    fn system_text_precedes_the_first_user_message() {
        let sent = lines(&scene(), RoleHandling::StrictAlternation, SystemRole::User);
        assert_eq!(sent[0], "user: You are Mina.\n\nAn example.\n\n[Start]");
        let sent = lines(&scene(), RoleHandling::Native, SystemRole::User);
        assert_eq!(sent[0], "user: You are Mina.\n\nAn example.");
        let alone = request(vec![Message::new(User, "Hi.").with_name("Ann")]);
        assert_eq!(
            lines(&alone, RoleHandling::Native, SystemRole::User),
            ["user(Ann): Hi."]
        );
    }

    fn message() -> impl Strategy<Value = Message> {
        let role = prop_oneof![Just(System), Just(User), Just(Assistant)];
        (role, "[a-z]{1,3}", any::<Option<bool>>()).prop_map(|(role, text, call)| {
            let mut message = Message::new(role, text);
            match call {
                Some(true) if role == Assistant => message.calls.push(ToolCall {
                    id: "1".to_owned(),
                    name: "f".to_owned(),
                    arguments: "{}".to_owned(),
                }),
                Some(false) if role == User => {
                    message.answers = Some(AnsweredCall {
                        id: "1".to_owned(),
                        name: "f".to_owned(),
                    });
                }
                _ => {}
            }
            message
        })
    }

    proptest! {
        #[test]
        fn no_text_is_lost_and_texts_of_one_side_never_follow_each_other(messages in vec(message(), 0..12)) {
            let request = request(messages);
            let sent = arrange(&request, RoleHandling::StrictAlternation, SystemRole::System);

            let words = |it: &[Message]| -> Vec<String> {
                let texts = it.iter().flat_map(|it| it.content.split("\n\n"));
                texts.filter(|it| !it.starts_with('[')).map(str::to_owned).collect()
            };
            prop_assert_eq!(words(&sent), words(&request.messages));
            for pair in sent.windows(2) {
                let is_text = |it: &Message| it.calls.is_empty() && it.answers.is_none();
                prop_assert!(pair[0].role != pair[1].role || !is_text(&pair[0]) || !is_text(&pair[1]));
            }
            prop_assert!(sent.iter().skip(1).all(|it| it.role != System));
        }
    }
}
