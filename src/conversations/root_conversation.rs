//! Finds the oldest root conversation of a space, which clients show when a user opens the space.

use std::collections::HashMap;

use base::ids::{ConversationId, SpaceId};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};

use crate::conversations::conversation::{Column, ConversationKind, Entity};

/// Returns the oldest root conversation of each of these spaces.
pub async fn list_for_spaces(
    db: &impl ConnectionTrait,
    spaces: impl IntoIterator<Item = SpaceId>,
) -> Result<HashMap<SpaceId, ConversationId>, DbErr> {
    let roots: Vec<(SpaceId, ConversationId)> = Entity::find()
        .select_only()
        .column(Column::SpaceId)
        .column_as(Column::Id.min(), "root")
        .filter(Column::SpaceId.is_in(spaces))
        .filter(Column::Kind.eq(ConversationKind::Root))
        .group_by(Column::SpaceId)
        .into_tuple()
        .all(db)
        .await?;
    Ok(roots.into_iter().collect())
}

/// Returns the oldest root conversation of a space.
pub async fn find_for_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
) -> Result<Option<ConversationId>, DbErr> {
    Ok(list_for_spaces(db, [space]).await?.remove(&space))
}
