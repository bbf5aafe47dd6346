//! The first timeline of each space: where one lands on entering it.

use crate::conversations::conversation::Column;
use crate::conversations::conversation::ConversationKind;
use crate::conversations::conversation::Entity;
use crate::ids::ConversationId;
use crate::ids::SpaceId;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QuerySelect;
use std::collections::HashMap;

/// The oldest root conversation of each of these spaces.
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

/// The oldest root conversation of a space.
pub async fn find_for_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
) -> Result<Option<ConversationId>, DbErr> {
    Ok(list_for_spaces(db, [space]).await?.remove(&space))
}
