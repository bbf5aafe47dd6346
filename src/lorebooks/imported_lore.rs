//! Stores what an imported chat says about lorebooks: its own lorebook becomes one of the user's
//! library, linked to the conversation, and timed effects are assigned to entries of that library.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{LorebookId, UserId};
use futures::future::BoxFuture;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait,
    QueryFilter, QueryOrder,
};
use tavern::chats::timed_world_info::{NamedTimedEffect, TimedEffectKind};
use tavern::lorebook::timed_effects::{TimedEffect, TimedEffects};

use crate::conversations::chats::chat_lore::{ChatLore, StoredChatLore};
use crate::lorebooks::lorebook_link::LinkTarget;
use crate::lorebooks::{active_lorebooks, lorebook, lorebook_entry};

/// Stores the lore of a chat in the last transaction of its import.
pub fn store(
    tx: &DatabaseTransaction,
    lore: ChatLore,
    now: Timestamp,
) -> BoxFuture<'_, Result<StoredChatLore, DbErr>> {
    Box::pin(async move {
        if let Some(parsed) = lore.lorebook {
            let book = lorebook::insert(tx, lore.owner, parsed, now).await?;
            let link = LinkTarget::Conversation(lore.conversation).new_link(book.id, 0);
            link.insert(tx).await?;
        }
        assign_effects(tx, lore.owner, &lore.timed_effects).await
    })
}

/// Assigns effects to the entries of the user's lorebooks with these names. Stores nothing.
///
/// # Errors
/// Returns the database error if a query fails.
pub async fn assign_effects(
    tx: &impl ConnectionTrait,
    owner: UserId,
    effects: &[NamedTimedEffect],
) -> Result<StoredChatLore, DbErr> {
    if effects.is_empty() {
        return Ok(StoredChatLore::default());
    }
    let entries = load_entries(tx, owner, effects).await?;
    let mut assigned = TimedEffects::default();
    let mut n_effects_left_out = 0;
    for effect in effects {
        let place = (effect.lorebook.clone(), effect.entry_uid.clone());
        let Some(row) = entries.get(&place) else {
            n_effects_left_out += 1;
            continue;
        };
        let entry = active_lorebooks::to_entry(row);
        let key = format!("{}.{}", row.lorebook_id, row.id);
        let times = (effect.start, effect.end);
        let restored = TimedEffect::restored(&entry, times, effect.is_protected);
        match effect.kind {
            TimedEffectKind::Sticky => assigned.sticky.insert(key, restored),
            TimedEffectKind::Cooldown => assigned.cooldown.insert(key, restored),
        };
    }
    let state = serde_json::to_value(&assigned).ok();
    Ok(StoredChatLore {
        state: state.filter(|_| assigned != TimedEffects::default()),
        n_effects_left_out,
    })
}

/// Returns the entries of the named lorebooks by the name of the lorebook and their `uid`. Of several
/// lorebooks with one name, the oldest counts.
async fn load_entries(
    tx: &impl ConnectionTrait,
    owner: UserId,
    effects: &[NamedTimedEffect],
) -> Result<HashMap<(String, String), lorebook_entry::Model>, DbErr> {
    let names = effects.iter().map(|it| it.lorebook.as_str());
    let names = load_named(tx, owner, names).await?;
    let rows = lorebook_entry::Entity::find()
        .filter(lorebook_entry::Column::LorebookId.is_in(names.keys().copied()))
        .all(tx)
        .await?;
    let placed = rows.into_iter().filter_map(|row| {
        let name = names.get(&row.lorebook_id)?.clone();
        Some(((name, row.uid()?), row))
    });
    Ok(placed.collect())
}

/// Returns the lorebooks of a user's library that these names mean, with their names.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn load_named(
    db: &impl ConnectionTrait,
    owner: UserId,
    names: impl IntoIterator<Item = &str>,
) -> Result<HashMap<LorebookId, String>, DbErr> {
    let books = lorebook::select_for_owner(owner)
        .filter(lorebook::Column::Name.is_in(names))
        .order_by_desc(lorebook::Column::Id)
        .all(db)
        .await?;
    let oldest: HashMap<String, LorebookId> =
        books.into_iter().map(|it| (it.name, it.id)).collect();
    Ok(oldest.into_iter().map(|(name, id)| (id, name)).collect())
}
