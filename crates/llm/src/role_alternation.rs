//! Converts a prompt to a system prompt and alternating groups of user and model messages, for APIs
//! that require this form.
//!
//! **Invariant:** the roles alternate, the first group is the user's and so is the last, unless it is
//! the beginning of the response, and no group is blank. Results of tool calls come first in their group,
//! where APIs expect them.

use base::prompt_role::PromptRole;

use crate::compatibility::name_prefix::text_with_name;
use crate::reasoning::thought::Thought;
use crate::request::{Message, Request};
use crate::tool::{AnsweredCall, Attachment, ToolCall};

/// Precedes a prompt that would begin with the model's side.
pub const OPENING_TEXT: &str = "[Start]";

/// A prompt in alternating role groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlternatingMessages<'a> {
    /// The system messages at the beginning of the prompt; often empty.
    pub system: String,
    pub groups: Vec<RoleGroup<'a>>,
}

/// Consecutive messages of one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleGroup<'a> {
    pub is_model: bool,
    /// Never empty.
    pub blocks: Vec<ContentBlock<'a>>,
}

/// A part of a role group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentBlock<'a> {
    /// Never blank; never next to another text.
    Text(String),
    Attachment(&'a Attachment),
    /// A call, with the signature that the Gemini API has attached to it.
    Call(&'a ToolCall, Option<&'a str>),
    /// Reasoning before the calls of the model.
    Thought(&'a Thought),
    /// The result of a tool call: a text, which may be empty, and its files.
    Result(&'a AnsweredCall, &'a str, &'a [Attachment]),
}

impl<'a> AlternatingMessages<'a> {
    /// Converts the prompt of a request. Later system messages go to the user's side, and
    /// consecutive messages of one side become one group.
    pub fn from_messages(request: &'a Request) -> Self {
        let (mut system, mut groups) = (String::new(), Vec::<RoleGroup>::new());
        for message in request.messages.iter().filter(|it| !is_blank(it)) {
            if message.role == PromptRole::System && groups.is_empty() {
                append_paragraph(&mut system, &message.content);
                continue;
            }
            // The result of a tool call belongs to the user's side, whatever its role.
            let is_model = message.role == PromptRole::Assistant && message.answers.is_none();
            if is_model && groups.is_empty() {
                groups.push(user_group(OPENING_TEXT.to_owned()));
            }
            if groups.last().is_none_or(|it| it.is_model != is_model) {
                let blocks = Vec::new();
                groups.push(RoleGroup { is_model, blocks });
            }
            if let Some(turn) = groups.last_mut() {
                turn.push_block(message);
            }
        }
        // APIs would treat a model's group at the end as the beginning of the response.
        match groups.last() {
            Some(last) if last.is_model && request.is_prefilled => {}
            Some(last) if last.is_model => groups.push(user_group(closing_text(&request.speaker))),
            Some(_) => {}
            None => groups.push(user_group(OPENING_TEXT.to_owned())),
        }
        for turn in &mut groups {
            let is_result = |it: &ContentBlock| matches!(it, ContentBlock::Result(..));
            turn.blocks.sort_by_key(|it| !is_result(it));
        }
        Self { system, groups }
    }

    /// Removes white space at the end of the text that the model continues; some APIs reject it.
    pub fn trim_prefill(&mut self) {
        let last = self.groups.last_mut().filter(|it| it.is_model);
        if let Some(ContentBlock::Text(text)) = last.and_then(|it| it.blocks.last_mut()) {
            text.truncate(text.trim_end().len());
        }
    }

    /// Returns whether the prompt ends with the result of a tool call whose reasoning it does not
    /// contain.
    pub fn is_answering_unexplained_calls(&self) -> bool {
        let is_result = |it: &ContentBlock| matches!(it, ContentBlock::Result(..));
        match &self.groups[..] {
            [.., calls, results] => {
                let is_explained = matches!(calls.blocks.first(), Some(ContentBlock::Thought(_)));
                results.blocks.iter().any(is_result) && !is_explained
            }
            _ => false,
        }
    }

    /// Returns whether the prompt contains tool calls or their results.
    pub fn has_calls(&self) -> bool {
        let blocks = self.groups.iter().flat_map(|it| &it.blocks);
        blocks
            .into_iter()
            .any(|it| matches!(it, ContentBlock::Call(..) | ContentBlock::Result(..)))
    }
}

impl<'a> RoleGroup<'a> {
    fn push_block(&mut self, message: &'a Message) {
        let is_block =
            |it: &&Thought| matches!(it, Thought::Signed { .. } | Thought::Redacted { .. });
        let thoughts = message.thoughts.iter().filter(is_block);
        self.blocks.extend(thoughts.map(ContentBlock::Thought));
        match &message.answers {
            Some(call) => {
                let files = &message.attachments;
                let result = ContentBlock::Result(call, &message.content, files);
                return self.blocks.push(result);
            }
            None if !message.content.trim().is_empty() => self.push_text(&text_with_name(message)),
            None => {}
        }
        self.blocks
            .extend(message.attachments.iter().map(ContentBlock::Attachment));
        let calls = message.calls.iter().enumerate();
        let calls = calls.map(|(at, it)| ContentBlock::Call(it, signature(&message.thoughts, at)));
        self.blocks.extend(calls);
    }

    fn push_text(&mut self, text: &str) {
        match self.blocks.last_mut() {
            Some(ContentBlock::Text(before)) => append_paragraph(before, text),
            _ => self.blocks.push(ContentBlock::Text(text.to_owned())),
        }
    }
}

/// Returns the signature of the call with this index. Earlier thoughts may belong to calls that are not in the
/// prompt.
fn signature(thoughts: &[Thought], at: usize) -> Option<&str> {
    thoughts.iter().rev().find_map(|it| match it {
        Thought::CallSignature { call, signature } if *call == at => Some(signature.as_str()),
        _ => None,
    })
}

/// Returns whether a message has neither text nor anything else.
pub fn is_blank(message: &Message) -> bool {
    message.content.trim().is_empty()
        && message.answers.is_none()
        && message.calls.is_empty()
        && message.attachments.is_empty()
}

fn user_group(text: String) -> RoleGroup<'static> {
    RoleGroup {
        is_model: false,
        blocks: vec![ContentBlock::Text(text)],
    }
}

/// Returns what follows a prompt that would end with the model's side.
pub fn closing_text(speaker: &str) -> String {
    match speaker.trim() {
        "" => "[Write the next reply.]".to_owned(),
        speaker => format!("[Write the next reply as {speaker}.]"),
    }
}

/// Appends a text after a blank line.
pub fn append_paragraph(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use base::prompt_role::PromptRole;
    use proptest::prelude::prop_assert;
    use proptest::proptest;

    use super::{AlternatingMessages, ContentBlock, OPENING_TEXT};
    use crate::request::{Message, Request};
    use crate::tool::{AnsweredCall, Attachment, ToolCall};

    fn request(messages: Vec<Message>) -> Request {
        Request {
            messages,
            speaker: "Ada".to_owned(),
            ..Request::default()
        }
    }

    /// Returns the side and the blocks of each group in a short notation.
    fn groups_in_short(groups: &AlternatingMessages) -> Vec<(bool, String)> {
        let block = |it: &ContentBlock| match it {
            ContentBlock::Text(text) => text.clone(),
            ContentBlock::Attachment(it) => format!("<{}>", it.media_type),
            ContentBlock::Call(it, _) => format!("{}?", it.name),
            ContentBlock::Thought(it) => format!("({})", it.text().unwrap_or_default()),
            ContentBlock::Result(call, text, _) => format!("{}={text}", call.name),
        };
        let all = groups.groups.iter();
        all.map(|it| {
            let blocks: Vec<_> = it.blocks.iter().map(block).collect();
            (it.is_model, blocks.join(" | "))
        })
        .collect()
    }

    fn expected(all: &[(bool, &str)]) -> Vec<(bool, String)> {
        all.iter().map(|it| (it.0, it.1.to_owned())).collect()
    }

    fn message_with_calls(names: &[&str], text: &str) -> Message {
        let call = |name: &&str| ToolCall {
            id: format!("id_{name}"),
            name: (*name).to_owned(),
            arguments: "{}".to_owned(),
        };
        Message {
            calls: names.iter().map(call).collect(),
            ..Message::new(PromptRole::Assistant, text)
        }
    }

    fn tool_result(name: &str, text: &str) -> Message {
        let answers = Some(AnsweredCall {
            id: format!("id_{name}"),
            name: name.to_owned(),
        });
        Message {
            answers,
            ..Message::new(PromptRole::User, text)
        }
    }

    fn message_with_image(text: &str) -> Message {
        let picture = Attachment {
            media_type: "png".to_owned(),
            data: "AAAA".to_owned(),
            name: None,
            instead: None,
        };
        Message {
            attachments: vec![picture],
            ..Message::new(PromptRole::User, text)
        }
    }

    #[test]
    fn leading_system_messages_are_extracted_and_neighbors_merged() {
        let request = request(vec![
            Message::new(PromptRole::System, "Be Ada."),
            Message::new(PromptRole::System, "Be brief.").with_name("example_user"),
            Message::new(PromptRole::User, "Hi.").with_name("Eve"),
            Message::new(PromptRole::User, "Tom: Hello.").with_name("Tom"),
            Message::new(PromptRole::Assistant, "Oh.").with_name("Ada"),
            Message::new(PromptRole::Assistant, "Ah.").with_name("Bob"),
            Message::new(PromptRole::System, "Go on."),
        ]);

        let turns = AlternatingMessages::from_messages(&request);

        assert_eq!(turns.system, "Be Ada.\n\nBe brief.");
        assert_eq!(
            groups_in_short(&turns),
            expected(&[
                (false, "Eve: Hi.\n\nTom: Hello."),
                (true, "Ada: Oh.\n\nBob: Ah."),
                (false, "Go on."),
            ])
        );
    }

    #[test]
    fn the_first_and_the_last_group_belong_to_the_user() {
        let greeting = request(vec![Message::new(PromptRole::Assistant, "Welcome.")]);

        assert_eq!(
            groups_in_short(&AlternatingMessages::from_messages(&greeting)),
            expected(&[
                (false, OPENING_TEXT),
                (true, "Welcome."),
                (false, "[Write the next reply as Ada.]"),
            ])
        );
        assert_eq!(
            groups_in_short(&AlternatingMessages::from_messages(&request(Vec::new()))),
            expected(&[(false, OPENING_TEXT)])
        );
    }

    #[test]
    fn calls_results_and_images_keep_their_order() {
        let request = request(vec![
            message_with_image(""),
            Message::new(PromptRole::Assistant, " "),
            message_with_calls(&["a", "b"], "Let me see."),
            tool_result("a", ""),
            Message::new(PromptRole::System, "Be quick."),
            tool_result("b", "2"),
            message_with_calls(&["c"], ""),
            tool_result("c", "3"),
            message_with_image("And this?"),
        ]);

        let turns = AlternatingMessages::from_messages(&request);

        assert!(turns.has_calls());
        assert_eq!(
            groups_in_short(&turns),
            expected(&[
                (false, "<png>"),
                (true, "Let me see. | a? | b?"),
                (false, "a= | b=2 | Be quick."),
                (true, "c?"),
                (false, "c=3 | And this? | <png>"),
            ])
        );
    }

    #[test]
    fn the_beginning_of_the_response_is_the_last_group() {
        let messages = vec![
            Message::new(PromptRole::User, "Who are you?"),
            Message::new(PromptRole::Assistant, "I am"),
        ];
        let prompt = Request {
            is_prefilled: true,
            ..request(messages)
        };

        let turns = AlternatingMessages::from_messages(&prompt);

        let all = expected(&[(false, "Who are you?"), (true, "I am")]);
        assert_eq!(groups_in_short(&turns), all);
    }

    proptest! {
        #[test]
        fn roles_alternate_for_any_prompt(
            kinds in proptest::collection::vec((0..6_usize, "[ a]{0,2}"), 0..12),
        ) {
            let message = |(kind, text): (usize, String)| match kind {
                0 => Message::new(PromptRole::System, text),
                1 => Message::new(PromptRole::User, text),
                2 => Message::new(PromptRole::Assistant, text),
                3 => message_with_calls(&["x"], &text),
                4 => tool_result("x", &text),
                _ => message_with_image(&text),
            };
            let request = request(kinds.into_iter().map(message).collect());

            let turns = AlternatingMessages::from_messages(&request);

            let alternates = |it: &AlternatingMessages| {
                it.groups.iter().enumerate().all(|(i, it)| it.is_model == (i % 2 == 1))
            };
            prop_assert!(alternates(&turns));
            prop_assert!(turns.groups.len() % 2 == 1, "the last group belongs to the user");
            let prefilled = Request { is_prefilled: true, ..request.clone() };
            prop_assert!(alternates(&AlternatingMessages::from_messages(&prefilled)));
            prop_assert!(groups_in_short(&turns).iter().all(|(_, it)| !it.trim().is_empty()));
        }
    }
}
