//! Finds what got lost on the way between nodes: what listeners were given is held against what
//! the database has, and who is behind is told to ask again.
//!
//! One statement for all conversations to which somebody listens on this node.

use std::time::Duration;

use sea_orm::sea_query::{Expr, ExprTrait, IntoCondition};
use sea_orm::{ColumnTrait, DbErr, EntityTrait, JoinType, QueryFilter, QuerySelect};

use crate::conversations::conversation;
use crate::ids::{ConversationId, RunId};
use crate::realtime::channel::DatabasePosition;
use crate::runs::run;
use crate::runs::services::RunServices;

/// Between two looks. With [`ON_THE_WAY`] and the client's own asking this stays well below the
/// ten seconds that a reader may be behind.
const CHECK_INTERVAL: Duration = Duration::from_secs(4);

/// Between two looks that were asked for because something is known to be missing.
const MIN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// What was committed by the look has been told after this, if it is told at all.
const DELIVERY_GRACE: Duration = Duration::from_millis(500);

/// Conversations in one statement.
const BATCH_SIZE: usize = 1000;

/// Looks until the node closes.
pub async fn run_checks(context: RunServices) {
    loop {
        tokio::select! {
            () = context.shutdown.stopping.cancelled() => return,
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
            () = context.check_missed_events.notified() => {}
        }
        if let Err(error) = check_once(&context).await {
            tracing::warn!(%error, "what listeners missed could not be looked up: {error}");
        }
        tokio::select! {
            () = context.shutdown.stopping.cancelled() => return,
            () = tokio::time::sleep(MIN_CHECK_INTERVAL) => {}
        }
    }
}

/// Looks once. What is told within [`ON_THE_WAY`] was not lost.
async fn check_once(context: &RunServices) -> Result<(), DbErr> {
    let subscribed = context.hub.subscribed_conversations();
    let mut all = Vec::new();
    for some in subscribed.chunks(BATCH_SIZE) {
        all.extend(database_positions(context, some).await?);
    }
    if all.is_empty() {
        return Ok(());
    }
    tokio::time::sleep(DELIVERY_GRACE).await;
    for truth in &all {
        if context.hub.check_position(truth) {
            context.metrics.missed_events.inc();
        }
    }
    Ok(())
}

async fn database_positions(
    context: &RunServices,
    ids: &[ConversationId],
) -> Result<Vec<DatabasePosition>, DbErr> {
    let is_running = || Expr::col((run::Entity, run::Column::Status)).eq("running");
    let runs = conversation::Entity::belongs_to(run::Entity)
        .from(conversation::Column::Id)
        .to(run::Column::ConversationId)
        .on_condition(move |_, _| is_running().into_condition())
        .into();
    let rows: Vec<(ConversationId, i64, Option<RunId>)> = conversation::Entity::find()
        .join(JoinType::LeftJoin, runs)
        .filter(conversation::Column::Id.is_in(ids.iter().copied()))
        .select_only()
        .column(conversation::Column::Id)
        .column(conversation::Column::Rev)
        .column_as(run::Column::Id, "running")
        .into_tuple()
        .all(context.db.reader())
        .await?;
    let truth =
        |(conversation, rev, running): (ConversationId, i64, Option<RunId>)| DatabasePosition {
            conversation,
            rev,
            running: running.map(|it| it.0),
        };
    Ok(rows.into_iter().map(truth).collect())
}
