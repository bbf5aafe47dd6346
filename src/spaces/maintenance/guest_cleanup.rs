//! Deletes the memberships of guests who left without having written, and guest accounts with
//! neither a session nor a membership.
//!
//! **Invariant:** a membership is deleted only under the lock of its space, while its status is
//! removed and no message or run refers to it: history keeps every author. A guest account is
//! deleted only without a session and without a membership.

use base::clock::Timestamp;
use base::ids::{MembershipId, SpaceId, UserId};
use sea_orm::sea_query::{Expr, ExprTrait, LockType, Query, SimpleExpr};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait,
};

use crate::accounts::{session, user};
use crate::db::connect::Db;
use crate::spaces::membership::{Column, Entity, MembershipRole, MembershipStatus, Model};
use crate::spaces::{membership, space};

/// Maximum number of rows deleted in one transaction.
const BATCH_SIZE: u64 = 50;

/// Tables and columns that refer to a membership.
const REFERENCES: [(&str, &str); 2] = [
    ("messages", "space_membership_id"),
    ("conversation_runs", "speaker_space_membership_id"),
];

/// Deletes the membership of a guest who just left and never wrote, and the account if it has no
/// session left. The space is locked.
pub async fn delete_if_unreferenced(
    tx: &impl ConnectionTrait,
    membership: &Model,
    now: Timestamp,
) -> Result<(), DbErr> {
    if membership.role != MembershipRole::Guest || membership.status != MembershipStatus::Removed {
        return Ok(());
    }
    if delete_unreferenced(tx, vec![membership.id]).await? == 1
        && let Some(id) = membership.user_id
    {
        delete_accounts(tx, vec![id], now).await?;
    }
    Ok(())
}

/// Deletes all removed guests who never wrote and all unusable guest accounts. Returns the number
/// of memberships and of accounts.
///
/// # Errors
/// Returns the database error if a query fails.
pub async fn delete_unused_guests(db: &Db, now: Timestamp) -> Result<(u64, u64), DbErr> {
    let (mut n_memberships, mut n_accounts) = (0, 0);
    loop {
        let found = find_unreferenced(db.reader(), BATCH_SIZE).await?;
        let Some((_, space)) = found.first().copied() else {
            break;
        };
        // One space per transaction: its lock prevents a guest from rejoining in the meantime.
        let ids: Vec<MembershipId> = (found.iter())
            .filter(|(_, it)| *it == space)
            .map(|(id, _)| *id)
            .collect();
        let deleted = db
            .write(move |tx| {
                Box::pin(async move {
                    space::lock(tx, space).await?;
                    delete_unreferenced(tx, ids).await
                })
            })
            .await;
        let deleted: u64 = deleted?;
        n_memberships += deleted;
        if deleted == 0 {
            break; // another node is deleting the same rows
        }
    }
    loop {
        let found = find_unused_accounts(db.reader(), now, BATCH_SIZE).await?;
        if found.is_empty() {
            break;
        }
        let deleted: u64 = db
            .write(move |tx| Box::pin(async move { delete_accounts(tx, found, now).await }))
            .await?;
        n_accounts += deleted;
        if deleted == 0 {
            break;
        }
    }
    Ok((n_memberships, n_accounts))
}

/// Locks the rows before it checks for references: a concurrent post commits first, and no new
/// reference can appear afterwards.
async fn delete_unreferenced(
    tx: &impl ConnectionTrait,
    ids: Vec<MembershipId>,
) -> Result<u64, DbErr> {
    let locked: Vec<MembershipId> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::Id.is_in(ids))
        .filter(Column::Status.eq(MembershipStatus::Removed))
        .order_by_asc(Column::Id)
        .lock(LockType::Update)
        .into_tuple()
        .all(tx)
        .await?;
    let deleted = Entity::delete_many()
        .filter(Column::Id.is_in(locked))
        .filter(is_unreferenced());
    Ok(deleted.exec(tx).await?.rows_affected)
}

/// Returns removed guests who never wrote, with their spaces.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn find_unreferenced(
    db: &impl ConnectionTrait,
    limit: u64,
) -> Result<Vec<(MembershipId, SpaceId)>, DbErr> {
    Entity::find()
        .select_only()
        .columns([Column::Id, Column::SpaceId])
        // Literals, so that the partial index applies.
        .filter(Expr::cust("space_memberships.status = 'removed'"))
        .filter(Expr::cust("space_memberships.role = 'guest'"))
        .filter(is_unreferenced())
        .order_by_asc(Column::Id)
        .limit(limit)
        .into_tuple()
        .all(db)
        .await
}

fn is_unreferenced() -> Condition {
    let traces = REFERENCES.into_iter().map(|(table, column)| {
        let found = Query::select()
            .expr(Expr::value(1))
            .from(table)
            .and_where(Expr::col((table, column)).equals((Entity, Column::Id)))
            .to_owned();
        Expr::exists(found).not()
    });
    traces.fold(Condition::all(), Condition::add)
}

/// Returns guest accounts without a session and without a membership.
async fn find_unused_accounts(
    db: &impl ConnectionTrait,
    now: Timestamp,
    limit: u64,
) -> Result<Vec<UserId>, DbErr> {
    user::Entity::find()
        .select_only()
        .column(user::Column::Id)
        .filter(is_unused_account(now))
        .limit(limit)
        .into_tuple()
        .all(db)
        .await
}

async fn delete_accounts(
    tx: &impl ConnectionTrait,
    ids: Vec<UserId>,
    now: Timestamp,
) -> Result<u64, DbErr> {
    let over = user::Entity::delete_many()
        .filter(user::Column::Id.is_in(ids))
        .filter(is_unused_account(now));
    Ok(over.exec(tx).await?.rows_affected)
}

fn is_unused_account(now: Timestamp) -> Condition {
    let id = || Expr::col((user::Entity, user::Column::Id));
    let of_sessions: SimpleExpr = Expr::col((session::Entity, session::Column::UserId)).eq(id());
    let sessions = session::Entity::find()
        .select_only()
        .column(session::Column::Id)
        .filter(of_sessions)
        .filter(session::Column::ExpiresAt.gt(now));
    let of_memberships: SimpleExpr = Expr::col((Entity, Column::UserId)).eq(id());
    let memberships = membership::Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(of_memberships);
    Condition::all()
        .add(user::Column::PasswordHash.is_null())
        .add(Expr::exists(sessions.into_query()).not())
        .add(Expr::exists(memberships.into_query()).not())
}
