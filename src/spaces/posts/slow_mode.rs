//! Slow mode: in a space with `slow_mode_s` a member posts at most once in that many seconds, in all
//! its conversations together. Reads and writes `space_memberships.last_post_at`, which no other module
//! uses.
//!
//! **Invariant:** of two posts of a member at once, on any nodes, one succeeds: the time is compared and
//! set by one statement, in the transaction that stores the post.

use base::clock::Timestamp;
use base::ids::{MembershipId, SpaceId};
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ConnectionTrait, DbErr};

use crate::spaces::membership::{Column, Entity, MembershipKind, MembershipRole};
use crate::spaces::{membership, space};

const LAST_POST_AT: &str = "last_post_at";

/// Returns how long this member must wait between two posts, or `None` if it need not.
pub fn interval_ms(space: &space::Model, author: &membership::Model) -> Option<i64> {
    let is_exempt = matches!(
        author.role,
        MembershipRole::Owner | MembershipRole::Moderator
    );
    (space.slow_mode_s > 0 && !is_exempt).then_some(space.slow_mode_s * 1_000)
}

/// Records a post of a member that posted at least `interval_ms` ago. Returns the time that it must
/// still wait otherwise, in milliseconds.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn record_post(
    tx: &impl ConnectionTrait,
    author: MembershipId,
    interval_ms: i64,
    now: Timestamp,
) -> Result<Option<i64>, DbErr> {
    let is_due = Expr::col(LAST_POST_AT)
        .is_null()
        .or(Expr::col(LAST_POST_AT).lte(now.plus_ms(-interval_ms)));
    let update = Query::update()
        .table(Entity)
        .value(LAST_POST_AT, now)
        .and_where(Expr::col(Column::Id).eq(author))
        .and_where(is_due)
        .to_owned();
    if tx.execute(&update).await?.rows_affected() == 1 {
        return Ok(None);
    }
    let last = Query::select()
        .column(LAST_POST_AT)
        .from(Entity)
        .and_where(Expr::col(Column::Id).eq(author))
        .to_owned();
    let row = tx.query_one(&last).await?;
    let last: Option<i64> = match row {
        Some(row) => row.try_get_by_index(0)?,
        None => None,
    };
    let elapsed = last.map_or(0, |it| now.ms_since(Timestamp(it)));
    // A clock that was set back must not lengthen the wait.
    Ok(Some((interval_ms - elapsed).clamp(1, interval_ms)))
}

/// Sets the times of the newest posts of all members, because the slow mode of their space is switched
/// on: without it they are not recorded.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load_last_posts(tx: &impl ConnectionTrait, space: SpaceId) -> Result<(), DbErr> {
    let newest = "(SELECT MAX(messages.created_at) FROM messages \
        WHERE messages.space_membership_id = space_memberships.id \
        AND messages.role = 'user' AND messages.conversation_run_id IS NULL)";
    let update = Query::update()
        .table(Entity)
        .value(LAST_POST_AT, Expr::cust(newest))
        .and_where(Expr::col(Column::SpaceId).eq(space))
        .and_where(Expr::col(Column::Kind).eq(MembershipKind::Human))
        .to_owned();
    tx.execute(&update).await.map(drop)
}
