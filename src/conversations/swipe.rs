//! Table `message_swipes`: alternative texts of a message.
//!
//! A message that never had an alternative has no row here; its only text is its content.
//! **Invariant:** the row at a message's `active_swipe` and the message's content are one text.

use crate::ids::MessageId;
use crate::ids::RunId;
use crate::ids::SwipeId;
use sea_orm::ActiveValue::NotSet;
use sea_orm::ActiveValue::Set;
use sea_orm::QuerySelect;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "message_swipes")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: SwipeId,
    pub message_id: MessageId,
    pub position: i64,
    pub content: String,
    pub conversation_run_id: Option<RunId>,
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// How many texts each of these messages has; a message with one text is not in the answer.
pub async fn counts(
    db: &impl ConnectionTrait,
    messages: &[MessageId],
) -> Result<HashMap<MessageId, i64>, DbErr> {
    let rows: Vec<(MessageId, i64)> = Entity::find()
        .filter(Column::MessageId.is_in(messages.iter().copied()))
        .select_only()
        .column(Column::MessageId)
        .column_as(Column::Id.count(), "count")
        .group_by(Column::MessageId)
        .into_tuple()
        .all(db)
        .await?;
    Ok(rows.into_iter().collect())
}

/// Replaces the text that is shown of a message that has several.
pub async fn rewrite(
    tx: &impl ConnectionTrait,
    message: MessageId,
    position: i64,
    content: &str,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Content, Expr::value(content))
        .filter(Column::MessageId.eq(message))
        .filter(Column::Position.eq(position))
        .exec(tx)
        .await
        .map(|_| ())
}

/// Stores every text of a message that has several, the shown one first; says how many.
pub async fn append_all(
    tx: &impl ConnectionTrait,
    message: MessageId,
    texts: Vec<String>,
) -> Result<i64, DbErr> {
    if texts.is_empty() {
        return Ok(0);
    }
    let rows: Vec<ActiveModel> = (0..)
        .zip(texts)
        .map(|(position, content)| ActiveModel {
            id: NotSet,
            message_id: Set(message),
            position: Set(position),
            content: Set(content),
            conversation_run_id: Set(None),
            metadata: Set(serde_json::json!({})),
        })
        .collect();
    let n_swipes = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    Entity::insert_many(rows).exec_without_returning(tx).await?;
    Ok(n_swipes)
}
