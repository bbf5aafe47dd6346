//! A prompt for APIs that know two sides taking turns, and one word of the house above them.
//!
//! **Invariant:** the turns alternate, the first and the last are the user's, and none is blank. What
//! came of calls stands at the beginning of its turn, where APIs look for it.

use crate::llm::chat_body;
use crate::llm::request::Message;
use crate::llm::request::PromptRole;
use crate::llm::request::Request;
use crate::llm::tool::Answered;
use crate::llm::tool::Attachment;
use crate::llm::tool::ToolCall;

/// Said by the user's side where the model's would begin.
const OPENING: &str = "[The conversation begins.]";

/// A prompt in turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turns<'a> {
    /// What the prompt begins with in the house's own name; often empty.
    pub system: String,
    pub turns: Vec<Turn<'a>>,
}

/// What one side says at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn<'a> {
    pub is_model: bool,
    /// Never empty.
    pub blocks: Vec<Block<'a>>,
}

/// A part of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block<'a> {
    /// Never blank; never next to another text.
    Text(String),
    Attachment(&'a Attachment),
    Call(&'a ToolCall),
    /// What came of a call, in text; may be empty.
    Result(&'a Answered, &'a str),
}

impl<'a> Turns<'a> {
    /// The prompt of a request. What the house says further on is said by the user's side; what one
    /// side says in a row is one turn.
    pub fn of(request: &'a Request) -> Self {
        let (mut system, mut turns) = (String::new(), Vec::<Turn>::new());
        for message in request.messages.iter().filter(|it| !is_blank(it)) {
            if message.role == PromptRole::System && turns.is_empty() {
                join(&mut system, &message.content);
                continue;
            }
            // What came of a call is on the user's side, whoever is said to have said it.
            let is_model = message.role == PromptRole::Assistant && message.answers.is_none();
            if is_model && turns.is_empty() {
                turns.push(users(OPENING.to_owned()));
            }
            if turns.last().is_none_or(|it| it.is_model != is_model) {
                let blocks = Vec::new();
                turns.push(Turn { is_model, blocks });
            }
            if let Some(turn) = turns.last_mut() {
                turn.take(message);
            }
        }
        // A model's turn at the end would be taken for the beginning of the answer.
        match turns.last() {
            Some(last) if last.is_model => turns.push(users(closing(&request.speaker))),
            Some(_) => {}
            None => turns.push(users(OPENING.to_owned())),
        }
        for turn in &mut turns {
            let is_result = |it: &Block| matches!(it, Block::Result(..));
            turn.blocks.sort_by_key(|it| !is_result(it));
        }
        Self { system, turns }
    }

    /// Whether anything was called in it.
    pub fn has_calls(&self) -> bool {
        let blocks = self.turns.iter().flat_map(|it| &it.blocks);
        blocks
            .into_iter()
            .any(|it| matches!(it, Block::Call(_) | Block::Result(..)))
    }
}

impl<'a> Turn<'a> {
    fn take(&mut self, message: &'a Message) {
        match &message.answers {
            Some(call) => self.blocks.push(Block::Result(call, &message.content)),
            None if !message.content.trim().is_empty() => self.say(&named(message)),
            None => {}
        }
        self.blocks
            .extend(message.attachments.iter().map(Block::Attachment));
        self.blocks.extend(message.calls.iter().map(Block::Call));
    }

    fn say(&mut self, text: &str) {
        match self.blocks.last_mut() {
            Some(Block::Text(before)) => join(before, text),
            _ => self.blocks.push(Block::Text(text.to_owned())),
        }
    }
}

fn is_blank(message: &Message) -> bool {
    message.content.trim().is_empty()
        && message.answers.is_none()
        && message.calls.is_empty()
        && message.attachments.is_empty()
}

fn users(text: String) -> Turn<'static> {
    Turn {
        is_model: false,
        blocks: vec![Block::Text(text)],
    }
}

fn closing(speaker: &str) -> String {
    match speaker.trim() {
        "" => "[Write the next reply.]".to_owned(),
        speaker => format!("[Write the next reply as {speaker}.]"),
    }
}

fn join(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

/// The text with its speaker. A name on a system message tells examples apart, no more.
fn named(message: &Message) -> String {
    let name = message.name.as_deref().map(str::trim).unwrap_or_default();
    match name.is_empty() || message.role == PromptRole::System {
        true => message.content.clone(),
        false => chat_body::prefixed(name, &message.content),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::prop_assert;
    use proptest::proptest;

    use super::Block;
    use super::OPENING;
    use super::Turns;
    use crate::llm::request::Message;
    use crate::llm::request::PromptRole;
    use crate::llm::request::Request;
    use crate::llm::tool::Answered;
    use crate::llm::tool::Attachment;
    use crate::llm::tool::ToolCall;

    fn asked(messages: Vec<Message>) -> Request {
        Request {
            messages,
            speaker: "Ada".to_owned(),
            ..Request::default()
        }
    }

    /// Each turn's side and blocks, in short.
    fn said(turns: &Turns) -> Vec<(bool, String)> {
        let block = |it: &Block| match it {
            Block::Text(text) => text.clone(),
            Block::Attachment(it) => format!("<{}>", it.media_type),
            Block::Call(it) => format!("{}?", it.name),
            Block::Result(call, text) => format!("{}={text}", call.name),
        };
        let all = turns.turns.iter();
        all.map(|it| {
            let blocks: Vec<_> = it.blocks.iter().map(block).collect();
            (it.is_model, blocks.join(" | "))
        })
        .collect()
    }

    fn told(all: &[(bool, &str)]) -> Vec<(bool, String)> {
        all.iter().map(|it| (it.0, it.1.to_owned())).collect()
    }

    fn calling(names: &[&str], text: &str) -> Message {
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

    fn answering(name: &str, text: &str) -> Message {
        let answers = Some(Answered {
            id: format!("id_{name}"),
            name: name.to_owned(),
        });
        Message {
            answers,
            ..Message::new(PromptRole::User, text)
        }
    }

    fn showing(text: &str) -> Message {
        let picture = Attachment {
            media_type: "png".to_owned(),
            data: "AAAA".to_owned(),
            name: None,
        };
        Message {
            attachments: vec![picture],
            ..Message::new(PromptRole::User, text)
        }
    }

    #[test]
    fn the_houses_first_words_are_lifted_and_neighbors_are_one() {
        let request = asked(vec![
            Message::new(PromptRole::System, "Be Ada."),
            Message::new(PromptRole::System, "Be brief.").named("example_user"),
            Message::new(PromptRole::User, "Hi.").named("Eve"),
            Message::new(PromptRole::User, "Tom: Hello.").named("Tom"),
            Message::new(PromptRole::Assistant, "Oh.").named("Ada"),
            Message::new(PromptRole::Assistant, "Ah.").named("Bob"),
            Message::new(PromptRole::System, "Go on."),
        ]);

        let turns = Turns::of(&request);

        assert_eq!(turns.system, "Be Ada.\n\nBe brief.");
        assert_eq!(
            said(&turns),
            told(&[
                (false, "Eve: Hi.\n\nTom: Hello."),
                (true, "Ada: Oh.\n\nBob: Ah."),
                (false, "Go on."),
            ])
        );
    }

    #[test]
    fn the_model_neither_begins_nor_ends() {
        let greeting = asked(vec![Message::new(PromptRole::Assistant, "Welcome.")]);

        assert_eq!(
            said(&Turns::of(&greeting)),
            told(&[
                (false, OPENING),
                (true, "Welcome."),
                (false, "[Write the next reply as Ada.]"),
            ])
        );
        assert_eq!(
            said(&Turns::of(&asked(Vec::new()))),
            told(&[(false, OPENING)])
        );
    }

    #[test]
    fn calls_what_came_of_them_and_pictures_survive_in_order() {
        let request = asked(vec![
            showing(""),
            Message::new(PromptRole::Assistant, " "),
            calling(&["a", "b"], "Let me see."),
            answering("a", ""),
            Message::new(PromptRole::System, "Be quick."),
            answering("b", "2"),
            calling(&["c"], ""),
            answering("c", "3"),
            showing("And this?"),
        ]);

        let turns = Turns::of(&request);

        assert!(turns.has_calls());
        assert_eq!(
            said(&turns),
            told(&[
                (false, "<png>"),
                (true, "Let me see. | a? | b?"),
                (false, "a= | b=2 | Be quick."),
                (true, "c?"),
                (false, "c=3 | And this? | <png>"),
            ])
        );
    }

    proptest! {
        #[test]
        fn whatever_is_asked_the_turns_alternate(
            kinds in proptest::collection::vec((0..6_usize, "[ a]{0,2}"), 0..12),
        ) {
            let message = |(kind, text): (usize, String)| match kind {
                0 => Message::new(PromptRole::System, text),
                1 => Message::new(PromptRole::User, text),
                2 => Message::new(PromptRole::Assistant, text),
                3 => calling(&["x"], &text),
                4 => answering("x", &text),
                _ => showing(&text),
            };
            let request = asked(kinds.into_iter().map(message).collect());

            let turns = Turns::of(&request);

            prop_assert!(turns.turns.iter().enumerate().all(|(i, it)| it.is_model == (i % 2 == 1)));
            prop_assert!(turns.turns.len() % 2 == 1, "the last is the user's");
            prop_assert!(said(&turns).iter().all(|(_, it)| !it.trim().is_empty()));
        }
    }
}
