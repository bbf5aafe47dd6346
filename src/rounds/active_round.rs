//! Loads the active rounds of conversations together with their slots.

use base::ids::ConversationId;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder};

use crate::rounds::{round, slot};

/// An active round with its slots, in order.
#[derive(Clone, Debug, PartialEq)]
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
        Ok(Self::list(db, &[conversation]).await?.pop())
    }

    /// Returns the active rounds of these conversations.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn list(
        db: &impl ConnectionTrait,
        conversations: &[ConversationId],
    ) -> Result<Vec<Self>, DbErr> {
        if conversations.is_empty() {
            return Ok(Vec::new());
        }
        let found = round::Entity::find()
            .find_with_related(slot::Entity)
            .filter(round::Column::ConversationId.is_in(conversations.iter().copied()))
            // A literal, because a bound parameter does not match the partial index.
            .filter(Expr::cust("conversation_rounds.status = 'active'"))
            .order_by_asc(slot::Column::Position)
            .all(db)
            .await?;
        let found = found.into_iter();
        Ok(found.map(|(row, slots)| Self { row, slots }).collect())
    }

    /// Returns the slot at the cursor.
    pub fn current_slot(&self) -> Option<&slot::Model> {
        self.slots.iter().find(|it| it.position == self.row.cursor)
    }
}
