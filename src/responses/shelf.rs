//! The verbs for responses that are there already: look, follow, cancel, delete.

use crate::ids::UserId;
use crate::responses::desk::Desk;
use crate::responses::ending;
use crate::responses::event;
use crate::responses::happening::How;
use crate::responses::item;
use crate::responses::item::Side;
use crate::responses::pipe;
use crate::responses::pipe::Reader;
use crate::responses::pipe::Writer;
use crate::responses::places::Place;
use crate::responses::purge;
use crate::responses::queue;
use crate::responses::refusal::Refusal;
use crate::responses::response;
use crate::responses::response::Status;
use crate::responses::stop::Why;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long whoever cancels waits for the one who works on it.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often it is looked whether a response is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often it is looked whether another node has written more, while nothing comes.
const LOOK_LESS: Duration = Duration::from_millis(500);

/// How often a cancel is tried against a response that keeps moving.
const MAX_MOVES: u32 = 10;

impl Desk {
    /// A response as it stands.
    ///
    /// # Errors
    /// It is not there to be seen.
    pub async fn show(&self, user: UserId, id: &str) -> Result<Value, Refusal> {
        let row = self.find(user, id).await?;
        self.document(&row).await
    }

    /// The row of a response that this user may see.
    ///
    /// # Errors
    /// It is not there to be seen.
    pub async fn find(&self, user: UserId, id: &str) -> Result<response::Model, Refusal> {
        let found = response::of_user(self.parts.db.reader(), user, id).await?;
        found.ok_or(Refusal::NotFound)
    }

    async fn document(&self, row: &response::Model) -> Result<Value, Refusal> {
        let db = self.parts.db.reader();
        let output = item::of_response(db, &row.id, Side::Output).await?;
        Ok(row.document(&output))
    }

    /// What a response was given, in order.
    ///
    /// # Errors
    /// It is not there to be seen.
    pub async fn input(&self, user: UserId, id: &str) -> Result<Vec<Value>, Refusal> {
        let row = self.find(user, id).await?;
        let items = item::of_response(self.parts.db.reader(), &row.id, Side::Input).await?;
        Ok(items.into_iter().map(|it| it.payload).collect())
    }

    /// The stream of a background response after this number, and on until its end.
    ///
    /// # Errors
    /// It is not there to be seen, was no background one, its stream is no longer kept, or too many
    /// read along already.
    pub async fn replay(&self, user: UserId, id: &str, after: i64) -> Result<Reader, Refusal> {
        let place = self.place_to_follow(user)?;
        let row = self.find(user, id).await?;
        let is_kept = event::is_kept(self.parts.db.reader(), id).await?;
        match row.background && is_kept {
            true => Ok(self.follow(id, after, place)),
            false => Err(Refusal::StreamNotAvailable),
        }
    }

    /// Reads the log of a response along. Who stops reading stops nothing.
    pub(super) fn follow(&self, id: &str, after: i64, place: Place) -> Reader {
        let left = CancellationToken::new();
        let (writer, reader) = pipe::pipe(left.clone());
        let (desk, id) = (self.clone(), id.to_owned());
        let stopping = self.parts.shutdown.stopping.clone();
        self.parts.shutdown.spawn(async move {
            tokio::select! {
                () = left.cancelled() => {}
                () = stopping.cancelled() => {}
                res = desk.read_along(&id, after, &writer) => {
                    if let Err(error) = res {
                        tracing::warn!(response.id = %id, %error, "the log of response {id} could not be read: {error}");
                    }
                }
            }
            drop(place);
        });
        reader
    }

    async fn read_along(&self, id: &str, mut after: i64, writer: &Writer) -> Result<(), DbErr> {
        let db = self.parts.db.reader();
        let mut pause = LOOK_EVERY;
        loop {
            // Both before the log: what is written from here on rings, and what is over has all of
            // its events in it.
            let written = self.parts.held.written(id);
            let status = response::status_of(db, id).await?;
            let is_over = status.is_none_or(Status::is_final);
            let events = event::after(db, id, after).await?;
            let is_all = events.is_empty();
            let has_ended = events.iter().any(|it| it.is_terminal());
            after = events.last().map_or(after, |it| it.seq);
            writer.drained().await;
            if !writer.push(events) || has_ended {
                return Ok(());
            }
            match (is_all, is_over) {
                (false, _) => pause = LOOK_EVERY,
                // Whoever asks for what comes after the end has it.
                (true, true) => {
                    writer.finish();
                    return Ok(());
                }
                (true, false) => {
                    rings_or(written, pause).await;
                    pause = (pause * 2).min(LOOK_LESS);
                }
            }
        }
    }

    /// Cancels a background response; one that has ended stays as it is.
    ///
    /// # Errors
    /// It is not there to be seen, or is no background one.
    pub async fn cancel(&self, user: UserId, id: &str) -> Result<Value, Refusal> {
        let row = self.find(user, id).await?;
        if !row.background {
            return Err(Refusal::NotCancellable);
        }
        let row = self.end(row).await?;
        self.document(&row).await
    }

    /// Deletes a response; one that runs is cancelled first. Those that go on from it have it still.
    ///
    /// # Errors
    /// It is not there to be seen.
    pub async fn delete(&self, user: UserId, id: &str) -> Result<(), Refusal> {
        let row = self.find(user, id).await?;
        self.end(row).await?;
        let (id, now) = (id.to_owned(), self.parts.clock.now());
        let deleted: Result<bool, DbErr> = self
            .parts
            .db
            .write(move |tx| {
                Box::pin(async move {
                    let is_hidden = queue::hide(tx, &id, now).await?;
                    purge::forgotten(tx, &id).await?;
                    Ok(is_hidden)
                })
            })
            .await;
        match deleted? {
            true => Ok(()),
            false => Err(Refusal::NotFound),
        }
    }

    /// Sees to it that a response is over: by whoever works on it, or else without them.
    async fn end(&self, mut row: response::Model) -> Result<response::Model, Refusal> {
        let deadline = Instant::now() + PATIENCE;
        for _ in 0..MAX_MOVES {
            match row.status {
                Status::Queued => {}
                Status::InProgress => {
                    self.ask_to_end(&row.id).await?;
                    row = self.wait_for_end(row, deadline).await?;
                }
                _ => return Ok(row),
            }
            if row.status.is_final() {
                return Ok(row);
            }
            let now = self.parts.clock.now();
            ending::conclude(&self.parts.db, row.clone(), How::Cancelled, now).await?;
            self.parts.held.end(&row.id, Why::Lost);
            row = self.again(row).await?;
        }
        Ok(row)
    }

    async fn ask_to_end(&self, id: &str) -> Result<(), DbErr> {
        let (own_id, now) = (id.to_owned(), self.parts.clock.now());
        let asked: Result<bool, DbErr> = self
            .parts
            .db
            .write(move |tx| Box::pin(async move { queue::request_cancel(tx, &own_id, now).await }))
            .await;
        asked?;
        self.parts.held.end(id, Why::Asked);
        Ok(())
    }

    async fn wait_for_end(
        &self,
        mut row: response::Model,
        deadline: Instant,
    ) -> Result<response::Model, Refusal> {
        while !row.status.is_final() && Instant::now() < deadline {
            tokio::time::sleep(LOOK_EVERY).await;
            row = self.again(row).await?;
        }
        Ok(row)
    }

    async fn again(&self, row: response::Model) -> Result<response::Model, Refusal> {
        let found = response::Entity::find_by_id(&row.id);
        let found = found.one(self.parts.db.reader()).await?;
        found.ok_or(Refusal::NotFound)
    }
}

/// Returns when the node that writes it is this one and has written more, or else after `pause`.
async fn rings_or(written: Option<watch::Receiver<()>>, pause: Duration) {
    let rings = async {
        match written {
            // An error: its turn is over, and so is the wait.
            Some(mut written) => drop(written.changed().await),
            None => std::future::pending().await,
        }
    };
    let _ = tokio::time::timeout(pause, rings).await;
}
