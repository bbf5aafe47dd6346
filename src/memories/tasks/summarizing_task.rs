//! Requests tasks of table `memory_tasks` that summarize a conversation.

use base::clock::Timestamp;
use sea_orm::ActiveValue::Set;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, PaginatorTrait,
    QueryFilter,
};

use crate::conversations::conversation;
use crate::memories::tasks::memory_task::{
    ActiveModel, Column, Entity, MemoryTaskKind, MemoryTaskStatus,
};

/// Requests to summarize a locked conversation, unless such a task is already queued. A failed task is
/// replaced.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn request(
    tx: &impl ConnectionTrait,
    row: &conversation::Model,
    now: Timestamp,
) -> Result<(), DbErr> {
    let kind = MemoryTaskKind::Summarize;
    let has_status = |status: MemoryTaskStatus| {
        Condition::all()
            .add(Column::ConversationId.eq(row.id))
            .add(Column::Kind.eq(kind))
            .add(Column::Status.eq(status))
    };
    let waiting = Entity::find().filter(has_status(MemoryTaskStatus::Queued));
    if waiting.count(tx).await? > 0 {
        return Ok(());
    }
    let failed = Entity::delete_many().filter(has_status(MemoryTaskStatus::Failed));
    failed.exec(tx).await?;
    let task = ActiveModel {
        conversation_id: Set(Some(row.id)),
        ..ActiveModel::queued(kind, row.space_id, now, now)
    };
    task.insert(tx).await.map(drop)
}
