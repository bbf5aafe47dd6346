//! Table `message_reactions`: which members reacted to a message, and with which emoji.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{MembershipId, MessageId};
use sea_orm::entity::prelude::*;
use sea_orm::{IntoActiveModel, QueryOrder};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The maximum number of different emoji of a message.
pub const MAX_EMOJI: usize = 20;
/// Rows in one statement: PostgreSQL allows 65,535 values.
const MAX_ROWS: usize = 1_000;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "message_reactions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub message_id: MessageId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub space_membership_id: MembershipId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub emoji: String,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// An emoji, and the members who reacted with it, the first one first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Reaction)]
pub struct ReactionView {
    pub emoji: String,
    pub membership_ids: Vec<MembershipId>,
}

/// Returns the reactions of these messages with one query. The emoji of a message are in the order in
/// which they were first used.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn load(
    db: &impl ConnectionTrait,
    messages: impl IntoIterator<Item = MessageId>,
) -> Result<HashMap<MessageId, Vec<ReactionView>>, DbErr> {
    let messages: Vec<MessageId> = messages.into_iter().collect();
    if messages.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = Entity::find()
        .filter(Column::MessageId.is_in(messages))
        .order_by_asc(Column::CreatedAt)
        .order_by_asc(Column::SpaceMembershipId)
        .order_by_asc(Column::Emoji)
        .all(db)
        .await?;
    let mut found: HashMap<MessageId, Vec<ReactionView>> = HashMap::new();
    for row in rows {
        let of_message = found.entry(row.message_id).or_default();
        match of_message.iter_mut().find(|it| it.emoji == row.emoji) {
            Some(known) => known.membership_ids.push(row.space_membership_id),
            None => of_message.push(ReactionView {
                emoji: row.emoji,
                membership_ids: vec![row.space_membership_id],
            }),
        }
    }
    Ok(found)
}

/// Adds a reaction that does not exist.
///
/// # Errors
/// Returns the database error if the statement fails.
pub async fn insert(tx: &impl ConnectionTrait, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model().reset_all())
        .exec_without_returning(tx)
        .await
        .map(drop)
}

/// Adds the reactions of imported messages, which have none.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn insert_all(tx: &impl ConnectionTrait, rows: Vec<Model>) -> Result<(), DbErr> {
    let rows = rows
        .into_iter()
        .map(|it| it.into_active_model().reset_all());
    let rows: Vec<ActiveModel> = rows.collect();
    for part in rows.chunks(MAX_ROWS) {
        Entity::insert_many(part.iter().cloned())
            .exec_without_returning(tx)
            .await?;
    }
    Ok(())
}

/// Removes a reaction.
///
/// # Errors
/// Returns the database error if the statement fails.
pub async fn delete(
    tx: &impl ConnectionTrait,
    (message, membership, emoji): (MessageId, MembershipId, &str),
) -> Result<(), DbErr> {
    Entity::delete_many()
        .filter(Column::MessageId.eq(message))
        .filter(Column::SpaceMembershipId.eq(membership))
        .filter(Column::Emoji.eq(emoji))
        .exec(tx)
        .await
        .map(drop)
}
