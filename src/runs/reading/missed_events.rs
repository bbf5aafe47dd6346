//! Detects events that were lost between nodes: compares the positions of this node's subscribers
//! with the database and makes clients that are behind fetch a snapshot.
//!
//! Uses one statement per batch of conversations with subscribers on this node.

use std::time::Duration;

use base::ids::{ConversationId, RunId};
use realtime::channel::DatabasePosition;
use sea_orm::sea_query::{Expr, ExprTrait, IntoCondition};
use sea_orm::{ColumnTrait, DbErr, EntityTrait, JoinType, QueryFilter, QuerySelect};

use crate::conversations::conversation;
use crate::runs::services::RunServices;
use crate::runs::store::run;

/// Time between two checks. Together with [`DELIVERY_GRACE`] and the client's request this stays
/// well below the ten seconds that a client may be behind.
const CHECK_INTERVAL: Duration = Duration::from_secs(4);

/// Minimum time between two checks that were requested because events are known to be missing.
const MIN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Events that were committed before the check are delivered within this time unless they were
/// lost.
const DELIVERY_GRACE: Duration = Duration::from_millis(500);

/// Conversations in one statement.
const BATCH_SIZE: usize = 1000;

/// Runs the checks until the node stops.
pub async fn run_checks(context: RunServices) {
    loop {
        tokio::select! {
            () = context.shutdown.stopping.cancelled() => return,
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
            () = context.check_missed_events.notified() => {}
        }
        if let Err(error) = check_once(&context).await {
            tracing::warn!(%error, "failed to check for missed events");
        }
        tokio::select! {
            () = context.shutdown.stopping.cancelled() => return,
            () = tokio::time::sleep(MIN_CHECK_INTERVAL) => {}
        }
    }
}

/// Runs one check. What arrives within [`DELIVERY_GRACE`] was not lost.
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
    // The stream of a run begins when its speaker is chosen.
    let column = |it| Expr::col((run::Entity, it));
    let has_stream = move || {
        let is_running = column(run::Column::Status).eq("running");
        is_running.and(column(run::Column::SpeakerSpaceMembershipId).is_not_null())
    };
    let runs = conversation::Entity::belongs_to(run::Entity)
        .from(conversation::Column::Id)
        .to(run::Column::ConversationId)
        .on_condition(move |_, _| has_stream().into_condition())
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
