//! Marks all conversations of a space (`conversations.needs_step`), so that the scheduler applies a
//! changed setting to them.
//!
//! **Invariant:** the marker is written in the transaction of the change, and before the row of the
//! space is locked: a step and the deletion of a conversation lock the conversation first, and its
//! space afterwards.

use base::ids::SpaceId;
use sea_orm::sea_query::{Expr, ExprTrait, LockType, Order, Query};
use sea_orm::{ConnectionTrait, DbErr, EntityTrait};

use crate::spaces::{membership, space};

/// Marks the conversations of a member's space, if runs or slots of the member may exist: before the
/// member is changed or removed.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn mark_for_member(
    tx: &impl ConnectionTrait,
    member: &membership::Model,
) -> Result<(), DbErr> {
    let space = member.space_id;
    let takes_turns = || async {
        let space = space::Entity::find_by_id(space).one(tx).await?;
        Ok::<_, DbErr>(space.is_some_and(|it| it.humans_take_turns))
    };
    match member.can_have_runs() || takes_turns().await? {
        true => mark_all(tx, space).await,
        false => Ok(()),
    }
}

/// Sets `conversations.needs_step` in every conversation of a space.
///
/// Locks the rows in the order of their ids, so that two concurrent changes cannot deadlock. A step
/// in progress commits first.
pub async fn mark_all(tx: &impl ConnectionTrait, space: SpaceId) -> Result<(), DbErr> {
    let unmarked = Query::select()
        .column("id")
        .from("conversations")
        .and_where(Expr::col("space_id").eq(space))
        .and_where(Expr::col("needs_step").eq(false))
        .order_by("id", Order::Asc)
        .lock(LockType::Update)
        .to_owned();
    let mark = Query::update()
        .table("conversations")
        .value("needs_step", true)
        .and_where(Expr::col("id").in_subquery(unmarked))
        .to_owned();
    tx.execute(&mark).await.map(|_| ())
}
