//! Defines a type for the id of each kind of row, so that a message id cannot be passed as a
//! membership id: 64-bit integers, and UUIDv7 for runs, rounds and generations.
//!
//! UUIDv7 sort by time on both databases.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

macro_rules! row_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            Serialize, Deserialize, ToSchema,
        )]
        #[cfg_attr(feature = "sea-orm", derive(sea_orm::DeriveValueType))]
        #[cfg_attr(feature = "sea-orm", sea_orm(try_from_u64))]
        #[serde(transparent)]
        #[schema(minimum = 1)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )*};
}

row_id! {
    /// A user with an account.
    UserId;
    /// One signed-in browser.
    SessionId;
    /// An API key.
    ApiKeyId;
    /// An invite link.
    InviteId;
    /// Stored bytes, found by their hash.
    AssetId;
    /// A character card.
    CharacterId;
    /// A model provider's endpoint with its key.
    ProviderId;
    /// Generation settings and prompt order.
    PresetId;
    /// A role that a user plays.
    PersonaId;
    /// The container of members, settings and conversations.
    SpaceId;
    /// The membership of a user or a character in a space; the author of messages.
    MembershipId;
    /// One timeline.
    ConversationId;
    /// One finished entry of a timeline.
    MessageId;
    /// A picture that a person adds to a message.
    AttachmentId;
    /// A lorebook (World Info).
    LorebookId;
    /// One entry of a lorebook.
    LorebookEntryId;
    /// The link of a lorebook to where it applies.
    LorebookLinkId;
    /// An alternative version of a message.
    SwipeId;
    /// An import of a chat or a space.
    ImportId;
    /// The invitation of one user into a space.
    InvitationId;
    /// A background job.
    JobId;
    /// Something that is remembered about a space.
    MemoryId;
    /// A pending task of the memory: to learn from messages.
    MemoryTaskId;
    /// A version of a summary of a conversation.
    SummaryId;
    /// An embedding model, with its dimensions.
    EmbeddingModelId;
    /// The question whether a tool may be called.
    ToolApprovalId;
}

macro_rules! time_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            Serialize, Deserialize, ToSchema,
        )]
        #[cfg_attr(feature = "sea-orm", derive(sea_orm::DeriveValueType))]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Returns a new id, greater than every earlier one of this process.
            #[allow(clippy::new_without_default)] // a default that differs each time would surprise
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        #[cfg(feature = "sea-orm")]
        impl sea_orm::TryFromU64 for $name {
            fn try_from_u64(_: u64) -> Result<Self, sea_orm::DbErr> {
                Err(sea_orm::DbErr::ConvertFromU64(stringify!($name)))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )*};
}

time_id! {
    /// One attempt to produce one text.
    RunId;
    /// The speakers that one trigger activates, in order.
    RoundId;
    /// Suggested replies for a user, generated together.
    GenerationId;
}
