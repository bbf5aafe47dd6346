//! Table `memory_sources`: the messages from which each memory was made.

use base::ids::{MemoryId, MessageId};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};

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
