//! Finds the failed run that a conversation shows: the newest run, until a newer message or run.
//!
//! A failed run without a round (a forced reply, a regenerate) fails no round, so the state of the
//! conversation does not show it. This does, to everyone who reads the conversation; Retry queues
//! the run again.

use base::ids::ConversationId;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, JoinType, QueryFilter, QuerySelect,
    RelationTrait,
};

use crate::conversations::conversation;
use crate::rounds::round;
use crate::runs::reading::views::RuntimeView;
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

impl RuntimeView {
    /// Returns the failed run that Retry would queue again.
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
