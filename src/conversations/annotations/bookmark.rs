//! Table `bookmarks`: the messages that a user has marked. No other user sees them.

use base::clock::Timestamp;
use base::ids::{ConversationId, MessageId, UserId};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{OnConflict, Query, SelectStatement};
use sea_orm::{IntoActiveModel, PaginatorTrait};

use crate::conversations::message;
use crate::db::connect::Db;

/// The maximum number of bookmarks of a user in one conversation.
pub const MAX_BOOKMARKS: u64 = 500;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "bookmarks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub user_id: UserId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub message_id: MessageId,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Selects the ids of the messages that a user has marked.
pub fn select_messages(user: UserId) -> SelectStatement {
    Query::select()
        .column(Column::MessageId)
        .from(Entity)
        .and_where(Column::UserId.eq(user))
        .to_owned()
}

/// Marks a message. Returns whether it is marked now; `false` if the user has marked the maximum number of
/// messages of the conversation.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn add(db: &Db, conversation: ConversationId, row: Model) -> Result<bool, DbErr> {
    db.write(move |tx| Box::pin(async move { insert(tx, conversation, row).await }))
        .await
}

async fn insert(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    row: Model,
) -> Result<bool, DbErr> {
    let of_conversation = message::Entity::find()
        .filter(message::Column::ConversationId.eq(conversation))
        .filter(message::Column::Id.in_subquery(select_messages(row.user_id)));
    if of_conversation.count(tx).await? >= MAX_BOOKMARKS {
        let key = (row.user_id, row.message_id);
        return Ok(Entity::find_by_id(key).one(tx).await?.is_some());
    }
    let known = OnConflict::columns([Column::UserId, Column::MessageId])
        .do_nothing()
        .to_owned();
    Entity::insert(row.into_active_model().reset_all())
        .on_conflict(known)
        .exec_without_returning(tx)
        .await?;
    Ok(true)
}

/// Removes the mark of a message, if there is one.
///
/// # Errors
/// Returns the database error if the statement fails.
pub async fn remove(db: &Db, user: UserId, message: MessageId) -> Result<(), DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            let delete = Entity::delete_by_id((user, message));
            delete.exec(tx).await.map(drop)
        })
    })
    .await
}
