//! Selects the least valuable memories of a space, and deletes them: the least important first; if
//! the importance is equal, those that were not recalled for the longest time.
//!
//! **Invariant:** a pinned memory, and one above the importance that is kept, is never selected.

use base::clock::Timestamp;
use base::ids::{MembershipId, SpaceId};
use sea_orm::sea_query::{Expr, ExprTrait, Func, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait, Select,
};

use crate::db::connect::Db;
use crate::memories::memory::{Column, Entity};
use crate::memories::{memory, memory_source};
use crate::spaces::space;

/// Memories above this importance are kept, unless a person chooses another limit.
pub const KEPT_IMPORTANCE: f64 = 0.9;

/// Which memories are pruned.
#[derive(Clone, Copy, Debug)]
pub struct PruneRules {
    /// Only memories that were created before this time.
    pub created_before: Option<Timestamp>,
    /// The number of memories of the space that remain.
    pub keep: Option<u64>,
    /// Only memories of at most this importance.
    pub keep_importance: f64,
}

/// Returns how many memories [`prune`] would delete.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn count(db: &Db, space: SpaceId, rules: PruneRules) -> Result<u64, DbErr> {
    db.read(move |tx| {
        Box::pin(async move {
            let n_found = select(space, rules).count(tx).await?;
            let n_excess = count_excess(tx, space, rules.keep).await?;
            Ok(match n_excess {
                Some(n) if n < n_found => n,
                _ => n_found,
            })
        })
    })
    .await
}

/// Counts the memories that [`prune`] would delete and that `viewer` may know to exist.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn count_visible(
    db: &Db,
    space: SpaceId,
    rules: PruneRules,
    viewer: Option<MembershipId>,
) -> Result<u64, DbErr> {
    db.read(move |tx| Box::pin(async move { count_visible_in(tx, space, rules, viewer).await }))
        .await
}

async fn count_visible_in(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    rules: PruneRules,
    viewer: Option<MembershipId>,
) -> Result<u64, DbErr> {
    let n_excess = count_excess(tx, space, rules.keep).await?;
    let is_chosen = Column::Id.in_subquery(choose(space, rules, n_excess));
    let visible = Entity::find()
        .filter(is_chosen)
        .filter(memory::is_visible_to(space, viewer));
    visible.count(tx).await
}

/// Selects the ids of the least valuable memories, at most `n_excess`.
fn choose(space: SpaceId, rules: PruneRules, n_excess: Option<u64>) -> SelectStatement {
    let last_recall = Func::coalesce([Expr::col(Column::LastRecalledAt), Expr::value(0)]);
    let chosen = select(space, rules)
        .select_only()
        .column(Column::Id)
        .order_by_asc(Column::Importance)
        .order_by_asc(Expr::expr(last_recall))
        .order_by_asc(Column::CreatedAt)
        .order_by_asc(Column::Id);
    match n_excess {
        Some(n) => chosen.limit(n).into_query(),
        None => chosen.into_query(),
    }
}

/// Deletes the least valuable memories. Restoring a message does not restore them. Returns how many were
/// deleted.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn prune(
    db: &Db,
    space: SpaceId,
    rules: PruneRules,
    now: Timestamp,
) -> Result<u64, DbErr> {
    db.write(move |tx| Box::pin(async move { prune_in(tx, space, rules, now).await }))
        .await
}

async fn prune_in(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    rules: PruneRules,
    now: Timestamp,
) -> Result<u64, DbErr> {
    let version = space::next_memory_version(tx, space).await?;
    let n_excess = count_excess(tx, space, rules.keep).await?;
    if n_excess == Some(0) {
        return Ok(0);
    }
    let deleted = Entity::update_many()
        .col_expr(Column::DeletedAt, Expr::value(now))
        .col_expr(Column::SpaceVersion, Expr::value(version))
        .filter(Column::Id.in_subquery(choose(space, rules, n_excess)))
        .exec(tx)
        .await?
        .rows_affected;
    if deleted > 0 {
        // Only these memories have this version, because the space is locked.
        let of_version = Query::select()
            .column(Column::Id)
            .from(Entity)
            .and_where(Expr::col(Column::SpaceId).eq(space))
            .and_where(Expr::col(Column::SpaceVersion).eq(version))
            .to_owned();
        memory_source::Entity::delete_many()
            .filter(memory_source::Column::MemoryId.in_subquery(of_version))
            .exec(tx)
            .await?;
    }
    Ok(deleted)
}

fn select(space: SpaceId, rules: PruneRules) -> Select<Entity> {
    let found = memory::select_for_space(space)
        .filter(Column::IsPinned.eq(false))
        .filter(Column::Importance.lte(rules.keep_importance));
    match rules.created_before {
        Some(it) => found.filter(Column::CreatedAt.lt(it)),
        None => found,
    }
}

/// Returns how many memories a space has beyond those that remain; `None` without such a number.
async fn count_excess(
    db: &impl ConnectionTrait,
    space: SpaceId,
    keep: Option<u64>,
) -> Result<Option<u64>, DbErr> {
    let Some(keep) = keep else {
        return Ok(None);
    };
    let stored = memory::select_for_space(space).count(db).await?;
    Ok(Some(stored.saturating_sub(keep)))
}
