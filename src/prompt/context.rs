//! All that a prompt is made from.

use crate::characters::card::Card;
use crate::clock::Timestamp;
use crate::conversations::message::Role;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::spaces::membership::Kind;
use crate::spaces::membership::Participation;
use crate::spaces::membership::Status;

/// The main prompt of a space that sets none.
pub const MAIN_PROMPT: &str = "You are {{char}}, in a conversation with {{notChar}}. \
Write the next message of {{char}}, and only of {{char}}.";
/// The same while the model writes what a human says.
pub const HUMAN_MAIN_PROMPT: &str = "You write for {{user}}, who is a person in a conversation. \
Write the next message of {{user}}, and only of {{user}}.";
/// The last word while the model writes what a human says.
pub const IMPERSONATION: &str = "[Write the next message of {{user}}, in the voice in which \
{{user}} has written so far. Write for nobody else.]";
/// The line at the end of the history of a group, if the space sets none.
pub const GROUP_NUDGE: &str = "[Write the next reply only as {{char}}.]";

/// One turn of one speaker, before it is put into words.
#[derive(Clone, Debug)]
pub struct Context {
    /// What the room is called.
    pub space_name: String,
    /// Who is about to speak: the seat of one of `cast`.
    pub speaker: MembershipId,
    /// Everybody with a seat, by position.
    pub cast: Vec<Member>,
    /// Whom `{{user}}` means.
    pub user: User,
    /// Takes the place of every card's scenario.
    pub scenario_override: Option<String>,
    /// What the model is told first; a card may replace it.
    pub main_prompt: String,
    /// What the model is told last; a card may replace it. Blank: nothing.
    pub post_history: String,
    /// Ends the history of a group. Blank: nothing.
    pub group_nudge: String,
    /// What a human asks of the words that the model finds for them.
    pub instruction: Option<String>,
    /// What has been said, oldest first: a run of lines that ends with the newest.
    pub history: Vec<Line>,
    /// How much fits.
    pub limits: Limits,
    /// How the model is to choose its words.
    pub sampling: Sampling,
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
    pub kind: Kind,
    /// Whether this one takes part, or is muted.
    pub participation: Participation,
    /// Whether this one is still here.
    pub status: Status,
    /// A character's card.
    pub card: Option<Card>,
    /// Who this person plays.
    pub persona: Option<String>,
}

impl Member {
    /// A character that is still here, muted or not.
    pub fn is_character(&self) -> bool {
        self.kind == Kind::Character && self.status == Status::Active
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
    /// Its author's seat.
    pub author: MembershipId,
    /// Its author's display name.
    pub name: String,
    /// Its author's side.
    pub role: Role,
    /// What was said. No macro runs in it.
    pub text: String,
    /// How long the text is; 0 when that is not known.
    pub tokens: i64,
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

/// Settings that the model is given with the prompt; what is not set is left to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub max_tokens: Option<u32>,
    /// Texts that end the answer; macros run in them.
    pub stop: Vec<String>,
}

impl Context {
    /// The member who is about to speak, if the seat is one of the cast.
    pub fn speaking(&self) -> Option<&Member> {
        self.cast.iter().find(|it| it.id == self.speaker)
    }

    /// Does the model write what a human says?
    pub fn writes_for_human(&self) -> bool {
        self.speaking().is_some_and(|it| it.kind == Kind::Human)
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

    /// Is there more than one character to be told apart?
    pub fn is_group(&self) -> bool {
        self.characters().count() > 1
    }
}
