//! Table `round_slots`: the speakers of a round, one row for each position.

use base::ids::{MembershipId, RoundId, SlotId};
use sea_orm::ActiveValue::NotSet;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;
use sea_orm::{IntoActiveModel, QueryOrder};

use crate::db::string_enum::string_enum;
use crate::rounds::round;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "round_slots")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: SlotId,
    pub round_id: RoundId,
    /// From 0.
    pub position: i64,
    pub space_membership_id: MembershipId,
    pub status: SlotStatus,
    pub skip_reason: Option<String>,
    pub chosen_because: String,
    /// A user forced it: its run is a `force_talk`, so that a muted member may speak.
    pub forced: bool,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "crate::rounds::round::Entity",
        from = "Column::RoundId",
        to = "crate::rounds::round::Column::Id"
    )]
    Round,
}

impl Related<round::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Round.def()
    }
}

impl Related<Entity> for round::Entity {
    fn to() -> RelationDef {
        Relation::Round.def().rev()
    }
}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// Slots before the cursor are spoken or skipped; those from the cursor on are pending.
    #[schema(as = SlotStatus)]
    SlotStatus { Pending, Spoken, Skipped }
}

/// Returns a pending slot. The database assigns its id.
pub fn new_model(
    round_id: RoundId,
    position: i64,
    speaker: MembershipId,
    chosen_because: String,
) -> Model {
    Model {
        id: SlotId(0),
        round_id,
        position,
        space_membership_id: speaker,
        status: SlotStatus::Pending,
        skip_reason: None,
        chosen_because,
        forced: false,
    }
}

/// Inserts new slots, whose ids are ignored, and returns the rows in order of position.
pub async fn insert(tx: &impl ConnectionTrait, slots: &[Model]) -> Result<Vec<Model>, DbErr> {
    let rows = slots.iter().cloned().map(|it| {
        let mut row = it.into_active_model();
        row.id = NotSet;
        row
    });
    let mut rows = Entity::insert_many(rows).exec_with_returning(tx).await?;
    rows.sort_unstable_by_key(|it| it.position);
    Ok(rows)
}

/// Replaces the slots of a round from position `from` on, and returns the new rows like [`insert`].
pub async fn replace(
    tx: &impl ConnectionTrait,
    round: RoundId,
    from: i64,
    slots: &[Model],
) -> Result<Vec<Model>, DbErr> {
    Entity::delete_many()
        .filter(Column::RoundId.eq(round))
        .filter(Column::Position.gte(from))
        .exec(tx)
        .await?;
    match slots {
        [] => Ok(Vec::new()),
        slots => insert(tx, slots).await,
    }
}

/// Returns the slots of these rounds in order of position.
pub async fn list_for_rounds(
    db: &impl ConnectionTrait,
    rounds: impl IntoIterator<Item = RoundId>,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::RoundId.is_in(rounds))
        .order_by_asc(Column::Position)
        .all(db)
        .await
}

/// Sets the status of one slot, with the reason if it was skipped.
pub async fn set_status(
    tx: &impl ConnectionTrait,
    round: RoundId,
    position: i64,
    status: SlotStatus,
    skip_reason: Option<&str>,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Status, Expr::value(status))
        .col_expr(Column::SkipReason, Expr::value(skip_reason))
        .filter(Column::RoundId.eq(round))
        .filter(Column::Position.eq(position))
        .exec(tx)
        .await?;
    Ok(())
}
