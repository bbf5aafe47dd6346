//! Moves the pictures and documents in results of tool calls to a message of the user after these
//! results, for APIs in which a result is only text.

use std::borrow::Cow;
use std::mem;

use base::prompt_role::PromptRole;

use crate::request::Message;
use crate::tool::Attachment;

/// States for the model where the files of the message come from.
const NOTE: &str = "[The files in the results of the tools above.]";

/// Returns the messages, with one message for the files of each group of results.
pub fn in_own_messages(messages: &[Message]) -> Vec<Cow<'_, Message>> {
    let mut moved = Vec::with_capacity(messages.len());
    let mut files: Vec<Attachment> = Vec::new();
    for message in messages {
        if message.answers.is_none() {
            moved.extend(files_message(&mut files));
        } else {
            files.extend(message.attachments.iter().cloned());
        }
        moved.push(Cow::Borrowed(message));
    }
    moved.extend(files_message(&mut files));
    moved
}

fn files_message(files: &mut Vec<Attachment>) -> Option<Cow<'static, Message>> {
    if files.is_empty() {
        return None;
    }
    Some(Cow::Owned(Message {
        attachments: mem::take(files),
        ..Message::new(PromptRole::User, NOTE)
    }))
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;

    use super::{NOTE, in_own_messages};
    use crate::request::Message;
    use crate::tool::{AnsweredCall, Attachment};

    fn result(id: &str, n_files: usize) -> Message {
        let file = Attachment {
            media_type: "image/png".to_owned(),
            data: id.to_owned(),
            name: None,
            instead: None,
        };
        Message {
            answers: Some(AnsweredCall {
                id: id.to_owned(),
                name: "f".to_owned(),
            }),
            attachments: vec![file; n_files],
            ..Message::new(PromptRole::User, "done")
        }
    }

    #[test]
    fn the_files_of_a_group_follow_its_last_result() {
        let messages = [
            result("a", 1),
            result("b", 2),
            Message::new(PromptRole::Assistant, "Oh."),
            result("c", 0),
            result("d", 1),
        ];

        let moved = in_own_messages(&messages);

        let texts: Vec<&str> = moved.iter().map(|it| it.content.as_str()).collect();
        assert_eq!(texts, ["done", "done", NOTE, "Oh.", "done", "done", NOTE]);
        assert_eq!(
            (moved[2].attachments.len(), moved[6].attachments.len()),
            (3, 1)
        );
    }
}
