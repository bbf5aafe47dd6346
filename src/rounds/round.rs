//! Table `conversation_rounds`: one row for each round (the ordered speakers that one trigger
//! activates), with its status and current position.

use base::clock::Timestamp;
use base::ids::{ConversationId, MessageId, RoundId};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;

use crate::db::string_enum::string_enum;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "conversation_rounds")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: RoundId,
    pub conversation_id: ConversationId,
    pub status: RoundStatus,
    pub kind: RoundKind,
    /// Valid only while the round is active.
    pub state: RoundState,
    /// The position of the current slot, from 0.
    pub cursor: i64,
    pub trigger_message_id: Option<MessageId>,
    /// Seed of the random speaker choice: the same seed selects the same speakers.
    pub seed: i64,
    pub ended_reason: Option<String>,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// Whether a round is active, and how it ended.
    #[schema(as = RoundStatus)]
    RoundStatus { Active, Finished, Superseded, Canceled }
    /// Whether a user message or auto mode started the round; determines the kind of its runs.
    #[schema(as = RoundKind)]
    RoundKind { UserTurn, AutoMode }
    /// What an active round waits for: a run, a user, or a user's decision after a failure.
    #[schema(as = RoundState)]
    RoundState { Generating, Paused, Failed }
}

/// Returns the row of a new active round whose cursor is at its first slot.
pub fn new_model(
    id: RoundId,
    conversation_id: ConversationId,
    kind: RoundKind,
    seed: i64,
    created_at: Timestamp,
) -> Model {
    Model {
        id,
        conversation_id,
        status: RoundStatus::Active,
        kind,
        state: RoundState::Generating,
        cursor: 0,
        trigger_message_id: None,
        seed,
        ended_reason: None,
        created_at,
    }
}

/// Returns the active rounds of these conversations.
pub async fn list_active(
    db: &impl ConnectionTrait,
    conversations: &[ConversationId],
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::ConversationId.is_in(conversations.iter().copied()))
        // A literal, because a bound parameter does not match the partial index.
        .filter(Expr::cust("status = 'active'"))
        .all(db)
        .await
}

/// Ends a round with this status and reason.
pub async fn end_round(
    tx: &impl ConnectionTrait,
    id: RoundId,
    status: RoundStatus,
    reason: &str,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Status, Expr::value(status))
        .col_expr(Column::EndedReason, Expr::value(reason))
        .filter(Column::Id.eq(id))
        .exec(tx)
        .await?;
    Ok(())
}

/// Sets the state and the cursor of a round.
pub async fn update_progress(
    tx: &impl ConnectionTrait,
    id: RoundId,
    state: RoundState,
    cursor: i64,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::State, Expr::value(state))
        .col_expr(Column::Cursor, Expr::value(cursor))
        .filter(Column::Id.eq(id))
        .exec(tx)
        .await?;
    Ok(())
}
