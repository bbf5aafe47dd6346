//! Finds which of some messages a viewer sees.

use std::collections::HashSet;

use base::ids::MessageId;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message::{Column, Entity};

/// Returns those of these messages that exist and that the viewer sees, whatever their visibility. The
/// caller limits their number.
pub async fn list_seen(
    db: &impl ConnectionTrait,
    messages: impl IntoIterator<Item = MessageId>,
    viewer: Viewer,
) -> Result<HashSet<MessageId>, DbErr> {
    let messages: Vec<MessageId> = messages.into_iter().collect();
    if messages.is_empty() {
        return Ok(HashSet::new());
    }
    let seen: Vec<MessageId> = Entity::find()
        .filter(Column::Id.is_in(messages))
        .filter(viewer.condition((Entity, Column::Audience)))
        .select_only()
        .column(Column::Id)
        .into_tuple()
        .all(db)
        .await?;
    Ok(seen.into_iter().collect())
}
