//! Streams the event log of a run to one client, on any node. The run continues if the client disconnects.

use std::time::Duration;

use base::ids::UserId;
use leased_jobs::concurrency_limit::ConcurrencyPermit;
use responses_api::threads::run_fold;
use responses_api::threads::thread_status::ThreadRunStatus;
use sea_orm::DbErr;
use tokio_util::sync::CancellationToken;

use crate::responses::engine::ResponseEngine;
use crate::responses::execution::event_stream;
use crate::responses::execution::event_stream::{EventReceiver, EventSender};
use crate::responses::retrieval;
use crate::responses::thread_runs::run_event;
use crate::responses::threads::thread_run;

/// The interval at which the log is read while events arrive.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The interval at which the log is read for events of another node while none arrive.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(500);

impl ResponseEngine {
    /// Streams the events of a run after this number, until it ends or waits for its client.
    pub fn follow_run(
        &self,
        id: &str,
        after: i64,
        permit: ConcurrencyPermit<UserId>,
    ) -> EventReceiver {
        let disconnected = CancellationToken::new();
        let (sender, receiver) = event_stream::channel(disconnected.clone());
        let (engine, id) = (self.clone(), id.to_owned());
        let stopping = self.services.shutdown.stopping.clone();
        self.services.shutdown.spawn(async move {
            tokio::select! {
                () = disconnected.cancelled() => {}
                () = stopping.cancelled() => {}
                res = engine.forward_run_log(&id, after, &sender) => {
                    if let Err(error) = res {
                        tracing::warn!(run.id = %id, %error, "failed to read the event log of run {id}: {error}");
                    }
                }
            }
            drop(permit);
        });
        receiver
    }

    async fn forward_run_log(
        &self,
        id: &str,
        mut after: i64,
        sender: &EventSender,
    ) -> Result<(), DbErr> {
        let db = self.services.db.reader();
        let mut pause = MIN_POLL_INTERVAL;
        loop {
            // Subscribe and read the status before the log: later writes then send a notification, and
            // if the run has ended, its log is complete.
            let lease = self.services.run_leases.find(&id.to_owned());
            let written = lease.map(|lease| lease.data.subscribe());
            let status = thread_run::find_status(db, id).await?;
            let is_over = status.is_none_or(ThreadRunStatus::is_final);
            let mut events = run_event::list_after(db, id, after).await?;
            let end = events.iter().position(|it| run_fold::ends_stream(&it.kind));
            if let Some(end) = end {
                events.truncate(end + 1);
            }
            let is_all = events.is_empty();
            after = events.last().map_or(after, |it| it.seq);
            sender.flushed().await;
            if !sender.push(events) || end.is_some() || (is_all && is_over) {
                return Ok(());
            }
            if is_all {
                retrieval::wait_for_write(written, pause).await;
                pause = (pause * 2).min(MAX_POLL_INTERVAL);
            } else {
                pause = MIN_POLL_INTERVAL;
            }
        }
    }
}
