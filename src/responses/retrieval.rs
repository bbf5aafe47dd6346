//! Operations on existing responses: show them, list their input, follow their event log, cancel
//! and delete them.

use std::time::Duration;

use base::ids::UserId;
use leased_jobs::concurrency_limit::ConcurrencyPermit;
use leased_jobs::lease::CancelReason;
use responses_api::fold::engine_event::ResponseOutcome;
use responses_api::item::visible;
use responses_api::response::Response;
use responses_api::status::ResponseStatus;
use sea_orm::{DbErr, EntityTrait};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::responses::engine::ResponseEngine;
use crate::responses::error::ResponseEngineError;
use crate::responses::execution::event_stream::{EventReceiver, EventSender};
use crate::responses::execution::{event_stream, finalize};
use crate::responses::store::item::ItemDirection;
use crate::responses::store::{event, item, queue, response, retention};

/// How long a cancellation waits for the task that runs the response.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// How often the status of a response is read, and the log while events arrive.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How often the log is read for events of another node while none arrive.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How often a cancellation is retried against a response whose state keeps changing.
const MAX_CANCEL_ATTEMPTS: u32 = 10;

impl ResponseEngine {
    /// Returns the response object.
    ///
    /// # Errors
    /// Returns `NotFound` when the user cannot see it.
    pub async fn show(
        &self,
        user: UserId,
        id: &str,
    ) -> Result<Response<Value>, ResponseEngineError> {
        let row = self.find_row(user, id).await?;
        self.load_document(&row).await
    }

    /// Returns the row of a response.
    ///
    /// # Errors
    /// Returns `NotFound` when the user cannot see it.
    pub async fn find_row(
        &self,
        user: UserId,
        id: &str,
    ) -> Result<response::Model, ResponseEngineError> {
        let found = response::find_for_user(self.services.db.reader(), user, id).await?;
        found.ok_or(ResponseEngineError::NotFound)
    }

    async fn load_document(
        &self,
        row: &response::Model,
    ) -> Result<Response<Value>, ResponseEngineError> {
        let db = self.services.db.reader();
        let output = item::list_for_response(db, &row.id, ItemDirection::Output).await?;
        Ok(row.document(output))
    }

    /// Returns the input items in order.
    ///
    /// # Errors
    /// Returns `NotFound` when the user cannot see it.
    pub async fn list_input_items(
        &self,
        user: UserId,
        id: &str,
    ) -> Result<Vec<Value>, ResponseEngineError> {
        let row = self.find_row(user, id).await?;
        let items =
            item::list_for_response(self.services.db.reader(), &row.id, ItemDirection::Input)
                .await?;
        Ok(items.into_iter().map(|it| visible(it.payload)).collect())
    }

    /// Streams the events of a background response after a sequence number, until its end.
    ///
    /// # Errors
    /// Returns `NotFound` when the user cannot see it, `StreamNotAvailable` when it was not a
    /// background response or its log was deleted, and `ServerBusy` or `UserLimitReached` when too
    /// many logs are followed.
    pub async fn follow_log(
        &self,
        user: UserId,
        id: &str,
        after: i64,
    ) -> Result<EventReceiver, ResponseEngineError> {
        let permit = self.permit_to_follow(user)?;
        let row = self.find_row(user, id).await?;
        let has_events = event::has_events(self.services.db.reader(), id).await?;
        match row.background && has_events {
            true => Ok(self.start_log_reader(id, after, permit)),
            false => Err(ResponseEngineError::StreamNotAvailable),
        }
    }

    /// Streams the log of a response. A reader that disconnects does not cancel the response.
    pub(super) fn start_log_reader(
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
                res = engine.forward_log(&id, after, &sender) => {
                    if let Err(error) = res {
                        tracing::warn!(response.id = %id, %error, "failed to read the event log of response {id}: {error}");
                    }
                }
            }
            drop(permit);
        });
        receiver
    }

    async fn forward_log(
        &self,
        id: &str,
        mut after: i64,
        sender: &EventSender,
    ) -> Result<(), DbErr> {
        let db = self.services.db.reader();
        let mut pause = MIN_POLL_INTERVAL;
        loop {
            // Both before the log is read: later writes then notify us, and if the response is
            // over, its log is complete.
            let lease = self.services.response_leases.find(&id.to_owned());
            let written = lease.map(|lease| lease.data.subscribe());
            let status = response::find_status(db, id).await?;
            let is_over = status.is_none_or(ResponseStatus::is_final);
            let events = event::list_after(db, id, after).await?;
            let is_all = events.is_empty();
            let has_ended = events.iter().any(|it| it.is_terminal());
            after = events.last().map_or(after, |it| it.seq);
            sender.flushed().await;
            if !sender.push(events) || has_ended {
                return Ok(());
            }
            match (is_all, is_over) {
                (false, _) => pause = MIN_POLL_INTERVAL,
                // The client has requested events after the last one, so the stream is complete.
                (true, true) => {
                    sender.finish();
                    return Ok(());
                }
                (true, false) => {
                    wait_for_write(written, pause).await;
                    pause = (pause * 2).min(MAX_POLL_INTERVAL);
                }
            }
        }
    }

    /// Cancels a background response; one that has ended is not changed.
    ///
    /// # Errors
    /// Returns `NotFound` when the user cannot see it, and `NotCancellable` when it is not a
    /// background response.
    pub async fn cancel(
        &self,
        user: UserId,
        id: &str,
    ) -> Result<Response<Value>, ResponseEngineError> {
        let row = self.find_row(user, id).await?;
        if !row.background {
            return Err(ResponseEngineError::NotCancellable);
        }
        let row = self.cancel_and_wait(row).await?;
        self.load_document(&row).await
    }

    /// Deletes a response and cancels it if it still runs. Later responses keep it as history.
    ///
    /// # Errors
    /// Returns `NotFound` when the user cannot see it.
    pub async fn delete(&self, user: UserId, id: &str) -> Result<(), ResponseEngineError> {
        let row = self.find_row(user, id).await?;
        self.cancel_and_wait(row).await?;
        let (id, now) = (id.to_owned(), self.services.clock.now());
        let deleted: Result<bool, DbErr> = self
            .services
            .db
            .write(move |tx| {
                Box::pin(async move {
                    let is_hidden = queue::soft_delete(tx, &id, now).await?;
                    retention::purge_deleted(tx, &id).await?;
                    Ok(is_hidden)
                })
            })
            .await;
        match deleted? {
            true => Ok(()),
            false => Err(ResponseEngineError::NotFound),
        }
    }

    /// Ends a response: through the task that runs it, or directly if that takes too long.
    async fn cancel_and_wait(
        &self,
        mut row: response::Model,
    ) -> Result<response::Model, ResponseEngineError> {
        let deadline = Instant::now() + CANCEL_TIMEOUT;
        for _ in 0..MAX_CANCEL_ATTEMPTS {
            match row.status {
                ResponseStatus::Queued => {}
                ResponseStatus::InProgress => {
                    self.request_cancel(&row.id).await?;
                    row = self.wait_for_end(row, deadline).await?;
                }
                _ => return Ok(row),
            }
            if row.status.is_final() {
                return Ok(row);
            }
            finalize::finalize_orphan(&self.services, row.clone(), ResponseOutcome::Cancelled)
                .await?;
            self.services
                .response_leases
                .cancel(&row.id, CancelReason::LeaseLost);
            row = self.reload(row).await?;
        }
        Ok(row)
    }

    async fn request_cancel(&self, id: &str) -> Result<(), DbErr> {
        let (own_id, now) = (id.to_owned(), self.services.clock.now());
        let asked: Result<bool, DbErr> = self
            .services
            .db
            .write(move |tx| Box::pin(async move { queue::request_cancel(tx, &own_id, now).await }))
            .await;
        asked?;
        self.services
            .response_leases
            .cancel(&id.to_owned(), CancelReason::Requested);
        Ok(())
    }

    async fn wait_for_end(
        &self,
        mut row: response::Model,
        deadline: Instant,
    ) -> Result<response::Model, ResponseEngineError> {
        while !row.status.is_final() && Instant::now() < deadline {
            tokio::time::sleep(MIN_POLL_INTERVAL).await;
            row = self.reload(row).await?;
        }
        Ok(row)
    }

    async fn reload(&self, row: response::Model) -> Result<response::Model, ResponseEngineError> {
        let found = response::Entity::find_by_id(&row.id);
        let found = found.one(self.services.db.reader()).await?;
        found.ok_or(ResponseEngineError::NotFound)
    }
}

/// Returns when this node runs the response and has written more, or after `pause`.
pub(super) async fn wait_for_write(written: Option<watch::Receiver<()>>, pause: Duration) {
    let changed = async {
        match written {
            // An error means that the task has ended, so there is nothing to wait for.
            Some(mut written) => drop(written.changed().await),
            None => std::future::pending().await,
        }
    };
    let _ = tokio::time::timeout(pause, changed).await;
}
