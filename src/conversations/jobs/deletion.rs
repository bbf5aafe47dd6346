//! Deletes a conversation or a space in batches: hides it, inserts the job that deletes it, and
//! deletes the rows of one batch.
//!
//! **Invariant:** what is deleted in batches is hidden first, and no other conversation refers to
//! it. Every statement finds its rows by an index, and the foreign keys to a deleted row are
//! indexed.

use base::ids::{ConversationId, SpaceId};
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect,
};

use crate::conversations::jobs::job;
use crate::conversations::jobs::job::{JobSubject, NewJob};
use crate::conversations::{conversation, message};
use crate::db::connect::Db;
use crate::spaces::{copilot_steps, membership, space};

/// A hidden conversation that awaits its deletion.
#[derive(Clone, Debug)]
pub struct HiddenConversation {
    pub job: job::Model,
    /// The memberships whose copilot was on in it.
    pub copilots: Vec<membership::Model>,
}

/// What a batch deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletedBatch {
    /// This number of messages; there are more rows.
    Messages(i64),
    /// Rows of other tables; there are more rows.
    OtherRows,
    /// The last rows.
    Everything,
}

/// Tables with rows of a conversation, their key and the column that names the conversation. Tables
/// that refer to another one come before it.
const TABLES: [(&str, &str, &str); 5] = [
    ("run_prompts", "run_id", "conversation_id"),
    ("tool_approvals", "id", "conversation_id"),
    ("conversation_runs", "id", "conversation_id"),
    ("conversation_rounds", "id", "conversation_id"),
    ("read_marks", "user_id", "conversation_id"),
];

/// Hides a locked conversation without branches and threads, and inserts the job that deletes it.
pub async fn hide_conversation(
    tx: &impl ConnectionTrait,
    row: &conversation::Model,
    new: NewJob,
) -> Result<HiddenConversation, DbErr> {
    hide(tx, row.id).await?;
    space::reset_memory_version(tx, row.space_id).await?;
    let subject = JobSubject {
        space: row.space_id,
        conversation: Some(row.id),
    };
    Ok(HiddenConversation {
        job: job::insert(tx, new, subject).await?,
        copilots: copilot_steps::disable_copilots_in(tx, row.id).await?,
    })
}

/// Hides a conversation that will be deleted, and detaches it from its parent.
pub async fn hide(tx: &impl ConnectionTrait, id: ConversationId) -> Result<(), DbErr> {
    use conversation::Column;
    conversation::Entity::update_many()
        .col_expr(Column::IsHidden, Expr::value(true))
        .col_expr(
            Column::ParentConversationId,
            Expr::value(None::<ConversationId>),
        )
        .col_expr(Column::ForkedFromMessageId, Expr::value(None::<i64>))
        .filter(Column::Id.eq(id))
        .exec(tx)
        .await
        .map(drop)
}

/// Hides a space and starts the job that deletes it. Returns `None` if it does not exist.
pub async fn hide_space(db: &Db, id: SpaceId, new: NewJob) -> Result<Option<job::Model>, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            let hidden = space::Entity::update_many()
                .col_expr(space::Column::IsHidden, Expr::value(true))
                .filter(space::Column::Id.eq(id))
                .filter(space::Column::IsHidden.eq(false))
                .exec(tx)
                .await?;
            if hidden.rows_affected == 0 {
                return Ok(None);
            }
            job::cancel_branch_jobs(tx, id, new.now).await?;
            let subject = JobSubject {
                space: id,
                conversation: None,
            };
            job::insert(tx, new, subject).await.map(Some)
        })
    })
    .await
}

/// The amount of data in a space.
#[derive(Clone, Copy, Debug, Default, FromQueryResult)]
pub struct SpaceSize {
    /// Estimated from the `seq` of the newest messages.
    pub n_messages: i64,
    pub text_bytes: i64,
    pub n_conversations: i64,
}

/// Measures the amount of data in a space.
pub async fn measure_space(db: &impl ConnectionTrait, id: SpaceId) -> Result<SpaceSize, DbErr> {
    let sum = |column| Expr::cust(format!("CAST(COALESCE(SUM({column}), 0) AS bigint)"));
    let size = conversation::Entity::find()
        .select_only()
        .expr_as(sum("last_seq"), "n_messages")
        .expr_as(sum("text_bytes"), "text_bytes")
        .expr_as(Expr::cust("COUNT(*)"), "n_conversations")
        .filter(conversation::Column::SpaceId.eq(id))
        .into_model()
        .one(db)
        .await?;
    Ok(size.unwrap_or_default())
}

/// Returns the number of messages of a conversation up to this `seq`, hidden ones included.
pub async fn count_messages(
    db: &impl ConnectionTrait,
    id: ConversationId,
    up_to: i64,
) -> Result<i64, DbErr> {
    let found = message::Entity::find()
        .filter(message::Column::ConversationId.eq(id))
        .filter(message::Column::Seq.lte(up_to));
    let n = found.count(db).await?;
    Ok(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Deletes some rows of a hidden conversation: the messages up to `seq` if given, otherwise up to
/// `limit` rows of another table, finally its own row.
pub async fn delete_batch(
    tx: &impl ConnectionTrait,
    id: ConversationId,
    up_to: Option<i64>,
    limit: u64,
) -> Result<DeletedBatch, DbErr> {
    if let Some(seq) = up_to {
        let deleted = message::Entity::delete_many()
            .filter(message::Column::ConversationId.eq(id))
            .filter(message::Column::Seq.lte(seq))
            .exec(tx)
            .await?;
        let n = i64::try_from(deleted.rows_affected).unwrap_or(0);
        return Ok(DeletedBatch::Messages(n));
    }
    for (table, key, owner) in TABLES {
        let rows = Query::select()
            .column(key)
            .from(table)
            .and_where(Expr::col(owner).eq(id))
            .limit(limit)
            .to_owned();
        let delete = Query::delete()
            .from_table(table)
            .and_where(Expr::col(owner).eq(id))
            .and_where(Expr::col(key).in_subquery(rows))
            .to_owned();
        if tx.execute(&delete).await?.rows_affected() > 0 {
            return Ok(DeletedBatch::OtherRows);
        }
    }
    if let Some(row) = conversation::lock(tx, id).await? {
        conversation::delete_row(tx, &row).await?;
    }
    Ok(DeletedBatch::Everything)
}

/// Returns the newest conversation of a space that is being deleted.
pub async fn find_next_conversation(
    db: &impl ConnectionTrait,
    id: SpaceId,
) -> Result<Option<ConversationId>, DbErr> {
    let next = conversation::Entity::find()
        .select_only()
        .column(conversation::Column::Id)
        .filter(conversation::Column::SpaceId.eq(id))
        .order_by_desc(conversation::Column::Id);
    next.into_tuple().one(db).await
}

/// Deletes some memberships of a space without conversations, finally the space itself.
pub async fn delete_space_batch(
    tx: &impl ConnectionTrait,
    id: SpaceId,
    limit: u64,
) -> Result<DeletedBatch, DbErr> {
    use membership::Column;
    let rows = Query::select()
        .column(Column::Id)
        .from(membership::Entity)
        .and_where(Expr::col(Column::SpaceId).eq(id))
        .limit(limit)
        .to_owned();
    let deleted = membership::Entity::delete_many()
        .filter(Column::Id.in_subquery(rows))
        .exec(tx)
        .await?;
    if deleted.rows_affected > 0 {
        return Ok(DeletedBatch::OtherRows);
    }
    space::Entity::delete_by_id(id).exec(tx).await?;
    Ok(DeletedBatch::Everything)
}

/// Returns the conversations of a space in which something is running, queued or paused.
pub async fn list_active_conversations(
    db: &impl ConnectionTrait,
    id: SpaceId,
) -> Result<Vec<ConversationId>, DbErr> {
    let is_live = "EXISTS (SELECT 1 FROM conversation_runs r \
            WHERE r.conversation_id = conversations.id AND r.status IN ('queued', 'running')) \
        OR EXISTS (SELECT 1 FROM conversation_rounds o \
            WHERE o.conversation_id = conversations.id AND o.status = 'active')";
    let live = conversation::Entity::find()
        .select_only()
        .column(conversation::Column::Id)
        .filter(conversation::Column::SpaceId.eq(id))
        .filter(Expr::cust(is_live));
    live.into_tuple().all(db).await
}
