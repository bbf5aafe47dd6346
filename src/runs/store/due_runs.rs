//! Queries the runs that the dispatcher may claim, and the spaces that have some. Read-only: a run
//! may be claimed or canceled before the dispatcher claims it.
//!
//! **Invariant:** the cost of a query depends neither on the number of ended runs nor on that of
//! queued ones: each statement reads a limited number of index rows. Only the runs of a full
//! provider are read in addition, to skip them.

use base::clock::Timestamp;
use base::ids::{ConversationId, ProviderId, RunId, SpaceId};
use sea_orm::sea_query::{
    CommonTableExpression, Expr, ExprTrait, Func, Query, SelectStatement, SimpleExpr, UnionType,
    WithClause, WithQuery,
};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, Order, QueryFilter,
    QueryOrder, QuerySelect, QueryTrait, Select,
};

use crate::providers::provider;
use crate::runs::store::run::{Column, Entity};
use crate::spaces::membership;

/// A queued run whose conversation has no running run.
#[derive(Clone, Debug, PartialEq, FromQueryResult)]
pub struct DueRun {
    pub id: RunId,
    pub conversation_id: ConversationId,
    pub space_id: SpaceId,
    pub run_after: Option<Timestamp>,
    pub created_at: Timestamp,
    /// The provider of its speaker; the default one until the director has chosen. `None`: no provider is
    /// usable, and the claim will fail.
    pub provider_id: Option<ProviderId>,
}

impl DueRun {
    /// Returns whether the run is due.
    pub fn is_due(&self, now: Timestamp) -> bool {
        is_due(self.run_after, self.created_at, now)
    }
}

/// If a clock is ahead of another by more than this, it was set wrong.
const MAX_CLOCK_SKEW_MS: i64 = 60_000;

/// Returns whether a queued run is due. A run created later than `now` was created before the clock
/// was set back; its remaining delay is unknown, so it is due immediately.
pub fn is_due(run_after: Option<Timestamp>, created_at: Timestamp, now: Timestamp) -> bool {
    run_after.is_none_or(|at| at <= now) || created_at > now.plus_ms(MAX_CLOCK_SKEW_MS)
}

/// Returns the runs that are due first, including future ones: the first one determines how long
/// the dispatcher sleeps. Runs of the providers in `full` are left out.
pub async fn list_next_due(
    db: &impl ConnectionTrait,
    full: &[ProviderId],
    limit: u64,
) -> Result<Vec<DueRun>, DbErr> {
    let mut soonest = db
        .get_database_backend()
        .build(&select_waiting(full).into_query());
    // A literal: PostgreSQL plans a query without parameters once, but would plan this one for each
    // value of a limit.
    soonest.sql += &format!(" LIMIT {limit}");
    let rows = db.query_all_raw(soonest).await?;
    rows.iter()
        .map(|row| DueRun::from_query_result(row, ""))
        .collect()
}

/// Returns the spaces with due runs whose ids follow `after`, ordered by id.
pub async fn list_due_spaces(
    db: &impl ConnectionTrait,
    now: Timestamp,
    after: SpaceId,
    limit: u64,
) -> Result<Vec<SpaceId>, DbErr> {
    let hops = skip_scan_spaces(now, after, limit);
    let rows = db.query_all(&hops).await?.into_iter();
    rows.map(|row| row.try_get_by_index(0)).collect()
}

/// Returns the due runs of these spaces, at most `each` per space, the earliest first.
pub async fn list_for_spaces(
    db: &impl ConnectionTrait,
    now: Timestamp,
    full: &[ProviderId],
    spaces: &[SpaceId],
    each: u64,
) -> Result<Vec<DueRun>, DbErr> {
    let lines = spaces.iter().map(|space| {
        let line = select_waiting(full)
            .filter(Column::SpaceId.eq(*space))
            .filter(due_at().lte(now))
            .limit(each);
        // A `LIMIT` inside of a `UNION` needs a subquery.
        Query::select()
            .column(sea_orm::sea_query::Asterisk)
            .from_subquery(line.into_query(), "line")
            .to_owned()
    });
    let all = lines.reduce(|mut all, line| all.union(UnionType::All, line).to_owned());
    let Some(all) = all else {
        return Ok(Vec::new());
    };
    let rows = db.query_all(&all).await?;
    rows.iter()
        .map(|row| DueRun::from_query_result(row, ""))
        .collect()
}

/// Selects queued runs of conversations without a running run, the earliest first.
fn select_waiting(full: &[ProviderId]) -> Select<Entity> {
    let busy = Query::select()
        .column(Column::ConversationId)
        .from(Entity)
        .and_where(Expr::cust("status = 'running'"))
        .to_owned();
    let waiting = Entity::find()
        .select_only()
        .columns([
            Column::Id,
            Column::ConversationId,
            Column::SpaceId,
            Column::RunAfter,
            Column::CreatedAt,
        ])
        .column_as(provider_of_speaker(), "provider_id")
        .filter(Expr::cust("status = 'queued'"))
        .filter(Column::ConversationId.not_in_subquery(busy))
        .order_by(due_at(), Order::Asc);
    if full.is_empty() {
        return waiting;
    }
    let no_provider = Expr::value(0_i64);
    let provider = Func::coalesce([provider_of_speaker(), no_provider]);
    waiting.filter(SimpleExpr::from(provider).is_not_in(full.iter().copied()))
}

/// The sort key of the indexes on queued runs. A run without `run_after` is due immediately and
/// sorts by its creation, so that no run overtakes another.
fn due_at() -> SimpleExpr {
    let column = |it| Expr::col((Entity, it));
    Func::coalesce([column(Column::RunAfter), column(Column::CreatedAt)]).into()
}

/// Selects the same provider as `usable_providers`: that of the membership, otherwise the default.
fn provider_of_speaker() -> SimpleExpr {
    let id = (provider::Entity, provider::Column::Id);
    // Literals, for the same reason as the limit of `list_next_due`.
    let usable = Expr::cust("NOT llm_providers.disabled");
    let own = Query::select()
        .column(id)
        .from(provider::Entity)
        .inner_join(
            membership::Entity,
            Expr::col((membership::Entity, membership::Column::LlmProviderId)).equals(id),
        )
        .and_where(
            Expr::col((membership::Entity, membership::Column::Id))
                .equals((Entity, Column::SpeakerSpaceMembershipId)),
        )
        .and_where(usable.clone())
        .to_owned();
    let default = Query::select()
        .expr(Expr::col(id).min())
        .from(provider::Entity)
        .and_where(Expr::cust("llm_providers.is_default"))
        .and_where(usable)
        .to_owned();
    Func::coalesce([subquery(own), subquery(default)]).into()
}

/// `WITH RECURSIVE`: jumps from each space to the next one with a due run, without reading the rows
/// in between. `DISTINCT` would read every queued run.
fn skip_scan_spaces(now: Timestamp, after: SpaceId, limit: u64) -> WithQuery {
    let space = ("hops", "space_id");
    let start = Query::select()
        .expr_as(Expr::value(after), "space_id")
        .to_owned();
    let next = Query::select()
        .column(Column::SpaceId)
        .from(Entity)
        .and_where(Expr::cust("status = 'queued'"))
        .and_where(Expr::col((Entity, Column::SpaceId)).gt(Expr::col(space)))
        .and_where(due_at().lte(now))
        .order_by((Entity, Column::SpaceId), Order::Asc)
        .limit(1)
        .to_owned();
    let hop = Query::select()
        .expr(subquery(next))
        .from("hops")
        .and_where(Expr::col(space).is_not_null())
        .to_owned();
    let mut hops = CommonTableExpression::new();
    hops.table_name("hops")
        .column("space_id")
        .query(start.clone().union(UnionType::All, hop).to_owned());
    let found = Query::select()
        .column(space)
        .from("hops")
        .and_where(Expr::col(space).gt(after))
        .limit(limit)
        .to_owned();
    WithClause::new()
        .recursive(true)
        .cte(hops)
        .to_owned()
        .query(found)
}

fn subquery(select: SelectStatement) -> SimpleExpr {
    SimpleExpr::SubQuery(None, Box::new(select.into()))
}
