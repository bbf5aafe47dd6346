//! Which messages of a conversation a prompt may contain: of whispers those that its speaker heard. Every
//! source of a prompt that reads messages uses this filter: history, quotations, counts, summaries and
//! memories.
//!
//! **Invariant:** a whisper among people alone is in no prompt; no model receives it.

use base::clock::Timestamp;
use base::ids::MembershipId;
use sea_orm::{ColumnTrait, Condition};

use crate::conversations::annotations::quoted_message::QuotedMessage;
use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message::{Column, Entity, Visibility};
use crate::spaces::membership;
use crate::spaces::posts::heard_messages;

/// The messages that a prompt may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryFilter {
    speaker: Viewer,
    /// To whom the prompt is shown: it contains only what they see, too.
    reader: Viewer,
    /// Only messages since then; `None`: older ones, too.
    pub heard_since: Option<Timestamp>,
}

impl HistoryFilter {
    /// Returns the filter for the prompt of a speaker, one of `memberships`, that contains only what
    /// `reader` sees, too.
    pub fn new(speaker: MembershipId, memberships: &[membership::Model], reader: Viewer) -> Self {
        Self {
            speaker: Viewer::Member(speaker),
            reader,
            heard_since: heard_messages::heard_since(memberships, speaker),
        }
    }

    fn sees(&self, audience: Option<&Audience>) -> bool {
        self.speaker.sees(audience) && self.reader.sees(audience)
    }

    /// Returns whether a message with this audience and time may be in the prompt.
    pub fn accepts(&self, audience: Option<&Audience>, created_at: Timestamp) -> bool {
        self.sees(audience) && self.heard(created_at)
    }

    /// Returns whether a quoted message may be in the prompt.
    pub fn accepts_quoted(&self, message: &QuotedMessage) -> bool {
        message.visibility == Visibility::Normal
            && !message.is_ooc
            && !message.is_for_people
            && self.accepts(message.audience.as_ref(), message.created_at)
    }

    /// Returns whether the speaker was there at that time.
    pub fn heard(&self, at: Timestamp) -> bool {
        self.heard_since.is_none_or(|since| at >= since)
    }

    /// Returns the condition that a message may be in the prompt.
    pub fn condition(&self) -> Condition {
        let viewers = [self.speaker, self.reader].into_iter();
        let viewers = viewers.filter(|it| *it != Viewer::Server);
        viewers
            .map(|it| it.condition((Entity, Column::Audience)))
            .fold(Condition::all(), Condition::add)
            .add_option(self.heard_since.map(|it| Column::CreatedAt.gte(it)))
    }
}
