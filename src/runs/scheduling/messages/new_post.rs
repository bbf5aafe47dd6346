//! A message that a person posts, and what of it was requested.

use agent::tools::dice_roll::DiceNotation;
use base::ids::{AttachmentId, MembershipId, MessageId};
use base::message_text;
use serde_json::Value;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::message;
use crate::conversations::message::MessageRole;
use crate::personas::message_persona::MessagePersona;
use crate::personas::persona_choice::PersonaChoice;
use crate::personas::persona_names;

/// A message posted by a human.
#[derive(Clone, Debug)]
pub struct NewPost {
    pub author: MembershipId,
    pub content: String,
    pub kind: PostKind,
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
    /// The metadata of its message: who wrote a character's text, or what was rolled.
    pub metadata: Value,
    /// What the request contained.
    pub requested: RequestedPost,
}

impl NewPost {
    /// Returns a post with a text and nothing else.
    pub fn new(author: MembershipId, content: String) -> Self {
        Self {
            author,
            kind: PostKind::Own,
            client_id: None,
            reply_to: None,
            attachments: Vec::new(),
            mentions: Vec::new(),
            token_count: 0,
            is_ooc: None,
            persona: None,
            metadata: serde_json::json!({}),
            requested: RequestedPost {
                content: content.clone(),
                persona: PersonaChoice::Automatic,
                audience: RequestedAudience::Inherited,
            },
            content,
        }
    }

    /// Returns whether the post is out of character. Only a person's own text can be.
    pub fn is_out_of_character(&self) -> bool {
        let marked = || message_text::is_out_of_character(&self.content);
        self.kind == PostKind::Own && self.is_ooc.unwrap_or_else(marked)
    }

    /// Returns the membership that its message shows as the author.
    pub fn shown_author(&self) -> MembershipId {
        match self.kind {
            PostKind::Character(speaker) => speaker,
            PostKind::Own | PostKind::Narrator | PostKind::Roll(_) => self.author,
        }
    }

    /// Returns the memberships that it names.
    pub fn referenced_members(&self) -> Vec<MembershipId> {
        let audience = self.requested.audience.members();
        let authors = [self.author, self.shown_author()];
        [&authors, self.mentions.as_slice(), audience].concat()
    }

    /// Returns the audience of these members, of the author and of the character in whose name it is
    /// posted.
    pub fn audience_with(&self, members: &[MembershipId]) -> Option<Audience> {
        let own = [self.author, self.shown_author()];
        Audience::new(members.iter().copied().chain(own))
    }

    /// Returns whether `first` was posted by the same request. A text that was edited since then is not
    /// compared.
    pub fn is_repeat_of(&self, first: &message::Model) -> bool {
        let requested = &self.requested;
        match requested.persona {
            _ if !self.has_audience(first) || !self.has_kind(first) => false,
            PersonaChoice::Chosen(persona) if persona != first.persona_id => false,
            // Its dice were compared.
            _ if matches!(self.kind, PostKind::Roll(_)) => true,
            _ => first.edited_at.is_some() || requested.has_content(first),
        }
    }

    /// Returns whether `first` has the requested audience. An inherited one is not compared.
    fn has_audience(&self, first: &message::Model) -> bool {
        match &self.requested.audience {
            RequestedAudience::Inherited => true,
            RequestedAudience::Everyone => first.audience.is_none(),
            RequestedAudience::Only(members) => first.audience == self.audience_with(members),
        }
    }

    fn has_kind(&self, first: &message::Model) -> bool {
        let is_same = |key: &str| first.metadata.get(key) == self.metadata.get(key);
        let is_same_kind = match self.kind {
            PostKind::Own => true,
            PostKind::Narrator => is_same(message::ROLL_KEY),
            PostKind::Character(_) => is_same(message::POSTED_BY_KEY),
            PostKind::Roll(dice) => {
                let rolled = first.metadata.get(message::ROLL_KEY);
                let notation = rolled.and_then(|it| it.get("notation"));
                notation.and_then(Value::as_str) == Some(dice.to_string().as_str())
            }
        };
        first.role == self.kind.role() && is_same_kind
    }
}

/// As what a message is posted. No one replies to any but a person's own text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostKind {
    /// A person's own text.
    Own,
    /// The text of a narrator, of role system.
    Narrator,
    /// A text in the name of a character.
    Character(MembershipId),
    /// Dice that the server rolls, of role system.
    Roll(DiceNotation),
}

impl PostKind {
    /// Returns the role of its message.
    pub fn role(self) -> MessageRole {
        match self {
            Self::Own => MessageRole::User,
            Self::Character(_) => MessageRole::Assistant,
            Self::Narrator | Self::Roll(_) => MessageRole::System,
        }
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
