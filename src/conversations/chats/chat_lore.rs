//! What an imported chat says about lorebooks: its own lorebook, and the timed effects of entries.
//! The module that knows lorebooks stores it, in the last transaction of the import.

use base::clock::Timestamp;
use base::ids::{ConversationId, UserId};
use futures::future::BoxFuture;
use sea_orm::{DatabaseTransaction, DbErr};
use serde_json::Value;
use tavern::chats::timed_world_info::NamedTimedEffect;
use tavern::lorebook_files::file::ParsedLorebook;

/// The lorebook and the timed effects of a chat.
#[derive(Clone, Debug)]
pub struct ChatLore {
    /// The user who imports the chat. The lorebook is added to their library, and the effects name
    /// lorebooks in it.
    pub owner: UserId,
    pub conversation: ConversationId,
    pub lorebook: Option<ParsedLorebook>,
    pub timed_effects: Vec<NamedTimedEffect>,
}

/// What was stored of the lore of a chat.
#[derive(Clone, Debug, Default)]
pub struct StoredChatLore {
    /// The timed effects, as the conversation keeps them.
    pub state: Option<Value>,
    /// The number of effects whose lorebook or entry does not exist.
    pub n_effects_left_out: usize,
}

/// Stores the lore of a chat in a transaction.
pub type StoreChatLore = for<'a> fn(
    &'a DatabaseTransaction,
    ChatLore,
    Timestamp,
) -> BoxFuture<'a, Result<StoredChatLore, DbErr>>;
