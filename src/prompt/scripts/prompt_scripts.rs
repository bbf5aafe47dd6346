//! Chooses the scripts that act on the prompt of a speaker. No I/O.

use std::sync::Arc;

use base::ids::MembershipId;
use tavern::regex_scripts::script_list;

use crate::characters::character;
use crate::regex_scripts::space_scripts::SpaceScripts;
use crate::regex_scripts::speaker_scripts::SpeakerScripts;

/// The scripts of a prompt.
#[derive(Clone, Debug, Default)]
pub enum PromptScripts {
    #[default]
    None,
    /// Those of a space.
    OfSpace(Arc<SpaceScripts>),
    /// Those of a character outside a space.
    OfCharacter(Arc<SpeakerScripts>),
}

impl PromptScripts {
    /// Returns the scripts of a character outside a space, if its owner allows them.
    pub fn of_character(character: &character::Model) -> Self {
        if !character.regex_allowed {
            return Self::None;
        }
        let mut scripts = SpeakerScripts::default();
        let of_card = script_list::of_card(&character.card);
        scripts.add(&of_card, true, &character.name.as_str().into());
        Self::OfCharacter(Arc::new(scripts))
    }

    /// Returns the scripts for a prompt in which `{{char}}` refers to this member; `None`: to a person.
    pub fn of(&self, character: Option<MembershipId>) -> Option<Arc<SpeakerScripts>> {
        match self {
            Self::None => None,
            Self::OfSpace(space) => match character {
                Some(character) => space.of_member(character).cloned(),
                None => Some(space.people.clone()),
            },
            Self::OfCharacter(scripts) => Some(scripts.clone()),
        }
    }
}
