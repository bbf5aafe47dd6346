//! Table `api_conversation_items`: the items of an API conversation, ordered by position.

use std::collections::HashSet;

use responses_api::object_ids;
use sea_orm::ActiveValue::Set;
use sea_orm::entity::prelude::*;
use sea_orm::{Order, QueryOrder, QuerySelect, QueryTrait};
use serde_json::Value;

use crate::db::connect::Db;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "api_conversation_items")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub api_conversation_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub position: i64,
    pub item_id: String,
    #[sea_orm(column_type = "JsonBinary")]
    pub payload: Json,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Rows per INSERT statement; databases limit the parameters of one statement.
const BATCH: usize = 500;

/// Inserts items, starting at position `from`.
pub async fn insert(
    tx: &impl ConnectionTrait,
    conversation: &str,
    from: i64,
    items: &[Value],
) -> Result<(), DbErr> {
    let rows = items.iter().zip(from..).map(|(item, at)| ActiveModel {
        api_conversation_id: Set(conversation.to_owned()),
        position: Set(at),
        item_id: Set(item["id"]
            .as_str()
            .map_or_else(|| object_ids::generate(object_ids::MESSAGE), str::to_owned)),
        payload: Set(item.clone()),
    });
    let rows: Vec<ActiveModel> = rows.collect();
    for batch in rows.chunks(BATCH) {
        Entity::insert_many(batch.to_vec()).exec(tx).await?;
    }
    Ok(())
}

/// Returns all items in order.
pub async fn list_all(db: &impl ConnectionTrait, conversation: &str) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::ApiConversationId.eq(conversation))
        .order_by_asc(Column::Position)
        .all(db)
        .await
}

/// Selects a part of the items of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct ItemRange {
    /// The position before the first item, in this order.
    pub after: Option<i64>,
    /// Newest first.
    pub is_descending: bool,
    pub limit: usize,
}

/// Returns a part of the items of a conversation, in its order.
pub async fn list_range(
    db: &impl ConnectionTrait,
    conversation: &str,
    range: ItemRange,
) -> Result<Vec<Model>, DbErr> {
    let order = match range.is_descending {
        true => Order::Desc,
        false => Order::Asc,
    };
    let beyond = |position: i64| match range.is_descending {
        true => Column::Position.lt(position),
        false => Column::Position.gt(position),
    };
    Entity::find()
        .filter(Column::ApiConversationId.eq(conversation))
        .apply_if(range.after, |query, position| {
            query.filter(beyond(position))
        })
        .order_by(Column::Position, order)
        .limit(range.limit as u64)
        .all(db)
        .await
}

/// Returns which of these ids exist in the conversation.
pub async fn existing_ids(
    db: &impl ConnectionTrait,
    conversation: &str,
    ids: &[&str],
) -> Result<HashSet<String>, DbErr> {
    let mut known = HashSet::new();
    for batch in ids.chunks(BATCH) {
        let found: Vec<String> = Entity::find()
            .select_only()
            .column(Column::ItemId)
            .filter(Column::ApiConversationId.eq(conversation))
            .filter(Column::ItemId.is_in(batch.iter().copied()))
            .into_tuple()
            .all(db)
            .await?;
        known.extend(found);
    }
    Ok(known)
}

/// Finds an item by its id.
pub async fn find(
    db: &impl ConnectionTrait,
    conversation: &str,
    item: &str,
) -> Result<Option<Model>, DbErr> {
    if item.contains('\0') {
        return Ok(None); // PostgreSQL rejects NUL in text
    }
    Entity::find()
        .filter(Column::ApiConversationId.eq(conversation))
        .filter(Column::ItemId.eq(item))
        .one(db)
        .await
}

/// Deletes an item. Returns `false` if no item has this id.
pub async fn delete(db: &Db, conversation: &str, item: &str) -> Result<bool, DbErr> {
    if item.contains('\0') {
        return Ok(false);
    }
    let delete = Entity::delete_many()
        .filter(Column::ApiConversationId.eq(conversation))
        .filter(Column::ItemId.eq(item));
    let deleted = db.write(move |tx| Box::pin(async move { delete.exec(tx).await }));
    Ok(deleted.await?.rows_affected > 0)
}

/// Deletes all items of a conversation.
pub async fn delete_all(tx: &impl ConnectionTrait, conversation: &str) -> Result<(), DbErr> {
    Entity::delete_many()
        .filter(Column::ApiConversationId.eq(conversation))
        .exec(tx)
        .await
        .map(|_| ())
}
