//! Table `conversation_rounds`: one row for each round (the ordered speakers that one trigger
//! activates), with its status, its slots and the current position.

use base::clock::Timestamp;
use base::ids::{ConversationId, MessageId, RoundId};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;
use sea_orm::{FromQueryResult, IntoActiveModel, QueryOrder, QuerySelect};

use crate::conversations::audience::message_audience::Audience;
use crate::db::string_enum::string_enum;
use crate::rounds::slot::{Slot, Slots};

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
    /// Who sees it and its replies; `None`: everyone.
    pub audience: Option<Audience>,
    /// Seed of the random speaker choice: the same seed selects the same speakers.
    pub seed: i64,
    pub ended_reason: Option<String>,
    /// When the turn of a person began, while the round waits for it.
    pub turn_started_at: Option<Timestamp>,
    /// When that turn is skipped; `None`: never.
    pub deadline_at: Option<Timestamp>,
    pub created_at: Timestamp,
    #[sea_orm(column_type = "JsonBinary")]
    pub slots: Slots,
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
    /// What an active round waits for: a run, the message of the person whose turn it is, someone who
    /// resumes it, or a decision after a failure.
    #[schema(as = RoundState)]
    RoundState { Generating, Waiting, Paused, Failed }
}

/// The deadline of the person's turn for which a round waits.
#[derive(Clone, Copy, Debug, FromQueryResult)]
pub struct TurnDeadline {
    pub id: RoundId,
    pub conversation_id: ConversationId,
    pub deadline_at: Timestamp,
}

/// Returns the row of a new active round whose cursor is at its first slot.
pub fn new_model(
    id: RoundId,
    conversation_id: ConversationId,
    kind: RoundKind,
    seed: i64,
    created_at: Timestamp,
    slots: Vec<Slot>,
) -> Model {
    Model {
        id,
        conversation_id,
        status: RoundStatus::Active,
        kind,
        state: RoundState::Generating,
        cursor: 0,
        trigger_message_id: None,
        audience: None,
        seed,
        ended_reason: None,
        turn_started_at: None,
        deadline_at: None,
        created_at,
        slots: Slots(slots),
    }
}

impl Model {
    /// Returns the slot at the cursor.
    pub fn current_slot(&self) -> Option<&Slot> {
        self.slots.at(self.cursor)
    }
}

/// Returns the active round of a conversation, if any.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_active(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
) -> Result<Option<Model>, DbErr> {
    Ok(list_active(db, &[conversation]).await?.pop())
}

/// Returns the active rounds of these conversations.
pub async fn list_active(
    db: &impl ConnectionTrait,
    conversations: &[ConversationId],
) -> Result<Vec<Model>, DbErr> {
    if conversations.is_empty() {
        return Ok(Vec::new());
    }
    Entity::find()
        .filter(Column::ConversationId.is_in(conversations.iter().copied()))
        // A literal, because a bound parameter does not match the partial index.
        .filter(Expr::cust("status = 'active'"))
        .all(db)
        .await
}

/// Returns the conversations and rounds that wait for a person until a known time, the earliest first.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_deadlines(
    db: &impl ConnectionTrait,
    limit: u64,
) -> Result<Vec<TurnDeadline>, DbErr> {
    Entity::find()
        .select_only()
        .columns([Column::Id, Column::ConversationId, Column::DeadlineAt])
        // Literals, so that the partial index applies.
        .filter(Expr::cust("status = 'active' AND deadline_at IS NOT NULL"))
        .order_by_asc(Column::DeadlineAt)
        .limit(limit)
        .into_model()
        .all(db)
        .await
}

/// Inserts a new round.
pub async fn insert(tx: &impl ConnectionTrait, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model())
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Writes what changes in the life of a round: its status, state, cursor, slots and current turn.
pub async fn update(tx: &impl ConnectionTrait, row: Model) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Status, Expr::value(row.status))
        .col_expr(Column::State, Expr::value(row.state))
        .col_expr(Column::Cursor, Expr::value(row.cursor))
        .col_expr(Column::EndedReason, Expr::value(row.ended_reason))
        .col_expr(Column::Slots, Expr::value(row.slots))
        .col_expr(Column::TurnStartedAt, Expr::value(row.turn_started_at))
        .col_expr(Column::DeadlineAt, Expr::value(row.deadline_at))
        .filter(Column::Id.eq(row.id))
        .exec(tx)
        .await?;
    Ok(())
}
