//! What a prompt reads of a timeline: as much as fits, however long it is.

use crate::conversations::message;
use crate::conversations::message::Column;
use crate::conversations::message::Entity;
use crate::conversations::message::MessageRole;
use crate::conversations::message::Visibility;
use crate::ids::ConversationId;
use crate::prompt::budget;
use crate::prompt::context::Limits;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::PaginatorTrait;
use sea_orm::QueryFilter;
use sea_orm::QueryOrder;
use sea_orm::QuerySelect;
use sea_orm::Select;

/// How many lengths of messages are read at a time.
const PIECE: u64 = 100;

/// The newest messages that can fit, and one more, ascending. Their lengths are looked at first, so
/// that no text is read that has no place.
pub async fn history(
    db: &impl ConnectionTrait,
    id: ConversationId,
    cutoff_seq: i64,
    limits: Limits,
) -> Result<Vec<message::Model>, DbErr> {
    let room = limits.context_tokens - limits.response_tokens;
    let Some(first_seq) = first_that_fits(db, id, cutoff_seq, room).await? else {
        return Ok(Vec::new());
    };
    sent(id, cutoff_seq)
        .filter(Column::Seq.gte(first_seq))
        .order_by_asc(Column::Seq)
        .all(db)
        .await
}

async fn first_that_fits(
    db: &impl ConnectionTrait,
    id: ConversationId,
    cutoff_seq: i64,
    mut room: i64,
) -> Result<Option<i64>, DbErr> {
    let mut first = None;
    let mut cutoff_seq = cutoff_seq;
    loop {
        let piece: Vec<(i64, i64)> = sent(id, cutoff_seq)
            .select_only()
            .column(Column::Seq)
            .column(Column::TokenCount)
            .order_by_desc(Column::Seq)
            .limit(PIECE)
            .into_tuple()
            .all(db)
            .await?;
        for (seq, token_count) in &piece {
            first = Some(*seq);
            room -= budget::cost_of_line(*token_count);
            if room < 0 {
                return Ok(first);
            }
        }
        match piece.last() {
            Some((seq, _)) if piece.len() as u64 == PIECE => cutoff_seq = seq - 1,
            _ => return Ok(first),
        }
    }
}

/// How many messages of one side there are up to `cutoff_seq`.
pub async fn n_by(
    db: &impl ConnectionTrait,
    id: ConversationId,
    role: MessageRole,
    cutoff_seq: i64,
) -> Result<i64, DbErr> {
    let of_side = sent(id, cutoff_seq).filter(Column::Role.eq(role));
    let n = of_side.count(db).await?;
    Ok(i64::try_from(n).unwrap_or(i64::MAX))
}

/// What a prompt may see of a timeline.
fn sent(id: ConversationId, cutoff_seq: i64) -> Select<Entity> {
    Entity::find()
        .filter(Column::ConversationId.eq(id))
        .filter(Column::Visibility.eq(Visibility::Normal))
        .filter(Column::Seq.lte(cutoff_seq))
}
