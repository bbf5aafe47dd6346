//! What one can listen to.

use serde::{Deserialize, Serialize};

use crate::ids::{ConversationId, SpaceId, UserId};

/// A channel of the loudspeaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// What happens on one timeline.
    Conversation(ConversationId),
    /// What happens in a space at large: seats, settings, activity of its conversations.
    Space(SpaceId),
    /// What is for one person's own sockets alone, and what those must obey.
    User(UserId),
}
