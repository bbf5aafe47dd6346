//! Table `message_revisions`: the texts of messages that people have replaced by edits.
//!
//! **Invariant:** a replaced text is stored in the transaction of the edit, so of two people who edit
//! one message neither loses a text. A message has at most [`MAX_REVISIONS`]; the oldest are deleted.
//! The rows are deleted with their message, and a branch starts without them.

use base::clock::Timestamp;
use base::ids::{MembershipId, MessageId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::entity::prelude::*;
use sea_orm::{QueryOrder, QuerySelect};
use serde::Serialize;
use utoipa::ToSchema;

use crate::conversations::message;

/// The maximum number of replaced texts of a message; more edits than a person makes of one text.
pub const MAX_REVISIONS: u64 = 20;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "message_revisions")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub message_id: MessageId,
    /// The version of the message that had this text.
    pub version: i64,
    pub content: String,
    pub replaced_at: Timestamp,
    /// The membership that replaced it; `None` for an admin without one.
    pub replaced_by: Option<MembershipId>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// A text that an edit replaced.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MessageRevision)]
pub struct RevisionView {
    /// The version of the message that had this text.
    pub version: i64,
    pub content: String,
    pub replaced_at: Timestamp,
    /// The membership that replaced it; null for an admin without one.
    pub replaced_by: Option<MembershipId>,
}

impl From<Model> for RevisionView {
    fn from(row: Model) -> Self {
        Self {
            version: row.version,
            content: row.content,
            replaced_at: row.replaced_at,
            replaced_by: row.replaced_by,
        }
    }
}

/// Stores the text that a message shows as a revision, before this membership replaces it. Returns by
/// how many bytes the stored texts grew.
pub async fn store(
    tx: &impl ConnectionTrait,
    message: &message::Model,
    (by, now): (Option<MembershipId>, Timestamp),
) -> Result<i64, DbErr> {
    let row = ActiveModel {
        id: NotSet,
        message_id: Set(message.id),
        version: Set(message.version),
        content: Set(message.content.clone()),
        replaced_at: Set(now),
        replaced_by: Set(by),
    };
    Entity::insert(row).exec_without_returning(tx).await?;
    let excess = Entity::find()
        .filter(Column::MessageId.eq(message.id))
        .order_by_desc(Column::Version)
        .offset(MAX_REVISIONS)
        .limit(MAX_REVISIONS)
        .all(tx)
        .await?;
    if !excess.is_empty() {
        Entity::delete_many()
            .filter(Column::Id.is_in(excess.iter().map(|it| it.id)))
            .exec(tx)
            .await?;
    }
    let deleted: usize = excess.iter().map(|it| it.content.len()).sum();
    Ok(n_bytes(message.content.len()) - n_bytes(deleted))
}

/// Returns the replaced texts of a message before a version, the newest first.
pub async fn list_before(
    db: &impl ConnectionTrait,
    message: MessageId,
    version: i64,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::MessageId.eq(message))
        .filter(Column::Version.lt(version))
        .order_by_desc(Column::Version)
        .limit(MAX_REVISIONS)
        .all(db)
        .await
}

/// Converts a length to the type of the database.
fn n_bytes(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
