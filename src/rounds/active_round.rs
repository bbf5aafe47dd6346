//! The active round of a conversation with its slots.

use base::ids::ConversationId;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder};

use crate::rounds::{round, slot};

/// An active round with its slots, in order.
#[derive(Clone, Debug)]
pub struct ActiveRound {
    pub row: round::Model,
    pub slots: Vec<slot::Model>,
}

impl ActiveRound {
    /// Returns the active round of a conversation, if any.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn find(
        db: &impl ConnectionTrait,
        conversation: ConversationId,
    ) -> Result<Option<Self>, DbErr> {
        let found = round::Entity::find()
            .find_with_related(slot::Entity)
            .filter(round::Column::ConversationId.eq(conversation))
            // A literal, because a bound parameter does not match the partial index.
            .filter(Expr::cust("conversation_rounds.status = 'active'"))
            .order_by_asc(slot::Column::Position)
            .all(db)
            .await?;
        let found = found.into_iter().next();
        Ok(found.map(|(row, slots)| Self { row, slots }))
    }

    /// Returns the slot at the cursor.
    pub fn current_slot(&self) -> Option<&slot::Model> {
        self.slots.iter().find(|it| it.position == self.row.cursor)
    }
}
