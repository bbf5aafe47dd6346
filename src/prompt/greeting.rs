//! What a character says when it comes in.

use crate::characters::card::Card;
use crate::clock::Timestamp;
use crate::ids::ConversationId;
use crate::prompt::macros::expansion::expand;
use crate::prompt::macros::meanings::Meanings;
use crate::prompt::macros::world::Seed;
use crate::prompt::macros::world::World;

/// Who a greeting is for.
#[derive(Clone, Copy, Debug)]
pub struct Company<'a> {
    /// The display name of the character that greets.
    pub character: &'a str,
    /// The display name of the space's owner.
    pub user: &'a str,
    /// The names of all characters in the space, separated by commas, if they are two or more.
    pub group: Option<&'a str>,
    /// The display names of all people in the space, separated by commas.
    pub users: &'a str,
    /// Where it is said.
    pub conversation: ConversationId,
}

/// The greetings of a card, expanded once and for all: the first is posted, the others are its
/// swipes. Among other characters those that are meant for groups come first.
pub fn greetings(card: &Card, company: &Company, now: Timestamp) -> Vec<String> {
    let called = card.nickname().unwrap_or(company.character);
    let meanings = Meanings {
        character: called.to_owned(),
        user: company.user.to_owned(),
        users: company.users.to_owned(),
        description: card.description().into(),
        personality: card.personality().into(),
        scenario: card.scenario().into(),
        example_messages: card.mes_example().into(),
        system_prompt: card.system_prompt().into(),
        post_history: card.post_history_instructions().into(),
        version: card.character_version().to_owned(),
        group: company.group.unwrap_or(called).to_owned(),
        group_not_muted: company.group.unwrap_or(called).to_owned(),
        not_character: company.user.to_owned(),
        ..Meanings::default()
    };
    let world = World {
        now: Some(now),
        seed: Seed {
            conversation: company.conversation.0,
            message: 0,
        },
        ..World::default()
    };
    let for_groups = match company.group {
        Some(_) => card.group_only_greetings(),
        None => Vec::new(),
    };
    let greetings = for_groups.into_iter().chain([card.first_mes()]);
    let greetings = greetings.chain(card.alternate_greetings());
    let greetings = greetings.map(|it| expand(it, &meanings, &world).trim().to_owned());
    greetings.filter(|it| !it.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::Card;
    use super::Company;
    use super::ConversationId;
    use super::Timestamp;
    use super::greetings;
    use serde_json::json;

    fn card() -> Card {
        let card = json!({"spec": "chara_card_v3", "spec_version": "3.0", "data": {
            "name": "Augusta Ada King", "nickname": "Ada", "first_mes": "Hi {{user}}, I am {{char}}.",
            "alternate_greetings": ["  ", "*{{char}} nods.*"], "group_only_greetings": ["{{group}}!"],
        }});
        Card::from_document(card).expect("a card")
    }

    const ALONE: Company = Company {
        character: "Augusta Ada King",
        user: "Bob",
        group: None,
        users: "Bob, Eve",
        conversation: ConversationId(1),
    };

    #[test]
    fn the_first_greeting_is_followed_by_its_alternates() {
        let greetings = greetings(&card(), &ALONE, Timestamp(0));

        assert_eq!(greetings, ["Hi Bob, I am Ada.", "*Ada nods.*"]);
    }

    #[test]
    fn greetings_for_groups_come_first_among_others() {
        let company = Company {
            group: Some("Ada, Cid"),
            ..ALONE
        };

        let greetings = greetings(&card(), &company, Timestamp(0));

        assert_eq!(greetings[0], "Ada, Cid!");
        assert_eq!(greetings.len(), 3);
    }

    #[test]
    fn a_card_without_greetings_stays_silent() {
        let card = Card::from_document(json!({"name": "Ada", "description": "d"})).expect("a card");

        assert!(greetings(&card, &ALONE, Timestamp(0)).is_empty());
    }
}
