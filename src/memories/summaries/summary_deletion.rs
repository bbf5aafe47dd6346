//! Deletes the summaries of messages that people forget. These messages are no longer summarized.

use base::ids::{ConversationId, MembershipId, SpaceId};
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};

use crate::conversations::{conversation, message};
use crate::memories::summaries::summary::{Column, Entity};

/// Deletes the summaries of a space, or of one of its conversations, and locks these conversations. What
/// was said so far is no longer summarized.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn forget(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    only: Option<ConversationId>,
) -> Result<(), DbErr> {
    let mut of_scope = Query::select();
    of_scope
        .column(conversation::Column::Id)
        .from(conversation::Entity)
        .and_where(Expr::col(conversation::Column::SpaceId).eq(space));
    if let Some(id) = only {
        of_scope.and_where(Expr::col(conversation::Column::Id).eq(id));
    }
    forget_selected(tx, of_scope).await
}

/// Deletes the summaries of the conversations in which a member has written, and locks these
/// conversations. What was said there so far is no longer summarized.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn forget_member(tx: &impl ConnectionTrait, member: MembershipId) -> Result<(), DbErr> {
    let of_member = Query::select()
        .column(message::Column::ConversationId)
        .from(message::Entity)
        .and_where(Expr::col(message::Column::SpaceMembershipId).eq(member))
        .to_owned();
    forget_selected(tx, of_member).await
}

async fn forget_selected(tx: &impl ConnectionTrait, ids: SelectStatement) -> Result<(), DbErr> {
    // First, so that no text of a model is stored in between.
    conversation::lock_selected(tx, ids.clone()).await?;
    conversation::Entity::update_many()
        .col_expr(
            conversation::Column::SummaryFromSeq,
            Expr::col(conversation::Column::LastSeq).add(1),
        )
        .col_expr(
            conversation::Column::SummaryGoalSeq,
            Expr::col(conversation::Column::LastSeq),
        )
        .filter(conversation::Column::Id.in_subquery(ids.clone()))
        .exec(tx)
        .await?;
    Entity::delete_many()
        .filter(Column::ConversationId.in_subquery(ids))
        .exec(tx)
        .await
        .map(drop)
}
