//! A prompt for APIs that know two sides taking turns, and one word of the house above them.
//!
//! **Invariant:** the turns alternate, the first and the last are the user's, and none is blank.

use crate::llm::chat_body;
use crate::llm::request::Message;
use crate::llm::request::Request;
use crate::llm::request::Role;

/// Said by the user's side where the model's would begin.
const OPENING: &str = "[The conversation begins.]";

/// A prompt in turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turns {
    /// What the prompt begins with in the house's own name; often empty.
    pub system: String,
    pub turns: Vec<Turn>,
}

/// What one side says at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub is_model: bool,
    pub text: String,
}

impl Turns {
    /// The prompt of a request. What the house says further on is said by the user's side; what one
    /// side says in a row is one turn.
    pub fn of(request: &Request) -> Self {
        let spoken = request
            .messages
            .iter()
            .filter(|it| !it.content.trim().is_empty());
        let (mut system, mut turns) = (String::new(), Vec::<Turn>::new());
        for message in spoken {
            if message.role == Role::System && turns.is_empty() {
                join(&mut system, &message.content);
                continue;
            }
            let is_model = message.role == Role::Assistant;
            if is_model && turns.is_empty() {
                turns.push(users(OPENING.to_owned()));
            }
            let text = named(message);
            match turns.last_mut().filter(|it| it.is_model == is_model) {
                Some(turn) => join(&mut turn.text, &text),
                None => turns.push(Turn { is_model, text }),
            }
        }
        // A model's turn at the end would be taken for the beginning of the answer.
        match turns.last() {
            Some(last) if last.is_model => turns.push(users(closing(&request.speaker))),
            Some(_) => {}
            None => turns.push(users(OPENING.to_owned())),
        }
        Self { system, turns }
    }
}

fn users(text: String) -> Turn {
    Turn {
        is_model: false,
        text,
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
    match name.is_empty() || message.role == Role::System {
        true => message.content.clone(),
        false => chat_body::prefixed(name, &message.content),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::prop_assert;
    use proptest::proptest;

    use super::OPENING;
    use super::Turns;
    use crate::llm::request::Message;
    use crate::llm::request::Request;
    use crate::llm::request::Role;

    fn turns(messages: Vec<Message>) -> Turns {
        Turns::of(&Request {
            messages,
            speaker: "Ada".to_owned(),
            ..Request::default()
        })
    }

    fn said(turns: &Turns) -> Vec<(bool, &str)> {
        let all = turns.turns.iter();
        all.map(|it| (it.is_model, it.text.as_str())).collect()
    }

    #[test]
    fn the_houses_first_words_are_lifted_and_neighbors_are_one() {
        let turns = turns(vec![
            Message::new(Role::System, "Be Ada."),
            Message::new(Role::System, "Be brief.").named("example_user"),
            Message::new(Role::User, "Hi.").named("Eve"),
            Message::new(Role::User, "Tom: Hello.").named("Tom"),
            Message::new(Role::Assistant, "Oh.").named("Ada"),
            Message::new(Role::Assistant, "Ah.").named("Bob"),
            Message::new(Role::System, "Go on."),
        ]);

        assert_eq!(turns.system, "Be Ada.\n\nBe brief.");
        assert_eq!(
            said(&turns),
            [
                (false, "Eve: Hi.\n\nTom: Hello."),
                (true, "Ada: Oh.\n\nBob: Ah."),
                (false, "Go on."),
            ]
        );
    }

    #[test]
    fn the_model_neither_begins_nor_ends() {
        let greeting = vec![Message::new(Role::Assistant, "Welcome.")];

        assert_eq!(
            said(&turns(greeting)),
            [
                (false, OPENING),
                (true, "Welcome."),
                (false, "[Write the next reply as Ada.]"),
            ]
        );
        assert_eq!(said(&turns(Vec::new())), [(false, OPENING)]);
    }

    proptest! {
        #[test]
        fn whatever_is_asked_the_turns_alternate(
            roles in proptest::collection::vec((0..3_usize, "[ a]{0,2}"), 0..12),
        ) {
            let role = |i: usize| [Role::System, Role::User, Role::Assistant][i];
            let messages = roles.into_iter().map(|(i, text)| Message::new(role(i), text)).collect();

            let turns = turns(messages);

            prop_assert!(turns.turns.iter().enumerate().all(|(i, it)| it.is_model == (i % 2 == 1)));
            prop_assert!(turns.turns.len() % 2 == 1, "the last is the user's");
            prop_assert!(turns.turns.iter().all(|it| !it.text.trim().is_empty()));
        }
    }
}
