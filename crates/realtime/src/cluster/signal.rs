//! The signals between nodes that are not client events, such as heartbeats, presence and typing.
//! They are only hints, whose loss is harmless.

use base::ids::ConversationId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::envelope::Receivers;
use crate::presence_table::PresentMember;
use crate::typing_users::TypingKey;

/// A signal from one node to the others. The encoded names must not change, because nodes of earlier
/// versions read them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterSignal {
    /// A heartbeat. `is_new`: the node has just connected and requests the presence of the others.
    #[serde(rename = "beat")]
    Heartbeat { is_new: bool },
    /// The node is closing; its members are no longer present.
    #[serde(rename = "gone")]
    Closing,
    /// A run may be due.
    #[serde(rename = "bell")]
    RunDue,
    /// The presence on this node, in these conversations. `is_complete`: and in no others.
    Presence {
        #[serde(rename = "whole")]
        is_complete: bool,
        #[serde(rename = "rooms")]
        conversations: Vec<(ConversationId, Vec<PresentMember>)>,
    },
    /// A user types, or has stopped.
    Typing {
        #[serde(rename = "hands")]
        key: TypingKey,
        active: bool,
    },
    /// Requests the node that executes this run under this lease to stop and keep the partial text.
    KeepPartial { run: Uuid, lease: i64 },
    /// Requests the text so far from the node that runs in this conversation.
    #[serde(rename = "ask")]
    RequestText { conversation: ConversationId },
    /// The text so far of a run on this node.
    Text(StreamSnapshot),
}

/// The stream of a running run, for nodes that missed its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSnapshot {
    pub conversation: ConversationId,
    pub run: Uuid,
    pub lease: i64,
    /// The frame `typing_start`, encoded.
    pub start: String,
    /// Who receives it; everyone if a node of an earlier version sent it.
    #[serde(default)]
    pub receivers: Receivers,
    pub text: String,
}
