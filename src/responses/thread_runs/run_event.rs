//! Table `thread_run_events`: the event log of a run, from which its streams are read on any node.
//!
//! **Invariant:** an event is stored, exactly as it will be sent, before any client receives it.

use responses_api::event::EncodedEvent;
use sea_orm::ActiveValue::Set;
use sea_orm::entity::prelude::*;
use sea_orm::{QueryOrder, QuerySelect};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "thread_run_events")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub run_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub seq: i64,
    /// The name of the event.
    pub kind: String,
    #[sea_orm(column_type = "Text")]
    pub payload: String,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Rows per INSERT statement and per read.
const BATCH: usize = 1_000;

impl Model {
    fn event(self) -> EncodedEvent {
        EncodedEvent {
            seq: self.seq,
            kind: self.kind,
            json: self.payload,
        }
    }
}

/// Appends events to the log.
pub async fn append(
    tx: &impl ConnectionTrait,
    run: &str,
    events: &[EncodedEvent],
) -> Result<(), DbErr> {
    for batch in events.chunks(BATCH) {
        let rows = batch.iter().map(|it| ActiveModel {
            run_id: Set(run.to_owned()),
            seq: Set(it.seq),
            kind: Set(it.kind.clone()),
            payload: Set(it.json.clone()),
        });
        Entity::insert_many(rows).exec(tx).await?;
    }
    Ok(())
}

/// Returns the next events after this number, at most one batch.
pub async fn list_after(
    db: &impl ConnectionTrait,
    run: &str,
    seq: i64,
) -> Result<Vec<EncodedEvent>, DbErr> {
    let rows = Entity::find()
        .filter(Column::RunId.eq(run))
        .filter(Column::Seq.gt(seq))
        .order_by_asc(Column::Seq)
        .limit(BATCH as u64)
        .all(db)
        .await?;
    Ok(rows.into_iter().map(Model::event).collect())
}

/// Returns the number and the kind of the last event.
pub async fn find_last(
    db: &impl ConnectionTrait,
    run: &str,
) -> Result<Option<(i64, String)>, DbErr> {
    Entity::find()
        .select_only()
        .column(Column::Seq)
        .column(Column::Kind)
        .filter(Column::RunId.eq(run))
        .order_by_desc(Column::Seq)
        .limit(1)
        .into_tuple()
        .one(db)
        .await
}

/// Returns the message deltas of a run, in order.
pub async fn list_deltas(db: &impl ConnectionTrait, run: &str) -> Result<Vec<EncodedEvent>, DbErr> {
    let rows = Entity::find()
        .filter(Column::RunId.eq(run))
        .filter(Column::Kind.eq("thread.message.delta"))
        .order_by_asc(Column::Seq)
        .all(db)
        .await?;
    Ok(rows.into_iter().map(Model::event).collect())
}

/// Deletes the logs of these runs.
pub async fn delete_all(tx: &impl ConnectionTrait, runs: &[String]) -> Result<(), DbErr> {
    Entity::delete_many()
        .filter(Column::RunId.is_in(runs))
        .exec(tx)
        .await
        .map(|_| ())
}
