//! The failed run that a conversation shows: the newest one, until a newer message or run.
//!
//! A failed run without a round (a forced turn, a regenerate) fails nothing else, so the state of its
//! conversation does not show it; this does, to everyone who reads the conversation, and Retry plans
//! it again.

use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, JoinType, QueryFilter, QuerySelect,
    RelationTrait,
};

use crate::conversations::conversation;
use crate::ids::ConversationId;
use crate::rounds::round;
use crate::runs::run;
use crate::runs::run::{Column, Entity, Relation, RunStatus};
use crate::runs::views::RuntimeView;

/// The newest runs of these conversations, those of them that failed.
///
/// # Errors
/// When the database fails.
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

impl RuntimeView {
    /// The failed run that Retry would plan again.
    pub fn failed_run(&self, row: &conversation::Model) -> Option<run::RunView> {
        let is_active = self.queued.is_some() || self.running.is_some();
        let failed = self.failed.as_ref().filter(|_| !is_active)?;
        let is_shown = match (&self.round, failed.round_id) {
            (Some(round), Some(id)) => {
                round.row.id == id && round.row.state == round::RoundState::Failed
            }
            (None, None) => failed.cutoff_seq == Some(row.last_seq),
            _ => false,
        };
        is_shown.then(|| failed.view())
    }
}
