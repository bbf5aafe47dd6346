//! Returns the greetings of a card for a conversation that its character joins, with expanded
//! macros, and the variables that the first one sets. The caller posts the first; the others are
//! its swipes. No I/O.

use std::cell::RefCell;

use base::clock::Timestamp;
use base::ids::ConversationId;
use tavern::cards::card::Card;
use tavern::macros::bindings::Bindings;
use tavern::macros::environment::{MacroEnvironment, MacroSeed};
use tavern::macros::expansion::expand;
use tavern::macros::variables::{VariableChanges, Variables};

use crate::prompt::macro_values::bindings::greetings;

/// The names that appear in a greeting.
#[derive(Clone, Copy, Debug)]
pub struct GreetingAudience<'a> {
    /// The display name of the character that greets.
    pub character: &'a str,
    /// The name of the space's owner, or of their persona.
    pub user: &'a str,
    /// The names of all characters in the space, separated by commas, if there are at least two.
    pub group: Option<&'a str>,
    /// The display names of all users in the space, separated by commas.
    pub users: &'a str,
    /// The conversation that the character joins.
    pub conversation: ConversationId,
}

/// The greetings of a character, macros expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Greetings {
    /// The first is posted, the others are its swipes.
    pub texts: Vec<String>,
    /// Variables set by the first greeting. Those of the others are discarded, because they are
    /// only offered as swipes.
    pub changes: VariableChanges,
}

/// Expands the greetings of a card; the result is stored. In a group, greetings for groups come
/// first. `known`: the existing variables.
pub fn expand_greetings(
    card: &Card,
    audience: &GreetingAudience,
    known: Variables,
    now: Timestamp,
) -> Greetings {
    let called = card.nickname().unwrap_or(audience.character);
    let meanings = Bindings {
        character: called.to_owned(),
        user: audience.user.to_owned(),
        users: audience.users.to_owned(),
        description: card.description().into(),
        personality: card.personality().into(),
        scenario: card.scenario().into(),
        example_messages: card.mes_example().into(),
        system_prompt: card.system_prompt().into(),
        post_history: card.post_history_instructions().into(),
        depth_prompt: card
            .depth_prompt()
            .map_or_else(String::new, |it| it.prompt)
            .into(),
        creator_notes: card.creator_notes().into(),
        greetings: greetings(card),
        version: card.character_version().to_owned(),
        group: audience.group.unwrap_or(called).to_owned(),
        group_not_muted: audience.group.unwrap_or(called).to_owned(),
        not_character: audience.user.to_owned(),
        ..Bindings::default()
    };
    let world = MacroEnvironment {
        now: Some(now),
        seed: MacroSeed {
            conversation: audience.conversation.0,
            message: 0,
        },
        variables: RefCell::new(Variables {
            changes: VariableChanges::default(),
            ..known
        }),
        ..MacroEnvironment::default()
    };
    let for_groups = match audience.group {
        Some(_) => card.group_only_greetings(),
        None => Vec::new(),
    };
    let greetings = for_groups.into_iter().chain([card.first_mes()]);
    let greetings = greetings.chain(card.alternate_greetings());
    let mut expanded = Greetings::default();
    for greeting in greetings {
        // Each greeting starts from the same variables, regardless of which one is shown.
        let (text, changes) = world.without_variables(|| {
            let text = expand(greeting, &meanings, &world).trim().to_owned();
            (text, world.variables.borrow().changes.clone())
        });
        // A greeting beyond the limits of macros is posted as it is.
        let changes = match world.failure.take() {
            Some(_) => VariableChanges::default(),
            None => changes,
        };
        world.macro_use.take();
        if text.is_empty() {
            continue;
        }
        if expanded.texts.is_empty() {
            expanded.changes = changes;
        }
        expanded.texts.push(text);
    }
    expanded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Card, ConversationId, GreetingAudience, Timestamp, Variables, expand_greetings};

    fn card() -> Card {
        let card = json!({"spec": "chara_card_v3", "spec_version": "3.0", "data": {
            "name": "Augusta Ada King", "nickname": "Ada", "first_mes": "Hi {{user}}, I am {{char}}.",
            "alternate_greetings": ["  ", "*{{char}} nods.*"], "group_only_greetings": ["{{group}}!"],
        }});
        Card::from_document(card).expect("a card")
    }

    const ALONE: GreetingAudience = GreetingAudience {
        character: "Augusta Ada King",
        user: "Bob",
        group: None,
        users: "Bob, Eve",
        conversation: ConversationId(1),
    };

    #[test]
    fn the_first_greeting_is_followed_by_its_alternates() {
        let greetings = expand_greetings(&card(), &ALONE, Variables::default(), Timestamp(0));

        assert_eq!(greetings.texts, ["Hi Bob, I am Ada.", "*Ada nods.*"]);
    }

    #[test]
    fn greetings_for_groups_come_first_among_others() {
        let audience = GreetingAudience {
            group: Some("Ada, Cid"),
            ..ALONE
        };

        let greetings = expand_greetings(&card(), &audience, Variables::default(), Timestamp(0));

        assert_eq!(greetings.texts[0], "Ada, Cid!");
        assert_eq!(greetings.texts.len(), 3);
    }

    #[test]
    fn a_card_without_greetings_posts_nothing() {
        let card = Card::from_document(json!({"name": "Ada", "description": "d"})).expect("a card");

        let greetings = expand_greetings(&card, &ALONE, Variables::default(), Timestamp(0));
        assert!(greetings.texts.is_empty());
    }

    #[test]
    fn only_the_posted_greeting_sets_variables_and_it_can_read_existing_ones() {
        let card = json!({"name": "Ada", "first_mes": "{{setvar::hat::red}}{{incglobalvar::n}} {{getvar::hat}}",
            "alternate_greetings": ["{{setvar::hat::blue}}{{setvar::coat::x}}{{getvar::hat}}"]});
        let card = Card::from_document(json!({"data": card})).expect("a card");
        let mut known = Variables::default();
        known.space.insert("n".to_owned(), "4".to_owned());

        let greetings = expand_greetings(&card, &ALONE, known, Timestamp(0));

        assert_eq!(greetings.texts, ["5 red", "blue"]);
        assert_eq!(
            greetings.changes.conversation,
            [("hat".to_owned(), Some("red".to_owned()))].into()
        );
        assert_eq!(
            greetings.changes.space,
            [("n".to_owned(), Some("5".to_owned()))].into()
        );
    }
}
