//! The topics that a socket can subscribe to: conversations, spaces and users.

use base::ids::{ConversationId, SpaceId, UserId};
use serde::{Deserialize, Serialize};

/// A channel of the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// The events of one conversation.
    Conversation(ConversationId),
    /// Space-wide events: members, settings, activity of its conversations.
    Space(SpaceId),
    /// Events for one user's own sockets, and commands that these must execute.
    User(UserId),
}
