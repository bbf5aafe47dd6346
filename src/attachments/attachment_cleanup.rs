//! Deletes attachments that were never posted, and those of messages that were deleted for everyone
//! long ago. Their bytes are then unused assets.

use base::clock::Timestamp;
use base::ids::AttachmentId;
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder,
    QuerySelect,
};

use crate::attachments::attachment::{Column, Entity};
use crate::db::connect::Db;

/// How long an attachment may wait to be posted, in ms.
pub const UNPOSTED_GRACE_MS: i64 = 24 * 60 * 60 * 1000;
/// How long the attachments of a deleted message are kept, so that it can be restored, in ms.
pub const HIDDEN_RETENTION_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Rows per transaction; small, so that other writers do not wait long.
const BATCH_SIZE: u64 = 50;

/// Deletes what is due at this time, and returns how many attachments that were.
///
/// # Errors
/// Returns the database error if a query fails; what earlier transactions deleted stays deleted.
pub async fn delete_due(db: &Db, now: Timestamp) -> Result<u64, DbErr> {
    let mut n_deleted = 0;
    loop {
        let found: Vec<AttachmentId> = Entity::find()
            .select_only()
            .column(Column::Id)
            .filter(is_due(now))
            .limit(BATCH_SIZE)
            .into_tuple()
            .all(db.reader())
            .await?;
        if found.is_empty() {
            return Ok(n_deleted);
        }
        let deleted = db
            .write(move |tx| Box::pin(async move { delete(tx, found, now).await }))
            .await;
        let deleted: u64 = deleted?;
        n_deleted += deleted;
        if deleted == 0 {
            return Ok(n_deleted); // another node deletes the same rows
        }
    }
}

/// Locks the rows before it checks them again: a concurrent post, or the restoration of a message,
/// commits first.
async fn delete(
    tx: &impl ConnectionTrait,
    found: Vec<AttachmentId>,
    now: Timestamp,
) -> Result<u64, DbErr> {
    let locked: Vec<AttachmentId> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::Id.is_in(found))
        .order_by_asc(Column::Id)
        .lock(LockType::Update)
        .into_tuple()
        .all(tx)
        .await?;
    let due = Entity::delete_many()
        .filter(Column::Id.is_in(locked))
        .filter(is_due(now));
    Ok(due.exec(tx).await?.rows_affected)
}

fn is_due(now: Timestamp) -> Condition {
    // Literals, so that the partial indexes apply.
    let unposted = Condition::all()
        .add(Expr::cust("attachments.message_id IS NULL"))
        .add(Column::CreatedAt.lt(now.plus_ms(-UNPOSTED_GRACE_MS)));
    let hidden = Condition::all()
        .add(Expr::cust("attachments.hidden_at IS NOT NULL"))
        .add(Column::HiddenAt.lt(now.plus_ms(-HIDDEN_RETENTION_MS)));
    Condition::any().add(unposted).add(hidden)
}
