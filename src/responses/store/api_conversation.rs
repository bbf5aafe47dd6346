//! Table `api_conversations`: conversations that clients create under `/v1`, lists of items that
//! responses read and extend. They are unrelated to the conversations of spaces.

use base::clock::Timestamp;
use base::ids::UserId;
use responses_api::object_ids;
use responses_api::objects::Conversation;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{IntoActiveModel, Order, QueryOrder, QuerySelect, QueryTrait};
use serde_json::{Value, json};

use crate::db::connect::Db;
use crate::responses::store::idempotency_key::IdempotencyClaim;
use crate::responses::store::{api_conversation_item, idempotency_key, item};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "api_conversations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub user_id: UserId,
    /// Written by the caller; never interpreted by us.
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
    pub next_position: i64,
    pub created_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    /// Returns the conversation object of the API.
    pub fn view(&self) -> Conversation {
        Conversation::new(self.id.clone(), self.created_at, self.metadata.clone())
    }
}

/// Finds a conversation of this user. Returns `None` for foreign, unknown and deleted ones alike.
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

/// Selects a part of the conversations of a user.
#[derive(Clone, Debug)]
pub struct ConversationRange {
    /// The conversation before the first one, in this order.
    pub after: Option<String>,
    /// Newest first.
    pub is_descending: bool,
    pub limit: usize,
}

/// Returns a part of the conversations of a user, in the order of their ids, which is that of their
/// creation.
pub async fn list_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    range: ConversationRange,
) -> Result<Vec<Model>, DbErr> {
    let order = match range.is_descending {
        true => Order::Desc,
        false => Order::Asc,
    };
    let beyond = |id: String| match range.is_descending {
        true => Column::Id.lt(id),
        false => Column::Id.gt(id),
    };
    Entity::find()
        .filter(Column::UserId.eq(user))
        .filter(Column::DeletedAt.is_null())
        .apply_if(range.after, |query, id| query.filter(beyond(id)))
        .order_by(Column::Id, order)
        .limit(range.limit as u64)
        .all(db)
        .await
}

/// Creates a conversation of a user with its first items, and stores the key of the request. Returns `None`
/// if the key is in use.
pub async fn create(
    db: &Db,
    user: UserId,
    (metadata, items): (Value, Vec<Value>),
    claim: Option<IdempotencyClaim>,
    now: Timestamp,
) -> Result<Option<Model>, DbErr> {
    let row = Model {
        id: object_ids::generate(object_ids::CONVERSATION),
        user_id: user,
        metadata,
        next_position: 0,
        created_at: now,
        deleted_at: None,
    };
    db.write(move |tx| {
        Box::pin(async move {
            if let Some(claim) = claim
                && !idempotency_key::insert(tx, &claim, &row.id, now).await?
            {
                return Ok(None);
            }
            row.clone().into_active_model().insert(tx).await?;
            append_in_transaction(tx, &row.id, items).await?;
            Ok(Some(row))
        })
    })
    .await
}

/// Appends items and returns them as stored: an item whose id already exists gets a new one.
/// Returns `None` if the conversation was deleted in the meantime.
pub async fn append(db: &Db, id: String, items: Vec<Value>) -> Result<Option<Vec<Value>>, DbErr> {
    db.write(move |tx| Box::pin(async move { append_in_transaction(tx, &id, items).await }))
        .await
}

/// Does the same as [`append`] inside of a transaction.
pub async fn append_in_transaction(
    tx: &impl ConnectionTrait,
    id: &str,
    mut items: Vec<Value>,
) -> Result<Option<Vec<Value>>, DbErr> {
    let n_items = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let updated = Entity::update_many()
        .col_expr(
            Column::NextPosition,
            Expr::col(Column::NextPosition).add(n_items),
        )
        .filter(Column::Id.eq(id))
        .filter(Column::DeletedAt.is_null())
        .exec_with_returning(tx)
        .await?;
    let Some(grown) = updated.first() else {
        return Ok(None);
    };
    // The update above locks the row, so no concurrent append can happen.
    let ids: Vec<&str> = items.iter().filter_map(|it| it["id"].as_str()).collect();
    let known = api_conversation_item::existing_ids(tx, id, &ids).await?;
    item::make_ids_unique(&mut items, known);
    api_conversation_item::insert(tx, id, grown.next_position - n_items, &items).await?;
    Ok(Some(items))
}

/// Replaces the metadata.
pub async fn set_metadata(db: &Db, id: String, metadata: Value) -> Result<(), DbErr> {
    let update = Entity::update_many()
        .col_expr(Column::Metadata, Expr::value(metadata))
        .filter(Column::Id.eq(id));
    db.write(move |tx| Box::pin(async move { update.exec(tx).await }))
        .await
        .map(drop)
}

/// Marks a conversation as deleted and removes its items and metadata.
pub async fn delete(db: &Db, id: String, now: Timestamp) -> Result<(), DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            Entity::update_many()
                .col_expr(Column::DeletedAt, Expr::value(now))
                .col_expr(Column::Metadata, Expr::value(json!({})))
                .filter(Column::Id.eq(&id))
                .exec(tx)
                .await?;
            api_conversation_item::delete_all(tx, &id).await
        })
    })
    .await
}
