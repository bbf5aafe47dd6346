//! Table `response_events`: the event log of background responses, for clients that connect later.
//!
//! **Invariant:** an event is stored, exactly as it will be sent, before any client receives it.

use responses_api::event::{EncodedEvent, SequencedEvent, StreamEvent};
use sea_orm::ActiveValue::Set;
use sea_orm::entity::prelude::*;
use sea_orm::{QueryOrder, QuerySelect};
use serde_json::Map;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "response_events")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub response_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub seq: i64,
    #[sea_orm(column_type = "Text")]
    pub payload: String,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Rows per INSERT statement and per read.
const BATCH: usize = 1_000;

impl Model {
    /// Returns the event as it is sent.
    pub fn event(self) -> EncodedEvent {
        EncodedEvent::from_json(self.seq, self.payload)
    }

    fn sequenced_event(self) -> SequencedEvent {
        let sequence_number = self.seq;
        let event = self.event().decode();
        SequencedEvent {
            event: event.unwrap_or_else(|| StreamEvent::Other(Map::new())),
            sequence_number,
        }
    }
}

/// Appends events to the log.
pub async fn append(
    tx: &impl ConnectionTrait,
    response: &str,
    events: &[EncodedEvent],
) -> Result<(), DbErr> {
    for batch in events.chunks(BATCH) {
        let rows = batch.iter().map(|it| ActiveModel {
            response_id: Set(response.to_owned()),
            seq: Set(it.seq),
            payload: Set(it.json.clone()),
        });
        Entity::insert_many(rows).exec(tx).await?;
    }
    Ok(())
}

/// Deletes the log of a response.
pub async fn delete_all(tx: &impl ConnectionTrait, response: &str) -> Result<(), DbErr> {
    Entity::delete_many()
        .filter(Column::ResponseId.eq(response))
        .exec(tx)
        .await
        .map(|_| ())
}

/// Returns the next events after this sequence number, at most one batch.
pub async fn list_after(
    db: &impl ConnectionTrait,
    response: &str,
    seq: i64,
) -> Result<Vec<EncodedEvent>, DbErr> {
    let rows = Entity::find()
        .filter(Column::ResponseId.eq(response))
        .filter(Column::Seq.gt(seq))
        .order_by_asc(Column::Seq)
        .limit(BATCH as u64)
        .all(db)
        .await?;
    Ok(rows.into_iter().map(Model::event).collect())
}

/// Returns whether a response has a log.
pub async fn has_events(db: &impl ConnectionTrait, response: &str) -> Result<bool, DbErr> {
    let first = Entity::find()
        .select_only()
        .column(Column::Seq)
        .filter(Column::ResponseId.eq(response))
        .limit(1);
    let found: Option<i64> = first.into_tuple().one(db).await?;
    Ok(found.is_some())
}

/// Returns all events.
pub async fn list_all(
    db: &impl ConnectionTrait,
    response: &str,
) -> Result<Vec<SequencedEvent>, DbErr> {
    let rows = Entity::find()
        .filter(Column::ResponseId.eq(response))
        .order_by_asc(Column::Seq)
        .all(db)
        .await?;
    Ok(rows.into_iter().map(Model::sequenced_event).collect())
}
