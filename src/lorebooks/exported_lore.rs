//! Names the timed effects of an exported chat by the lorebook's name and the entry's `uid`, so that an
//! import by the same user finds the entries again.
//!
//! **Invariant:** only lorebooks in the library of the user who exports are named. The effects on other
//! lorebooks, and on those embedded in cards, are left out.

use std::collections::HashMap;

use base::ids::{LorebookEntryId, LorebookId, UserId};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};
use serde::Deserialize;
use serde_json::Value;
use tavern::chats::timed_world_info::{NamedTimedEffect, TimedEffectKind};
use tavern::lorebook::timed_effects::{TimedEffect, TimedEffects};

use crate::lorebooks::{imported_lore, lorebook, lorebook_entry};

/// An effect on an entry in a library.
struct StoredEffect {
    kind: TimedEffectKind,
    lorebook: LorebookId,
    entry: LorebookEntryId,
    effect: TimedEffect,
}

/// Returns the effects of a conversation, whose lore state is `state`, as a file names them.
///
/// # Errors
/// Returns the database error if a query fails.
pub async fn name_effects(
    db: &impl ConnectionTrait,
    owner: UserId,
    state: &Value,
) -> Result<Vec<NamedTimedEffect>, DbErr> {
    let effects = stored_effects(state);
    if effects.is_empty() {
        return Ok(Vec::new());
    }
    let books = lorebook::select_for_owner(owner)
        .filter(lorebook::Column::Id.is_in(effects.iter().map(|it| it.lorebook)))
        .all(db)
        .await?;
    // A name means one lorebook; an effect on another one with this name would come back in the wrong one.
    let names = books.iter().map(|it| it.name.as_str());
    let named = imported_lore::load_named(db, owner, names).await?;
    let rows = lorebook_entry::Entity::find()
        .filter(lorebook_entry::Column::LorebookId.is_in(named.keys().copied()))
        .filter(lorebook_entry::Column::Id.is_in(effects.iter().map(|it| it.entry)))
        .all(db)
        .await?;
    let rows: HashMap<(LorebookId, LorebookEntryId), lorebook_entry::Model> = rows
        .into_iter()
        .map(|it| ((it.lorebook_id, it.id), it))
        .collect();
    let exported = effects.into_iter().filter_map(|stored| {
        let row = rows.get(&(stored.lorebook, stored.entry))?;
        Some(NamedTimedEffect {
            kind: stored.kind,
            lorebook: named.get(&row.lorebook_id)?.clone(),
            entry_uid: row.uid().filter(|it| !it.contains('.'))?,
            start: stored.effect.start,
            end: stored.effect.end,
            is_protected: stored.effect.is_protected,
        })
    });
    Ok(exported.collect())
}

fn stored_effects(state: &Value) -> Vec<StoredEffect> {
    let effects = TimedEffects::deserialize(state).unwrap_or_default();
    let sticky = effects.sticky.into_iter();
    let sticky = sticky.map(|it| (TimedEffectKind::Sticky, it));
    let cooldown = effects.cooldown.into_iter();
    let cooldown = cooldown.map(|it| (TimedEffectKind::Cooldown, it));
    let stored = sticky.chain(cooldown).filter_map(|(kind, (key, effect))| {
        // The key of a lorebook that is embedded in a card is not a number.
        let (lorebook, entry) = key.split_once('.')?;
        Some(StoredEffect {
            kind,
            lorebook: LorebookId(lorebook.parse().ok()?),
            entry: LorebookEntryId(entry.parse().ok()?),
            effect,
        })
    });
    stored.collect()
}
