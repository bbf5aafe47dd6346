//! Chooses the persona of a post: the one that the request names, else the one that the beginning of the
//! text names, else the one of the membership, else the user's default persona, else none.

use base::ids::{PersonaId, UserId};
use base::message_text;
use sea_orm::{ConnectionTrait, DbErr};

use crate::personas::message_persona::MessagePersona;
use crate::personas::{persona, persona_names};

/// The persona that a request names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PersonaChoice {
    /// None is named.
    #[default]
    Automatic,
    /// This one, or no persona.
    Chosen(Option<PersonaId>),
}

/// A post with its persona.
#[derive(Clone, Debug)]
pub struct ChosenPersona {
    pub persona: Option<MessagePersona>,
    /// The text without the prefix that named the persona.
    pub text: String,
}

/// Why a post has no persona.
#[derive(Debug, thiserror::Error)]
pub enum PersonaChoiceError {
    #[error("the user has no such persona")]
    Unknown,
    #[error("no text follows the name of the persona")]
    BlankText,
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// Chooses the persona of a post by a user, whose membership has the persona `active`. The text of a post
/// with pictures may be blank.
///
/// # Errors
/// Returns `Unknown` for a persona of another user or a deleted one, `BlankText` when the text contains
/// only the name of a persona, and `Db` when the database fails.
pub async fn choose(
    db: &impl ConnectionTrait,
    (user, active): (UserId, Option<PersonaId>),
    choice: PersonaChoice,
    (text, may_be_blank): (&str, bool),
) -> Result<ChosenPersona, PersonaChoiceError> {
    let unchanged = |persona: Option<persona::Model>| ChosenPersona {
        persona: persona.map(MessagePersona::from),
        text: text.to_owned(),
    };
    match choice {
        PersonaChoice::Chosen(None) => return Ok(unchanged(None)),
        PersonaChoice::Chosen(Some(id)) => {
            let named = persona::find_for_user(db, user, id).await?;
            return match named {
                Some(named) => Ok(unchanged(Some(named))),
                None => Err(PersonaChoiceError::Unknown),
            };
        }
        PersonaChoice::Automatic => {}
    }
    if persona_names::may_have_prefix(text) {
        let names = persona::list_names(db, user).await?;
        let prefix = persona_names::find_prefix(text, names.iter().map(|(_, name)| name));
        if let Some((at, rest)) = prefix {
            if !may_be_blank && message_text::is_blank(rest) {
                return Err(PersonaChoiceError::BlankText);
            }
            let named = persona::find_for_user(db, user, names[at].0).await?;
            return Ok(ChosenPersona {
                persona: named.map(MessagePersona::from),
                text: rest.to_owned(),
            });
        }
    }
    let found = persona::find_active_or_default(db, user, active).await?;
    Ok(unchanged(found))
}
