//! Notes on a run that do not move it.
//!
//! **Invariant:** as in `queue.rs` each names the state it expects and returns whether it found it.

use crate::ids::RunId;
use crate::runs::queue::json;
use crate::runs::run;
use crate::runs::run::Column;
use crate::runs::run::Status;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::sea_query::Expr;

/// Notes what a run had sent and cost that was canceled before its executor could report it.
/// `false`: it was not canceled under this lease, or that is known already.
pub async fn note_late(
    tx: &impl ConnectionTrait,
    (id, lease): (RunId, i64),
    sent: &run::PromptRecord,
    usage: Option<run::Usage>,
) -> Result<bool, DbErr> {
    let canceled = run::Entity::find_by_id(id)
        .filter(Column::Status.eq(Status::Canceled))
        .filter(Column::Lease.eq(lease))
        .one(tx)
        .await?;
    let Some(run) = canceled.filter(|it| it.debug.prompt.is_none()) else {
        return Ok(false);
    };
    let usage = run::Usage::and(run.usage, usage);
    let mut debug = run.debug;
    debug.prompt = Some(sent.clone());
    let noted = run::Entity::update_many()
        .col_expr(Column::Debug, Expr::value(json(&debug)))
        .col_expr(Column::Usage, Expr::value(usage.as_ref().map(json)))
        .filter(Column::Id.eq(id))
        .filter(Column::Status.eq(Status::Canceled))
        .filter(Column::Lease.eq(lease));
    Ok(noted.exec(tx).await?.rows_affected == 1)
}
