//! Deletes the tasks of messages that people forget.

use base::ids::{ConversationId, SpaceId};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};

use crate::conversations::conversation;
use crate::memories::tasks::memory_task::{Column, Entity};
use crate::memories::tasks::task_queue::TaskQueue;

/// Deletes the tasks of a space, or of one of its conversations, except embedding tasks, because their
/// rows are locked after the space. What was said so far is no longer learned from. The caller has locked
/// the conversations, so that no task is inserted in between.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn delete_all(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    only: Option<ConversationId>,
) -> Result<(), DbErr> {
    let mut conversations = conversation::Entity::update_many()
        .col_expr(
            conversation::Column::UnlearnedFromSeq,
            Expr::value(Option::<i64>::None),
        )
        .filter(conversation::Column::SpaceId.eq(space))
        .filter(conversation::Column::UnlearnedFromSeq.is_not_null());
    let mut tasks = Entity::delete_many()
        .filter(Column::SpaceId.eq(space))
        .filter(Column::Kind.is_in(TaskQueue::Learning.kinds()));
    if let Some(id) = only {
        conversations = conversations.filter(conversation::Column::Id.eq(id));
        tasks = tasks.filter(Column::ConversationId.eq(id));
    }
    tasks.exec(tx).await?;
    conversations.exec(tx).await.map(drop)
}
