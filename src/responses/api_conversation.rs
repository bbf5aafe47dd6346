//! Table `api_conversations`: a log of items that responses read and add to. Not a room.

use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait};
use serde_json::{Value, json};

use crate::clock::Timestamp;
use crate::ids::UserId;
use crate::responses::{api_conversation_item, item};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "api_conversations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub user_id: UserId,
    /// The caller's own; never read by us.
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
    /// What its owner is shown.
    pub fn view(&self) -> Value {
        json!({
            "id": self.id,
            "object": "conversation",
            "created_at": self.created_at.0.div_euclid(1_000),
            "metadata": self.metadata,
        })
    }
}

/// A conversation that this user may see. Foreign, unknown and deleted are the same.
pub async fn find_for_user(
    db: &impl ConnectionTrait,
    user: UserId,
    id: &str,
) -> Result<Option<Model>, DbErr> {
    if id.contains('\0') {
        return Ok(None); // PostgreSQL takes it in no text
    }
    Entity::find_by_id(id)
        .filter(Column::UserId.eq(user))
        .filter(Column::DeletedAt.is_null())
        .one(db)
        .await
}

/// Adds items to the end, and answers them as they were added: one whose id is there already gets
/// another. `None`: the conversation has been deleted meanwhile.
pub async fn append(
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
    // Held by the update: nobody adds anything beside us.
    let ids: Vec<&str> = items.iter().filter_map(|it| it["id"].as_str()).collect();
    let known = api_conversation_item::existing_ids(tx, id, &ids).await?;
    item::make_ids_unique(&mut items, known);
    api_conversation_item::insert(tx, id, grown.next_position - n_items, &items).await?;
    Ok(Some(items))
}

/// Replaces what its owner noted on it.
pub async fn set_metadata(
    tx: &impl ConnectionTrait,
    id: &str,
    metadata: Value,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Metadata, Expr::value(metadata))
        .filter(Column::Id.eq(id))
        .exec(tx)
        .await
        .map(|_| ())
}

/// Hides it, and forgets its items and what was noted on it.
pub async fn delete(tx: &impl ConnectionTrait, id: &str, now: Timestamp) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::DeletedAt, Expr::value(now))
        .col_expr(Column::Metadata, Expr::value(json!({})))
        .filter(Column::Id.eq(id))
        .exec(tx)
        .await?;
    api_conversation_item::delete_all(tx, id).await
}
