//! Stores the output items, the events and the end of a running response. A response whose request
//! disables `store` has no recorder and writes to no table.
//!
//! **Invariant:** an item is committed before a client sees that it is done, the end before a
//! client sees it, and each event of a background response before it is sent. All writes are fenced
//! by the lease.

use responses_api::event::EncodedEvent;
use responses_api::item::OutputItem;
use responses_api::response::ResponseState;
use responses_api::status::ResponseStatus;
use sea_orm::{ConnectionTrait, DbErr, EntityTrait};
use serde_json::Value;

use crate::db::connect::Db;
use crate::db::retry_wait;
use crate::responses::store::item::ItemDirection;
use crate::responses::store::{api_conversation, event, item, queue, response};

/// Writes to the row of one running response.
#[derive(Clone)]
pub struct Recorder {
    db: Db,
    id: String,
    lease: i64,
    /// Whether the event log is stored, too.
    stores_events: bool,
    conversation: Option<String>,
    n_items: usize,
}

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The response was ended or claimed by another node.
    #[error("the lease of the response was lost")]
    LeaseLost,
    #[error(transparent)]
    Database(#[from] DbErr),
}

impl Recorder {
    /// Creates a recorder for a response that this node has claimed.
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

    /// Returns the number of the lease.
    pub fn lease(&self) -> i64 {
        self.lease
    }

    /// Stores the new ones among `items`, and these events.
    ///
    /// # Errors
    /// Returns `LeaseLost` when this node no longer owns the response, and `Database` when the
    /// write fails.
    pub async fn record(
        &mut self,
        items: &[OutputItem],
        events: &[EncodedEvent],
    ) -> Result<(), RecordError> {
        if items.len() == self.n_items && !self.stores_events {
            return Ok(());
        }
        let n_items = items.len();
        let new = to_values(self.not_stored(items));
        let (this, events) = (self.clone(), events.to_vec());
        let written: Result<(), RecordError> = self
            .db
            .write(move |tx| {
                Box::pin(async move {
                    match queue::lock_lease(tx, &this.id, this.lease).await? {
                        true => Ok(this.insert_new(tx, &new, &events).await?),
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

    /// Stores the end with the remaining items and events. Retries while the database fails.
    ///
    /// # Errors
    /// Returns `LeaseLost` when this node no longer owns the response, and `Database` when all
    /// attempts fail.
    pub async fn finish(
        &self,
        items: &[OutputItem],
        events: &[EncodedEvent],
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
            tracing::warn!(response.id = %self.id, attempt, %error, "failed to store the end of response {}: {error}", self.id);
            if !retry_wait::wait_after(attempt).await {
                return written;
            }
        }
    }

    /// Returns whether an earlier attempt was committed and only its acknowledgment was lost.
    async fn is_recorded(&self, state: &ResponseState) -> bool {
        let found = response::Entity::find_by_id(&self.id).one(self.db.reader());
        let is_same = |it: response::Model| it.lease == self.lease && it.state() == *state;
        found.await.ok().flatten().is_some_and(is_same)
    }

    async fn finish_once(
        &self,
        items: &[OutputItem],
        events: &[EncodedEvent],
        state: &ResponseState,
    ) -> Result<(), RecordError> {
        let (this, standing) = (self.clone(), state.clone());
        let (items, events) = (to_values(items), events.to_vec());
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    let from = (ResponseStatus::InProgress, this.lease);
                    if !queue::finish(tx, &this.id, from, &standing).await? {
                        return Err(RecordError::LeaseLost);
                    }
                    this.insert_new(tx, this.not_stored(&items), &events)
                        .await?;
                    this.append_to_conversation(tx, &items, standing.status)
                        .await?;
                    Ok(())
                })
            })
            .await
    }

    fn not_stored<'a, I>(&self, items: &'a [I]) -> &'a [I] {
        items.get(self.n_items..).unwrap_or_default()
    }

    async fn insert_new(
        &self,
        tx: &impl ConnectionTrait,
        new: &[Value],
        events: &[EncodedEvent],
    ) -> Result<(), DbErr> {
        item::insert(tx, &self.id, ItemDirection::Output, self.n_items, new).await?;
        match self.stores_events {
            true => event::append(tx, &self.id, events).await,
            false => Ok(()),
        }
    }

    /// Appends input and output to the API conversation, in the transaction that stores the end.
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
        // Does nothing if the conversation was deleted in the meantime.
        api_conversation::append_in_transaction(tx, conversation, items).await?;
        Ok(())
    }
}

fn to_values(items: &[OutputItem]) -> Vec<Value> {
    items.iter().map(OutputItem::to_stored_value).collect()
}
