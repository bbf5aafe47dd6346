//! Extracts the public part of a card (name, creator's notes, tags and greetings), which everyone
//! who shares a space with the character may read.

use serde::Serialize;
use serde_json::{Value, json};
use tavern::cards::card::Card;
use utoipa::ToSchema;

/// The public part of a card: name, creator's notes, tags and greetings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct PublicCard {
    pub name: String,
    /// The creator's notes, shown as the description.
    pub creator_notes: String,
    pub tags: Vec<String>,
    /// The first message, the alternate greetings, and the greetings for groups.
    pub greetings: Vec<String>,
}

impl PublicCard {
    /// Returns the public part of a card.
    pub fn from_card(card: &Card) -> Self {
        let first = Some(card.first_mes()).filter(|it| !it.trim().is_empty());
        let greetings = first
            .into_iter()
            .chain(card.alternate_greetings())
            .chain(card.group_only_greetings());
        Self {
            name: card.name().to_owned(),
            creator_notes: card.creator_notes().to_owned(),
            tags: card.tags().into_iter().map(str::to_owned).collect(),
            greetings: greetings.map(str::to_owned).collect(),
        }
    }
}

/// Returns a card document with only the public part.
pub fn public_document(card: &Card) -> Value {
    json!({
        "spec": "chara_card_v3",
        "spec_version": "3.0",
        "data": {
            "name": card.name(),
            "description": "",
            "personality": "",
            "scenario": "",
            "first_mes": card.first_mes(),
            "mes_example": "",
            "creator_notes": card.creator_notes(),
            "system_prompt": "",
            "post_history_instructions": "",
            "alternate_greetings": card.alternate_greetings(),
            "group_only_greetings": card.group_only_greetings(),
            "tags": card.tags(),
            "creator": "",
            "character_version": "",
            "extensions": {},
        },
    })
}
