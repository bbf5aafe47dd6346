//! Where the description of a persona is in a prompt, and the numbers by which SillyTavern's files name
//! it.

use base::prompt_role::PromptRole;
#[cfg(feature = "sea-orm")]
use sea_orm::sea_query::StringLen;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The maximum depth, in messages.
pub const MAX_DEPTH: i64 = 10_000;

/// Where the description of a persona is in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[cfg_attr(
    feature = "sea-orm",
    derive(sea_orm::EnumIter, sea_orm::DeriveActiveEnum),
    sea_orm(
        rs_type = "String",
        db_type = "String(StringLen::N(32))",
        rename_all = "snake_case"
    )
)]
#[serde(rename_all = "snake_case")]
pub enum PersonaPosition {
    /// Where the preset has the persona.
    #[default]
    InPrompt,
    /// Directly before the text of the Author's Note.
    NoteTop,
    /// Directly after the text of the Author's Note.
    NoteBottom,
    /// Among the messages.
    AtDepth,
    /// It is not sent.
    None,
}

/// The position of a description, with what applies among the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonaPlacement {
    pub position: PersonaPosition,
    /// The number of messages after it, from 0 to [`MAX_DEPTH`].
    pub depth: i64,
    pub role: PromptRole,
}

impl Default for PersonaPlacement {
    fn default() -> Self {
        Self {
            position: PersonaPosition::InPrompt,
            depth: 2,
            role: PromptRole::System,
        }
    }
}

impl PersonaPosition {
    /// Returns the position with a number of SillyTavern; `None` for an unknown one. Old files have 1 for
    /// a position after the character, which became the position in the prompt.
    pub fn from_number(number: i64) -> Option<Self> {
        match number {
            0 | 1 => Some(Self::InPrompt),
            2 => Some(Self::NoteTop),
            3 => Some(Self::NoteBottom),
            4 => Some(Self::AtDepth),
            9 => Some(Self::None),
            _ => None,
        }
    }

    /// Returns the number of the position in files of SillyTavern.
    pub fn number(self) -> i64 {
        match self {
            Self::InPrompt => 0,
            Self::NoteTop => 2,
            Self::NoteBottom => 3,
            Self::AtDepth => 4,
            Self::None => 9,
        }
    }
}

/// Returns the role with a number of SillyTavern; `None` for an unknown one.
pub fn role_from_number(number: i64) -> Option<PromptRole> {
    match number {
        0 => Some(PromptRole::System),
        1 => Some(PromptRole::User),
        2 => Some(PromptRole::Assistant),
        _ => None,
    }
}

/// Returns the number of a role in files of SillyTavern.
pub fn role_number(role: PromptRole) -> i64 {
    match role {
        PromptRole::System => 0,
        PromptRole::User => 1,
        PromptRole::Assistant => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::{PersonaPosition, role_from_number, role_number};

    #[test]
    fn every_number_of_a_position_and_a_role_is_read_as_it_was_written() {
        for number in [0, 2, 3, 4, 9] {
            let position = PersonaPosition::from_number(number).expect("a position");
            assert_eq!(position.number(), number);
        }
        for number in 0..3 {
            let role = role_from_number(number).expect("a role");
            assert_eq!(role_number(role), number);
        }
        assert_eq!(PersonaPosition::from_number(5), None);
        assert_eq!(role_from_number(3), None);
    }

    #[test]
    fn the_former_position_after_the_character_is_in_the_prompt() {
        let position = PersonaPosition::from_number(1);

        assert_eq!(position, Some(PersonaPosition::InPrompt));
    }
}
