//! Keeps each space within its maximum number of memories (`settings.memory.max_memories`): deletes the
//! least valuable ones beyond it, unless they are pinned or very important.

use base::clock::Timestamp;
use base::ids::SpaceId;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};
use serde_json::Value;

use crate::db::connect::Db;
use crate::memories::events::memory_announcer::MemoryAnnouncer;
use crate::memories::memory::{Column, Entity};
use crate::memories::memory_settings::MemorySettings;
use crate::memories::pruning::pruner;
use crate::memories::pruning::pruner::PruneRules;
use crate::spaces::space;

/// How many spaces one statement loads.
const MAX_SPACES: usize = 500;

/// Deletes the memories beyond the maximum of a space with these settings. Returns how many.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn enforce(
    db: &Db,
    space: SpaceId,
    settings: &Value,
    now: Timestamp,
) -> Result<u64, DbErr> {
    let rules = PruneRules {
        created_before: None,
        keep: Some(MemorySettings::of_space(settings).max_memories()),
        keep_importance: pruner::KEPT_IMPORTANCE,
    };
    // Most spaces are within their maximum and need no transaction.
    match pruner::count(db, space, rules).await? {
        0 => Ok(0),
        _ => pruner::prune(db, space, rules, now).await,
    }
}

/// Deletes the memories beyond the maximum of every space, and announces the deletions. Returns the
/// number of deleted memories.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn enforce_all(db: &Db, events: &MemoryAnnouncer, now: Timestamp) -> Result<u64, DbErr> {
    let counts = count_by_space(db.reader()).await?;
    let mut deleted = 0;
    for part in counts.chunks(MAX_SPACES) {
        let ids = part.iter().map(|(id, _)| *id);
        let settings: Vec<(SpaceId, Value, i64)> = space::Entity::find()
            .select_only()
            .column(space::Column::Id)
            .column(space::Column::Settings)
            .column(space::Column::MemoryVersion)
            .filter(space::Column::Id.is_in(ids))
            .into_tuple()
            .all(db.reader())
            .await?;
        for (id, settings, version) in settings {
            let max = MemorySettings::of_space(&settings).max_memories();
            let is_over = |(it, n): &(SpaceId, i64)| *it == id && n.unsigned_abs() > max;
            if part.iter().any(is_over) {
                let n = enforce(db, id, &settings, now).await?;
                if n > 0 {
                    events.memories_changed(id, version + 1);
                }
                deleted += n;
            }
        }
    }
    Ok(deleted)
}

/// Returns the number of memories of each space that has any.
async fn count_by_space(db: &impl ConnectionTrait) -> Result<Vec<(SpaceId, i64)>, DbErr> {
    Entity::find()
        .select_only()
        .column(Column::SpaceId)
        .column_as(Column::Id.count(), "n")
        .filter(Column::DeletedAt.is_null())
        .group_by(Column::SpaceId)
        .into_tuple()
        .all(db)
        .await
}
