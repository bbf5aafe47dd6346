//! Defines the persona of a message: what a message keeps of the persona under which it was posted.

use base::ids::PersonaId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::personas::persona;

/// The persona of a message as it was when the message was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePersona {
    /// `None` if the message was imported.
    pub id: Option<PersonaId>,
    pub name: String,
    /// The hash of its picture.
    pub avatar: Option<String>,
}

/// The persona under which a message was posted, with its name and picture at that time.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MessagePersona)]
pub struct MessagePersonaView {
    /// Null if the message was imported.
    pub id: Option<PersonaId>,
    pub name: String,
    pub avatar_url: Option<String>,
}

impl From<persona::Model> for MessagePersona {
    fn from(row: persona::Model) -> Self {
        Self {
            id: Some(row.id),
            name: row.name,
            avatar: row.avatar_hash,
        }
    }
}

impl MessagePersonaView {
    /// Returns the document of what a message keeps; `None` if it has no persona.
    pub fn of(id: Option<PersonaId>, name: Option<&str>, avatar: Option<&str>) -> Option<Self> {
        Some(Self {
            id,
            name: name?.to_owned(),
            avatar_url: id.and_then(|it| persona::avatar_url(it, avatar)),
        })
    }
}
