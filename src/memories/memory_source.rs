//! Table `memory_sources`: the messages from which each memory was made. If the same was said in several
//! conversations, one memory has the messages of all of them ([`other_sources`](super::other_sources)).

use base::ids::{MemoryId, MessageId};
use sea_orm::ActiveValue::Set;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query, SelectStatement};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "memory_sources")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub memory_id: MemoryId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub message_id: MessageId,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Selects the ids of the memories that were made from this message.
pub fn made_from(message: MessageId) -> SelectStatement {
    Query::select()
        .column(Column::MemoryId)
        .from(Entity)
        .and_where(Expr::col(Column::MessageId).eq(message))
        .to_owned()
}

/// Adds messages to the sources of a memory.
pub(super) async fn insert(
    tx: &impl ConnectionTrait,
    memory: MemoryId,
    messages: Vec<MessageId>,
) -> Result<(), DbErr> {
    if messages.is_empty() {
        return Ok(());
    }
    let rows = messages.into_iter().map(|message| ActiveModel {
        memory_id: Set(memory),
        message_id: Set(message),
    });
    Entity::insert_many(rows)
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .exec_without_returning(tx)
        .await
        .map(drop)
}
