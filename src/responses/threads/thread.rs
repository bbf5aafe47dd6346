//! Table `threads`: lists of messages that clients create under `/v1` and that runs extend. They are
//! unrelated to the conversations of spaces.

use base::clock::Timestamp;
use base::ids::UserId;
use responses_api::threads::thread_object::ThreadObject;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{IntoActiveModel, UpdateMany};
use serde_json::json;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "threads")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub user_id: UserId,
    /// Written by the caller; never interpreted by the server.
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
    /// The `seq` of the next message.
    pub next_seq: i64,
    pub created_at: Timestamp,
    /// The last change of the thread or its messages; the retention time counts from it.
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// Returns the object of the API.
    pub fn view(&self) -> ThreadObject {
        ThreadObject::new(self.id.clone(), self.created_at, self.metadata.clone())
    }
}

/// Finds a thread of this user. Returns `None` for foreign, unknown and deleted ones alike.
pub async fn find_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    id: &str,
) -> Result<Option<Model>, DbErr> {
    if id.contains('\0') {
        return Ok(None); // PostgreSQL rejects NUL in text
    }
    Entity::find_by_id(id)
        .filter(Column::UserId.eq(user))
        .filter(Column::DeletedAt.is_null())
        .one(db)
        .await
}

/// Inserts a new thread.
pub async fn insert(tx: &impl ConnectionTrait, row: Model) -> Result<(), DbErr> {
    row.into_active_model().insert(tx).await.map(drop)
}

/// Records a change of a thread that adds this many messages, and returns the `seq` of the first of
/// them. Locks the row until the end of the transaction, so that changes of a thread and its runs
/// are made one after the other. Returns `None` if the thread was deleted in the meantime.
pub async fn reserve_seqs(
    tx: &impl ConnectionTrait,
    id: &str,
    n_messages: usize,
    now: Timestamp,
) -> Result<Option<i64>, DbErr> {
    let n_messages = i64::try_from(n_messages).unwrap_or(i64::MAX);
    let updated = not_deleted(id)
        .col_expr(Column::NextSeq, Expr::col(Column::NextSeq).add(n_messages))
        .col_expr(Column::UpdatedAt, Expr::value(now))
        .exec_with_returning(tx)
        .await?;
    Ok(updated.first().map(|it| it.next_seq - n_messages))
}

/// Replaces the metadata. Returns the thread, or `None` if it was deleted in the meantime.
pub async fn set_metadata(
    tx: &impl ConnectionTrait,
    id: &str,
    metadata: Json,
    now: Timestamp,
) -> Result<Option<Model>, DbErr> {
    let mut updated = not_deleted(id)
        .col_expr(Column::Metadata, Expr::value(metadata))
        .col_expr(Column::UpdatedAt, Expr::value(now))
        .exec_with_returning(tx)
        .await?;
    Ok(updated.pop())
}

/// Marks a thread as deleted and removes its metadata; `thread_retention` deletes its rows. Returns
/// `false` if it was already deleted.
pub async fn mark_deleted(
    tx: &impl ConnectionTrait,
    id: &str,
    now: Timestamp,
) -> Result<bool, DbErr> {
    let res = not_deleted(id)
        .col_expr(Column::DeletedAt, Expr::value(now))
        .col_expr(Column::Metadata, Expr::value(json!({})))
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

fn not_deleted(id: &str) -> UpdateMany<Entity> {
    Entity::update_many()
        .filter(Column::Id.eq(id))
        .filter(Column::DeletedAt.is_null())
}
