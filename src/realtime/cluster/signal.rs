//! What nodes say to each other beside the events of people: never more than a hint.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::ConversationId;
use crate::realtime::presence::PresentMember;
use crate::realtime::typing::TypingKey;

/// A word from node to node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterSignal {
    /// I am here. `is_new`: I know nobody yet, so tell me who is with you.
    Beat { is_new: bool },
    /// I am closing; nobody is with me any more.
    Gone,
    /// Something may be due.
    Bell,
    /// Who is with me, in these conversations. `whole`: and in no others.
    Presence {
        whole: bool,
        rooms: Vec<(ConversationId, Vec<PresentMember>)>,
    },
    /// A person types, or has stopped.
    Typing { hands: TypingKey, active: bool },
    /// Whoever executes this run under this lease: stop, and keep what there is.
    KeepPartial { run: Uuid, lease: i64 },
    /// Whoever writes in this conversation: tell me the text so far.
    Ask { conversation: ConversationId },
    /// The text so far of what I write.
    Text(StreamSnapshot),
}

/// A run that is being written, for those who missed its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSnapshot {
    pub conversation: ConversationId,
    pub run: Uuid,
    pub lease: i64,
    /// The frame `typing_start`, encoded.
    pub start: String,
    pub text: String,
}
