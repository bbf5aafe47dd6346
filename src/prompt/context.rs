//! All that a prompt is made from.

use std::cell::RefCell;

use crate::characters::card::Card;
use crate::clock::Timestamp;
use crate::conversations::message::MessageRole;
use crate::ids::{CharacterId, ConversationId, MembershipId, MessageId};
use crate::presets::document::{GenerationTrigger, Preset};
use crate::prompt::author_note::AuthorNote;
use crate::prompt::blocks::BlockPayload;
use crate::prompt::lore::LoreInput;
use crate::prompt::macros::environment::{LastMessages, MacroEnvironment, MacroSeed};
use crate::prompt::macros::variables::Variables;
use crate::spaces::membership::{MembershipKind, MembershipStatus, Participation};
use crate::spaces::space::CardHandlingMode;

/// One turn of one speaker, before it is put into words.
#[derive(Clone, Debug)]
pub struct PromptContext {
    pub conversation: ConversationId,
    /// What the room is called.
    pub space_name: String,
    /// Who is about to speak: the seat of one of `cast`.
    pub speaker: MembershipId,
    /// Everybody with a seat, by position.
    pub members: Vec<PromptMember>,
    /// Whom `{{user}}` means.
    pub user: PromptUser,
    /// Whose cards enter.
    pub card_handling: CardHandlingMode,
    /// What stands around each field where several cards enter: prefix and suffix.
    pub field_affixes: (String, String),
    /// Takes the place of every card's scenario.
    pub scenario_override: Option<String>,
    /// The order of the prompt, its words, and how the model is to choose its own.
    pub preset: Preset,
    /// What kind of turn it is.
    pub trigger: GenerationTrigger,
    pub note: AuthorNote,
    /// The books whose entries may enter.
    pub lore: LoreInput,
    /// How many messages the people have written.
    pub n_user_turns: i64,
    /// An answer is not cut where another member begins to speak.
    pub allows_other_speakers: bool,
    /// What a human asks of the words that the model finds for them.
    pub impersonation_request: Option<String>,
    /// What a program says of the turn beside the cards. No macro runs in it.
    pub instructions: Option<String>,
    /// What has been said, oldest first: a run of lines that ends with the newest.
    pub history: Vec<HistoryLine>,
    /// What macros remember.
    pub variables: Variables,
    /// What the model is called.
    pub model: String,
    /// The moment that `{{time}}` and `{{date}}` tell.
    pub now: Timestamp,
}

/// Somebody with a seat.
#[derive(Clone, Debug)]
pub struct PromptMember {
    /// The seat.
    pub id: MembershipId,
    /// The display name.
    pub name: String,
    /// Other names by which this one is addressed.
    pub aliases: Vec<String>,
    /// A human or a character.
    pub kind: MembershipKind,
    /// Whether this one takes part, or is muted.
    pub participation: Participation,
    /// Whether this one is still here.
    pub status: MembershipStatus,
    /// The character of this seat.
    pub character: Option<CharacterId>,
    /// A character's card.
    pub card: Option<Card>,
    /// Who this person plays.
    pub persona: Option<String>,
}

impl PromptMember {
    /// A character that is still here, muted or not.
    pub fn is_character(&self) -> bool {
        self.kind == MembershipKind::Character && self.status == MembershipStatus::Active
    }

    /// What `{{char}}` means in the words of this one's card.
    pub fn display_name(&self) -> &str {
        let nickname = self.card.as_ref().and_then(Card::nickname);
        nickname.unwrap_or(&self.name)
    }
}

/// The person whom the prompt calls the user.
#[derive(Clone, Debug, Default)]
pub struct PromptUser {
    /// The display name.
    pub name: String,
    /// Who this person plays; blank when that is nobody in particular.
    pub persona: String,
}

/// One message of the history, as it is sent: normal, active swipe.
#[derive(Clone, Debug)]
pub struct HistoryLine {
    /// Its place in the timeline.
    pub seq: i64,
    /// Its row.
    pub message_id: MessageId,
    /// Which of its texts this is.
    pub swipe: i64,
    /// Its author's seat.
    pub author: MembershipId,
    /// Its author's display name.
    pub name: String,
    /// Its author's side.
    pub role: MessageRole,
    /// What was said. No macro runs in it.
    pub text: String,
    /// How long the text is; 0 when that is not known.
    pub tokens: i64,
    /// When it was said.
    pub created_at: Timestamp,
    /// What it is beside its text.
    pub payload: BlockPayload,
    /// It is sent, or nothing is.
    pub is_required: bool,
}

/// The window of the model, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextLimits {
    /// The whole window.
    pub context_tokens: i64,
    /// What is kept free in it for the answer.
    pub response_tokens: i64,
}

impl Default for ContextLimits {
    fn default() -> Self {
        Self {
            context_tokens: 8192,
            response_tokens: 512,
        }
    }
}

impl ContextLimits {
    /// What a preset leaves open is as usual.
    pub fn from_preset(preset: &Preset) -> Self {
        let usual = Self::default();
        let positive = |it: Option<i64>| it.filter(|it| *it > 0);
        let max_tokens = preset.max_tokens.map(i64::from);
        Self {
            context_tokens: positive(preset.context_tokens).unwrap_or(usual.context_tokens),
            response_tokens: positive(max_tokens).unwrap_or(usual.response_tokens),
        }
    }
}

impl PromptContext {
    /// How much fits.
    pub fn limits(&self) -> ContextLimits {
        ContextLimits::from_preset(&self.preset)
    }

    /// What macros can know beside people and cards.
    pub fn macro_environment(&self) -> MacroEnvironment {
        let limits = self.limits();
        MacroEnvironment {
            now: Some(self.now),
            seed: MacroSeed {
                conversation: self.conversation.0,
                message: self.history.last().map_or(0, |it| it.seq),
            },
            last_messages: self.last_messages(),
            max_prompt_tokens: limits.context_tokens - limits.response_tokens,
            model: self.model.clone(),
            variables: RefCell::new(self.variables.clone()),
            ..MacroEnvironment::default()
        }
    }

    fn last_messages(&self) -> LastMessages {
        let last = |role: Option<MessageRole>| {
            let mut lines = self.history.iter().rev();
            lines.find(|it| role.is_none_or(|role| it.role == role))
        };
        let text = |line: Option<&HistoryLine>| line.map_or(String::new(), |it| it.text.clone());
        LastMessages {
            message: text(last(None)),
            user_message: text(last(Some(MessageRole::User))),
            character_message: text(last(Some(MessageRole::Assistant))),
            message_id: last(None).map(|it| it.seq),
            user_spoke_at: last(Some(MessageRole::User)).map(|it| it.created_at),
            input: self.impersonation_request.clone().unwrap_or_default(),
        }
    }

    /// The member who is about to speak, if the seat is one of the cast.
    pub fn find_speaker(&self) -> Option<&PromptMember> {
        self.members.iter().find(|it| it.id == self.speaker)
    }

    /// Does the model write what a human says?
    pub fn is_impersonation(&self) -> bool {
        self.find_speaker()
            .is_some_and(|it| it.kind == MembershipKind::Human)
    }

    /// Whom `{{char}}` means: the speaker; while that is a human, the character who spoke last, or
    /// else the first one.
    pub fn character(&self) -> Option<&PromptMember> {
        if !self.is_impersonation() {
            return self.find_speaker();
        }
        let spoke = |line: &HistoryLine| self.characters().find(|it| it.id == line.author);
        let last = self.history.iter().rev().find_map(spoke);
        last.or_else(|| self.characters().next())
    }

    /// The characters that are still here, by position, muted ones too.
    pub fn characters(&self) -> impl Iterator<Item = &PromptMember> {
        self.members.iter().filter(|it| it.is_character())
    }

    /// Have several people said something?
    pub fn has_several_users(&self) -> bool {
        let human = |line: &&HistoryLine| line.role == MessageRole::User;
        let mut lines = self.history.iter().filter(human).map(|it| it.author);
        let first = lines.next();
        lines.any(|it| Some(it) != first)
    }

    /// Is there more than one character to be told apart?
    pub fn is_group(&self) -> bool {
        self.characters().count() > 1
    }
}
