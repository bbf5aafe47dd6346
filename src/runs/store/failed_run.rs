//! Finds the newest run of a conversation, if it failed. A conversation shows it until there is a
//! newer message or run.
//!
//! A failed run without a round (a forced reply, a regenerate) fails no round, so the state of the
//! conversation does not show it. This query lets clients show it; Retry queues the run again.

use base::ids::ConversationId;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, JoinType, QueryFilter, QuerySelect,
    RelationTrait,
};

use crate::conversations::conversation;
use crate::runs::store::run;
use crate::runs::store::run::{Column, Entity, Relation, RunStatus};

/// Returns the newest run of each of these conversations, if it failed.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_newest_failed(
    db: &impl ConnectionTrait,
    conversations: &[ConversationId],
) -> Result<Vec<run::Model>, DbErr> {
    let newest = (conversation::Entity, conversation::Column::LastRunSeq);
    Entity::find()
        .join(JoinType::InnerJoin, Relation::Conversation.def())
        .filter(Expr::col((Entity, Column::RunSeq)).equals(newest))
        .filter(conversation::Column::Id.is_in(conversations.iter().copied()))
        .filter(Column::Status.eq(RunStatus::Failed))
        .all(db)
        .await
}
