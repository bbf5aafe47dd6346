//! Writes down what a turn does; a response that is not stored has none, and touches no table.
//!
//! **Invariant:** an item is committed before anybody is told that it is done, the end before
//! anybody is told of it, and an event of a background response before anybody is shown it. All of
//! it is fenced by the lease.

use std::time::Duration;

use sea_orm::{ConnectionTrait, DbErr, EntityTrait};
use serde_json::Value;

use crate::db::connect::Db;
use crate::responses::fold::StreamEvent;
use crate::responses::item::ItemDirection;
use crate::responses::response::ResponseStatus;
use crate::responses::response_document::ResponseState;
use crate::responses::{api_conversation, event, item, queue, response};

/// How often an end is tried while the database does not answer: with the waits between them,
/// longer than a restart of the database takes.
const MAX_ATTEMPTS: u32 = 8;

/// The row of a turn.
#[derive(Clone)]
pub struct Recorder {
    db: Db,
    id: String,
    lease: i64,
    /// Whether the stream is stored, too.
    stores_events: bool,
    conversation: Option<String>,
    n_items: usize,
}

/// Why something was not written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Somebody else has ended it, or goes on with it.
    #[error("the response is no longer ours")]
    LeaseLost,
    #[error(transparent)]
    Database(#[from] DbErr),
}

impl Recorder {
    /// For a response that is in progress here.
    pub fn new(db: Db, row: &response::Model) -> Self {
        Self {
            db,
            id: row.id.clone(),
            lease: row.lease,
            stores_events: row.background,
            conversation: row.api_conversation_id.clone(),
            n_items: 0,
        }
    }

    /// Writes the items that are new among `items`, and these events.
    ///
    /// # Errors
    /// It is no longer ours, or the database does not answer.
    pub async fn record(
        &mut self,
        items: &[Value],
        events: &[StreamEvent],
    ) -> Result<(), RecordError> {
        if items.len() == self.n_items && !self.stores_events {
            return Ok(());
        }
        let n_items = items.len();
        let (this, items, events) = (self.clone(), items.to_vec(), events.to_vec());
        let written: Result<(), RecordError> = self
            .db
            .write(move |tx| {
                Box::pin(async move {
                    match queue::lock_lease(tx, &this.id, this.lease).await? {
                        true => Ok(this.insert_new(tx, &items, &events).await?),
                        false => Err(RecordError::LeaseLost),
                    }
                })
            })
            .await;
        if written.is_ok() {
            self.n_items = n_items;
        }
        written
    }

    /// Writes the end, with what belongs to it. Tried again while the database does not answer.
    ///
    /// # Errors
    /// It is no longer ours, or the database does not come back.
    pub async fn finish(
        &self,
        items: &[Value],
        events: &[StreamEvent],
        state: &ResponseState,
    ) -> Result<(), RecordError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let written = self.finish_once(items, events, state).await;
            let Err(RecordError::Database(error)) = &written else {
                let was_ours = attempt > 1 && self.is_recorded(state).await;
                return if was_ours { Ok(()) } else { written };
            };
            tracing::warn!(response.id = %self.id, attempt, %error, "the end of response {} could not be written: {error}", self.id);
            if attempt == MAX_ATTEMPTS {
                return written;
            }
            tokio::time::sleep(Duration::from_millis(100 * 2_u64.pow(attempt))).await;
        }
    }

    /// Whether an earlier try was committed after all, and only its answer was lost.
    async fn is_recorded(&self, state: &ResponseState) -> bool {
        let found = response::Entity::find_by_id(&self.id).one(self.db.reader());
        let is_same = |it: response::Model| it.lease == self.lease && it.state() == *state;
        found.await.ok().flatten().is_some_and(is_same)
    }

    async fn finish_once(
        &self,
        items: &[Value],
        events: &[StreamEvent],
        state: &ResponseState,
    ) -> Result<(), RecordError> {
        let (this, standing) = (self.clone(), state.clone());
        let (items, events) = (items.to_vec(), events.to_vec());
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    let from = (ResponseStatus::InProgress, this.lease);
                    if !queue::finish(tx, &this.id, from, &standing).await? {
                        return Err(RecordError::LeaseLost);
                    }
                    this.insert_new(tx, &items, &events).await?;
                    this.append_to_conversation(tx, &items, standing.status)
                        .await?;
                    Ok(())
                })
            })
            .await
    }

    async fn insert_new(
        &self,
        tx: &impl ConnectionTrait,
        items: &[Value],
        events: &[StreamEvent],
    ) -> Result<(), DbErr> {
        let new = items.get(self.n_items..).unwrap_or_default();
        item::insert(tx, &self.id, ItemDirection::Output, self.n_items, new).await?;
        match self.stores_events {
            true => event::append(tx, &self.id, events).await,
            false => Ok(()),
        }
    }

    /// What was said in a conversation becomes part of it with the end that says so.
    async fn append_to_conversation(
        &self,
        tx: &impl ConnectionTrait,
        output: &[Value],
        status: ResponseStatus,
    ) -> Result<(), DbErr> {
        let goes_in = matches!(
            status,
            ResponseStatus::Completed | ResponseStatus::Incomplete
        );
        let Some(conversation) = self.conversation.as_ref().filter(|_| goes_in) else {
            return Ok(());
        };
        let input = item::list_for_response(tx, &self.id, ItemDirection::Input).await?;
        let input = input.into_iter().map(|it| it.payload);
        let items: Vec<Value> = input.chain(output.iter().cloned()).collect();
        // Deleted meanwhile: there is nothing to add to.
        api_conversation::append(tx, conversation, items).await?;
        Ok(())
    }
}
