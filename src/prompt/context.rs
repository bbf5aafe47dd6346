//! All that a prompt is made from.

use crate::characters::card::Card;
use crate::clock::Timestamp;
use crate::conversations::message::MessageRole;
use crate::ids::CharacterId;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::presets::document::GenerationTrigger;
use crate::presets::document::Preset;
use crate::prompt::blocks::Carried;
use crate::prompt::lore::Library;
use crate::prompt::macros::environment::LastMessages;
use crate::prompt::macros::environment::MacroEnvironment;
use crate::prompt::macros::environment::MacroSeed;
use crate::prompt::macros::variables::Variables;
use crate::prompt::note::Note;
use crate::spaces::membership::MembershipKind;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership::Participation;
use crate::spaces::space::CardHandlingMode;
use std::cell::RefCell;

/// One turn of one speaker, before it is put into words.
#[derive(Clone, Debug)]
pub struct Context {
    pub conversation: ConversationId,
    /// What the room is called.
    pub space_name: String,
    /// Who is about to speak: the seat of one of `cast`.
    pub speaker: MembershipId,
    /// Everybody with a seat, by position.
    pub cast: Vec<Member>,
    /// Whom `{{user}}` means.
    pub user: User,
    /// Whose cards enter.
    pub card_handling: CardHandlingMode,
    /// What stands around each field where several cards enter: prefix and suffix.
    pub join: (String, String),
    /// Takes the place of every card's scenario.
    pub scenario_override: Option<String>,
    /// The order of the prompt, its words, and how the model is to choose its own.
    pub preset: Preset,
    /// What kind of turn it is.
    pub trigger: GenerationTrigger,
    pub note: Note,
    /// The books whose entries may enter.
    pub lore: Library,
    /// How many messages the people have written.
    pub n_user_turns: i64,
    /// An answer is not cut where another member begins to speak.
    pub lets_others_speak: bool,
    /// What a human asks of the words that the model finds for them.
    pub instruction: Option<String>,
    /// What a program says of the turn beside the cards. No macro runs in it.
    pub directions: Option<String>,
    /// What has been said, oldest first: a run of lines that ends with the newest.
    pub history: Vec<Line>,
    /// What macros remember.
    pub variables: Variables,
    /// What the model is called.
    pub model: String,
    /// The moment that `{{time}}` and `{{date}}` tell.
    pub now: Timestamp,
}

/// Somebody with a seat.
#[derive(Clone, Debug)]
pub struct Member {
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

impl Member {
    /// A character that is still here, muted or not.
    pub fn is_character(&self) -> bool {
        self.kind == MembershipKind::Character && self.status == MembershipStatus::Active
    }

    /// What `{{char}}` means in the words of this one's card.
    pub fn called(&self) -> &str {
        let nickname = self.card.as_ref().and_then(Card::nickname);
        nickname.unwrap_or(&self.name)
    }
}

/// The person whom the prompt calls the user.
#[derive(Clone, Debug, Default)]
pub struct User {
    /// The display name.
    pub name: String,
    /// Who this person plays; blank when that is nobody in particular.
    pub persona: String,
}

/// One message of the history, as it is sent: normal, active swipe.
#[derive(Clone, Debug)]
pub struct Line {
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
    pub at: Timestamp,
    /// What it is beside its text.
    pub carried: Carried,
    /// It is sent, or nothing is.
    pub stays: bool,
}

/// The window of the model, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The whole window.
    pub context_tokens: i64,
    /// What is kept free in it for the answer.
    pub response_tokens: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            context_tokens: 8192,
            response_tokens: 512,
        }
    }
}

impl Limits {
    /// What a preset leaves open is as usual.
    pub fn of(preset: &Preset) -> Self {
        let usual = Self::default();
        let positive = |it: Option<i64>| it.filter(|it| *it > 0);
        let max_tokens = preset.max_tokens.map(i64::from);
        Self {
            context_tokens: positive(preset.context_tokens).unwrap_or(usual.context_tokens),
            response_tokens: positive(max_tokens).unwrap_or(usual.response_tokens),
        }
    }
}

impl Context {
    /// How much fits.
    pub fn limits(&self) -> Limits {
        Limits::of(&self.preset)
    }

    /// What macros can know beside people and cards.
    pub fn world(&self) -> MacroEnvironment {
        let limits = self.limits();
        MacroEnvironment {
            now: Some(self.now),
            seed: MacroSeed {
                conversation: self.conversation.0,
                message: self.history.last().map_or(0, |it| it.seq),
            },
            last_messages: self.said(),
            max_prompt_tokens: limits.context_tokens - limits.response_tokens,
            model: self.model.clone(),
            variables: RefCell::new(self.variables.clone()),
            ..MacroEnvironment::default()
        }
    }

    fn said(&self) -> LastMessages {
        let last = |role: Option<MessageRole>| {
            let mut lines = self.history.iter().rev();
            lines.find(|it| role.is_none_or(|role| it.role == role))
        };
        let text = |line: Option<&Line>| line.map_or(String::new(), |it| it.text.clone());
        LastMessages {
            message: text(last(None)),
            user_message: text(last(Some(MessageRole::User))),
            character_message: text(last(Some(MessageRole::Assistant))),
            message_id: last(None).map(|it| it.seq),
            user_spoke_at: last(Some(MessageRole::User)).map(|it| it.at),
            input: self.instruction.clone().unwrap_or_default(),
        }
    }

    /// The member who is about to speak, if the seat is one of the cast.
    pub fn speaking(&self) -> Option<&Member> {
        self.cast.iter().find(|it| it.id == self.speaker)
    }

    /// Does the model write what a human says?
    pub fn writes_for_human(&self) -> bool {
        self.speaking()
            .is_some_and(|it| it.kind == MembershipKind::Human)
    }

    /// Whom `{{char}}` means: the speaker; while that is a human, the character who spoke last, or
    /// else the first one.
    pub fn character(&self) -> Option<&Member> {
        if !self.writes_for_human() {
            return self.speaking();
        }
        let spoke = |line: &Line| self.characters().find(|it| it.id == line.author);
        let last = self.history.iter().rev().find_map(spoke);
        last.or_else(|| self.characters().next())
    }

    /// The characters that are still here, by position, muted ones too.
    pub fn characters(&self) -> impl Iterator<Item = &Member> {
        self.cast.iter().filter(|it| it.is_character())
    }

    /// Have several people said something?
    pub fn has_company(&self) -> bool {
        let human = |line: &&Line| line.role == MessageRole::User;
        let mut lines = self.history.iter().filter(human).map(|it| it.author);
        let first = lines.next();
        lines.any(|it| Some(it) != first)
    }

    /// Is there more than one character to be told apart?
    pub fn is_group(&self) -> bool {
        self.characters().count() > 1
    }
}
