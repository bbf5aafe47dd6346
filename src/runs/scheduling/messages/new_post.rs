//! A message that a person posts, and what of it was requested.

use base::ids::{AttachmentId, MembershipId, MessageId};
use base::message_text;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::message;
use crate::personas::message_persona::MessagePersona;
use crate::personas::persona_choice::PersonaChoice;
use crate::personas::persona_names;

/// A message posted by a human.
#[derive(Clone, Debug)]
pub struct NewPost {
    pub author: MembershipId,
    pub content: String,
    pub client_id: Option<String>,
    /// The message that it answers.
    pub reply_to: Option<MessageId>,
    /// Its pictures, in their order; at most four, each once.
    pub attachments: Vec<AttachmentId>,
    /// Memberships mentioned by id, in addition to mentions in the text.
    pub mentions: Vec<MembershipId>,
    pub token_count: i64,
    /// Whether the author said that it is out of character, or that it is not; `None` if the text
    /// decides.
    pub is_ooc: Option<bool>,
    /// The persona under which it is posted.
    pub persona: Option<MessagePersona>,
    /// What the request contained.
    pub requested: RequestedPost,
}

impl NewPost {
    /// Returns a post with a text and nothing else.
    pub fn new(author: MembershipId, content: String) -> Self {
        Self {
            author,
            client_id: None,
            reply_to: None,
            attachments: Vec::new(),
            mentions: Vec::new(),
            token_count: 0,
            is_ooc: None,
            persona: None,
            requested: RequestedPost {
                content: content.clone(),
                persona: PersonaChoice::Automatic,
                audience: RequestedAudience::Inherited,
            },
            content,
        }
    }

    /// Returns whether the post is out of character.
    pub fn is_out_of_character(&self) -> bool {
        let marked = || message_text::is_out_of_character(&self.content);
        self.is_ooc.unwrap_or_else(marked)
    }
}

/// The text, the persona and the audience of a post as they were requested, by which a repeated request
/// is recognized: the persona that is chosen for it may have changed since then.
#[derive(Clone, Debug, Default)]
pub struct RequestedPost {
    pub content: String,
    pub persona: PersonaChoice,
    pub audience: RequestedAudience,
}

/// Who should see a post or a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RequestedAudience {
    /// The audience of the message that it answers.
    #[default]
    Inherited,
    Everyone,
    /// These memberships, and the one who requests it.
    Only(Vec<MembershipId>),
}

impl RequestedAudience {
    /// Returns the memberships that it names.
    pub fn members(&self) -> &[MembershipId] {
        match self {
            Self::Inherited | Self::Everyone => &[],
            Self::Only(members) => members,
        }
    }
}

impl RequestedPost {
    /// Returns whether `first` was posted by the same request. A text that was edited since then is not
    /// compared.
    pub fn is_repeat_of(&self, first: &message::Model) -> bool {
        match self.persona {
            _ if !self.has_audience(first) => false,
            PersonaChoice::Chosen(persona) if persona != first.persona_id => false,
            _ => first.edited_at.is_some() || self.has_content(first),
        }
    }

    /// Returns whether `first` has the requested audience. An inherited one is not compared.
    fn has_audience(&self, first: &message::Model) -> bool {
        match &self.audience {
            RequestedAudience::Inherited => true,
            RequestedAudience::Everyone => first.audience.is_none(),
            RequestedAudience::Only(members) => {
                let author = first.space_membership_id;
                first.audience == Audience::new(members.iter().copied().chain([author]))
            }
        }
    }

    fn has_content(&self, first: &message::Model) -> bool {
        let without_prefix = || match self.persona {
            PersonaChoice::Automatic => {
                persona_names::find_prefix(&self.content, first.persona_name.as_ref())
            }
            PersonaChoice::Chosen(_) => None,
        };
        first.content == self.content
            || without_prefix().is_some_and(|(_, rest)| rest == first.content)
    }
}
