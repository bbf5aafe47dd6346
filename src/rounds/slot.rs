//! The slots of a round: its speakers, in order. They are a JSON document in the row of their
//! round, because they are read and written together with it.

use base::ids::{MembershipId, MessageId};
use sea_orm::FromJsonQueryResult;
use sea_orm::prelude::StringLen;
use serde::{Deserialize, Serialize};

use crate::db::string_enum::string_enum;

/// One position of a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slot {
    /// From 0.
    pub position: i64,
    /// `None` until the director chooses.
    pub space_membership_id: Option<MembershipId>,
    pub status: SlotStatus,
    /// The message with which the member spoke; missing in rounds of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<String>,
    pub chosen_because: String,
    /// A user forced it: its run is a `force_talk`, so that a muted member may speak.
    pub forced: bool,
}

/// The slots of a round in the order of their positions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, FromJsonQueryResult)]
pub struct Slots(pub Vec<Slot>);

string_enum! {
    /// Slots before the cursor are spoken or skipped; those from the cursor on are pending.
    #[schema(as = SlotStatus)]
    SlotStatus { Pending, Spoken, Skipped }
}

impl Slots {
    /// Returns the slot at a position.
    pub fn at(&self, position: i64) -> Option<&Slot> {
        self.0.iter().find(|it| it.position == position)
    }

    /// Returns the slots from a position on.
    pub fn from(&self, position: i64) -> impl Iterator<Item = &Slot> {
        self.0.iter().filter(move |it| it.position >= position)
    }

    /// Sets the status of one slot, with the reason if it was skipped.
    pub fn mark(&mut self, position: i64, status: SlotStatus, skip_reason: Option<&str>) {
        for slot in self.0.iter_mut().filter(|it| it.position == position) {
            slot.status = status;
            slot.skip_reason = skip_reason.map(str::to_owned);
        }
    }

    /// Records the message with which the member of a slot spoke.
    pub fn set_message(&mut self, position: i64, message: MessageId) {
        for slot in self.0.iter_mut().filter(|it| it.position == position) {
            slot.message_id = Some(message);
        }
    }

    /// Replaces the slots from a position on.
    pub fn replace_from(&mut self, position: i64, slots: Vec<Slot>) {
        self.0.retain(|it| it.position < position);
        self.0.extend(slots);
    }
}
