//! Table `attachments`: the pictures of messages. The bytes are assets, each stored once.
//!
//! **Invariant:** an attachment without a message belongs to its owner alone; it is posted once, with
//! one message.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{AssetId, AttachmentId, MessageId, UserId};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{CaseStatement, Expr, LockType};
use sea_orm::{IntoActiveModel, QueryOrder, QuerySelect};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The maximum number of pictures of a message.
pub const MAX_PER_MESSAGE: usize = 4;
/// The maximum length of a description, in characters.
pub const MAX_ALT_CHARS: usize = 1_000;
/// Rows in one statement: PostgreSQL allows 65,535 values.
const MAX_ROWS: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "attachments")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: AttachmentId,
    /// The user who uploaded it, whose quota it uses.
    pub owner_id: UserId,
    /// `None` until it is posted.
    pub message_id: Option<MessageId>,
    /// Its position among the pictures of the message, from 0.
    pub position: i64,
    pub asset_id: AssetId,
    pub thumbnail_asset_id: AssetId,
    pub file_name: Option<String>,
    /// What it shows; empty if nobody described it.
    pub alt: String,
    pub width: i64,
    pub height: i64,
    pub media_type: String,
    /// The size of `asset_id`.
    pub bytes: i64,
    pub created_at: Timestamp,
    /// When its message was deleted for everyone.
    pub hidden_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// A picture of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Attachment)]
pub struct AttachmentView {
    pub id: AttachmentId,
    pub file_name: Option<String>,
    /// What it shows; empty if nobody described it.
    pub alt: String,
    /// In pixels.
    pub width: i64,
    /// In pixels.
    pub height: i64,
    pub media_type: String,
    pub bytes: i64,
    /// Its address in full size: at most 2,048 pixels.
    pub url: String,
    /// Its address in a size for lists: at most 640 pixels.
    pub thumbnail_url: String,
    pub created_at: Timestamp,
}

impl Model {
    /// Returns the document of the attachment.
    pub fn view(&self) -> AttachmentView {
        let address = format!("/api/attachments/{}?size=", self.id);
        AttachmentView {
            id: self.id,
            file_name: self.file_name.clone(),
            alt: self.alt.clone(),
            width: self.width,
            height: self.height,
            media_type: self.media_type.clone(),
            bytes: self.bytes,
            url: format!("{address}full"),
            thumbnail_url: format!("{address}thumbnail"),
            created_at: self.created_at,
        }
    }
}

/// Returns an attachment. The caller checks the access to it.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn find(db: &impl ConnectionTrait, id: AttachmentId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).one(db).await
}

/// Returns the attachments of these messages with one query, in their order.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn load(
    db: &impl ConnectionTrait,
    messages: impl IntoIterator<Item = MessageId>,
) -> Result<HashMap<MessageId, Vec<Model>>, DbErr> {
    let messages: Vec<MessageId> = messages.into_iter().collect();
    if messages.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = Entity::find()
        .filter(Column::MessageId.is_in(messages))
        .order_by_asc(Column::MessageId)
        .order_by_asc(Column::Position)
        .all(db)
        .await?;
    let mut found: HashMap<MessageId, Vec<Model>> = HashMap::new();
    for row in rows {
        if let Some(message) = row.message_id {
            found.entry(message).or_default().push(row);
        }
    }
    Ok(found)
}

/// Returns those of these attachments that exist, posted or not.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn list(db: &impl ConnectionTrait, ids: &[AttachmentId]) -> Result<Vec<Model>, DbErr> {
    let found = Entity::find().filter(Column::Id.is_in(ids.iter().copied()));
    found.all(db).await
}

/// Locks these attachments if they are the owner's and were not posted yet; returns whether all are.
/// Of two posts that name the same one, the second waits and then finds it posted.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn lock_unposted(
    tx: &impl ConnectionTrait,
    owner: UserId,
    ids: &[AttachmentId],
) -> Result<bool, DbErr> {
    let locked: Vec<AttachmentId> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::Id.is_in(ids.iter().copied()))
        .filter(Column::OwnerId.eq(owner))
        .filter(Column::MessageId.is_null())
        // Always in the same order, so that two posts cannot wait for each other.
        .order_by_asc(Column::Id)
        .lock(LockType::Update)
        .into_tuple()
        .all(tx)
        .await?;
    Ok(locked.len() == ids.len())
}

/// Adds attachments, locked by [`lock_unposted`], to a new message in this order.
///
/// # Errors
/// Returns the database error if the statement fails.
pub async fn post(
    tx: &impl ConnectionTrait,
    message: MessageId,
    ids: &[AttachmentId],
) -> Result<(), DbErr> {
    let mut position = CaseStatement::new();
    for (at, id) in (0_i64..).zip(ids) {
        position = position.case(Column::Id.eq(*id), at);
    }
    Entity::update_many()
        .col_expr(Column::MessageId, Expr::value(message))
        .col_expr(Column::Position, position.finally(0_i64).into())
        .filter(Column::Id.is_in(ids.iter().copied()))
        .exec(tx)
        .await
        .map(drop)
}

/// Records that the message of these attachments was deleted for everyone, or restored.
///
/// # Errors
/// Returns the database error if the statement fails.
pub async fn set_hidden(
    tx: &impl ConnectionTrait,
    message: MessageId,
    hidden_at: Option<Timestamp>,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::HiddenAt, Expr::value(hidden_at))
        .filter(Column::MessageId.eq(message))
        .exec(tx)
        .await
        .map(drop)
}

/// Sets the description of an attachment.
///
/// # Errors
/// Returns the database error if the statement fails.
pub async fn set_alt(
    tx: &impl ConnectionTrait,
    id: AttachmentId,
    alt: String,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Alt, Expr::value(alt))
        .filter(Column::Id.eq(id))
        .exec(tx)
        .await
        .map(drop)
}

/// Deletes an attachment. Garbage collection deletes its bytes if nothing else shows them.
///
/// # Errors
/// Returns the database error if the statement fails.
pub async fn delete(tx: &impl ConnectionTrait, id: AttachmentId) -> Result<(), DbErr> {
    Entity::delete_by_id(id).exec(tx).await.map(drop)
}

/// Deletes an attachment of this owner that was not posted; returns whether there was one.
///
/// # Errors
/// Returns the database error if the statement fails.
pub async fn delete_unposted(
    tx: &impl ConnectionTrait,
    owner: UserId,
    id: AttachmentId,
) -> Result<bool, DbErr> {
    let deleted = Entity::delete_many()
        .filter(Column::Id.eq(id))
        .filter(Column::OwnerId.eq(owner))
        .filter(Column::MessageId.is_null());
    Ok(deleted.exec(tx).await?.rows_affected == 1)
}

/// Adds the attachments of imported messages, which have none. Their ids are assigned by the database.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn insert_all(tx: &impl ConnectionTrait, rows: Vec<Model>) -> Result<(), DbErr> {
    let rows = rows.into_iter().map(|it| ActiveModel {
        id: sea_orm::ActiveValue::NotSet,
        ..it.into_active_model().reset_all()
    });
    let rows: Vec<ActiveModel> = rows.collect();
    for part in rows.chunks(MAX_ROWS) {
        Entity::insert_many(part.iter().cloned())
            .exec_without_returning(tx)
            .await?;
    }
    Ok(())
}
