//! Lists the tasks of a space that are not retried by themselves, for its members.

use base::clock::Timestamp;
use base::ids::{ConversationId, MemoryTaskId, SpaceId};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder,
    QuerySelect,
};

use crate::conversations::conversation;
use crate::memories::tasks::memory_task::{Column, Entity, MemoryTaskKind, MemoryTaskStatus};

/// The maximum number of failed tasks that are listed: enough to see the cause, which is mostly the same for
/// all.
const MAX_LISTED: u64 = 5;

/// A task that is not retried.
#[derive(Clone, Debug)]
pub struct FailedTask {
    pub id: MemoryTaskId,
    pub kind: MemoryTaskKind,
    /// `None` for tasks of the whole space.
    pub conversation: Option<ConversationId>,
    /// A sentence for members.
    pub error: Option<String>,
    pub created_at: Timestamp,
}

/// Returns the newest failed tasks of a space, without those of conversations that are being deleted.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_newest(
    db: &impl ConnectionTrait,
    space: SpaceId,
) -> Result<Vec<FailedTask>, DbErr> {
    let is_of_visible = Condition::any()
        .add(Column::ConversationId.is_null())
        .add(Column::ConversationId.not_in_subquery(conversation::hidden_ids()));
    let rows = Entity::find()
        .filter(Column::SpaceId.eq(space))
        .filter(Column::Status.eq(MemoryTaskStatus::Failed))
        .filter(is_of_visible)
        .order_by_desc(Column::Id)
        .limit(MAX_LISTED)
        .all(db)
        .await?;
    let failed = rows.into_iter().map(|it| FailedTask {
        id: it.id,
        kind: it.kind,
        conversation: it.conversation_id,
        error: it.error,
        created_at: it.created_at,
    });
    Ok(failed.collect())
}
