//! Loads the newest messages of a conversation that can fit into a prompt, and counts the messages
//! of a role.

use base::ids::ConversationId;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, Select,
};

use crate::conversations::message;
use crate::conversations::message::{Column, Entity, MessageRole};
use crate::prompt::budget;
use crate::prompt::context::ContextLimits;

/// The number of token counts in one query.
const PAGE_SIZE: u64 = 100;

/// Returns the newest messages that can fit, and one more, ascending. Token counts are read first,
/// so that texts that do not fit are never loaded.
pub async fn load_history(
    db: &impl ConnectionTrait,
    id: ConversationId,
    cutoff_seq: i64,
    limits: ContextLimits,
) -> Result<Vec<message::Model>, DbErr> {
    let available_tokens = limits.context_tokens - limits.response_tokens;
    let Some(first_seq) = find_first_fitting_seq(db, id, cutoff_seq, available_tokens).await?
    else {
        return Ok(Vec::new());
    };
    sendable(id, cutoff_seq)
        .filter(Column::Seq.gte(first_seq))
        .order_by_asc(Column::Seq)
        .all(db)
        .await
}

async fn find_first_fitting_seq(
    db: &impl ConnectionTrait,
    id: ConversationId,
    cutoff_seq: i64,
    mut available_tokens: i64,
) -> Result<Option<i64>, DbErr> {
    let mut first = None;
    let mut cutoff_seq = cutoff_seq;
    loop {
        let page: Vec<(i64, i64)> = sendable(id, cutoff_seq)
            .select_only()
            .column(Column::Seq)
            .column(Column::TokenCount)
            .order_by_desc(Column::Seq)
            .limit(PAGE_SIZE)
            .into_tuple()
            .all(db)
            .await?;
        for (seq, token_count) in &page {
            first = Some(*seq);
            available_tokens -= budget::line_cost(*token_count);
            if available_tokens < 0 {
                return Ok(first);
            }
        }
        match page.last() {
            Some((seq, _)) if page.len() as u64 == PAGE_SIZE => cutoff_seq = seq - 1,
            _ => return Ok(first),
        }
    }
}

/// Returns the number of messages with `role` up to `cutoff_seq`.
pub async fn count_by_role(
    db: &impl ConnectionTrait,
    id: ConversationId,
    role: MessageRole,
    cutoff_seq: i64,
) -> Result<i64, DbErr> {
    let of_side = sendable(id, cutoff_seq).filter(Column::Role.eq(role));
    let n = of_side.count(db).await?;
    Ok(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Selects the messages that a prompt may include.
fn sendable(id: ConversationId, cutoff_seq: i64) -> Select<Entity> {
    Entity::find()
        .filter(Column::ConversationId.eq(id))
        // A literal, so that the partial index applies also to a plan for any values.
        .filter(Expr::cust("messages.visibility = 'normal'"))
        .filter(Column::Seq.lte(cutoff_seq))
}
