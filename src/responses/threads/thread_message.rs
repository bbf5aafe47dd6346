//! Table `thread_messages`: the messages of a thread, ordered by `seq`.

use base::clock::Timestamp;
use responses_api::object_ids;
use responses_api::request::threads::thread_messages::NewThreadMessage;
use responses_api::threads::thread_content;
use responses_api::threads::thread_message_object::{StoredThreadMessage, ThreadMessageObject};
use responses_api::threads::thread_status::{ThreadMessageRole, ThreadMessageStatus};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{IntoActiveModel, QueryOrder, QuerySelect, QueryTrait};
use serde_json::json;

use crate::responses::threads::list_range::{ListRange, ListSlice};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "thread_messages")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub thread_id: String,
    /// The position in the thread, unique in it and never reused.
    pub seq: i64,
    pub role: ThreadMessageRole,
    /// A list of content parts, as the API returns them.
    #[sea_orm(column_type = "JsonBinary")]
    pub content: Json,
    pub status: ThreadMessageStatus,
    pub assistant_id: Option<String>,
    /// The run that wrote it.
    pub run_id: Option<String>,
    /// The only run whose context contains it. Such a message is in no list.
    pub hidden_for_run_id: Option<String>,
    /// Written by the caller; never interpreted by the server.
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub incomplete_details: Option<Json>,
    pub created_at: Timestamp,
    /// When it ended, completed or not.
    pub completed_at: Option<Timestamp>,
    pub deleted_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Rows per INSERT statement; databases limit the parameters of one statement.
const BATCH: usize = 500;

/// A message to append to a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageDraft {
    pub id: String,
    pub role: ThreadMessageRole,
    /// A list of content parts, as the API returns them.
    pub content: Json,
    pub status: ThreadMessageStatus,
    pub assistant_id: Option<String>,
    pub run_id: Option<String>,
    /// The only run whose context contains it.
    pub hidden_for_run_id: Option<String>,
    pub metadata: Json,
    pub incomplete_details: Option<Json>,
}

impl MessageDraft {
    /// Returns a message of a client; a hidden one belongs to `run`.
    pub fn of_client(message: NewThreadMessage, run: Option<&str>) -> Self {
        let run = run.filter(|_| message.is_hidden);
        Self {
            id: object_ids::generate(object_ids::MESSAGE),
            role: message.role,
            content: thread_content::from_item_parts(&message.content).into(),
            status: ThreadMessageStatus::Completed,
            assistant_id: None,
            run_id: None,
            hidden_for_run_id: run.map(str::to_owned),
            metadata: message.metadata.into(),
            incomplete_details: None,
        }
    }

    fn into_row(self, thread: &str, seq: i64, now: Timestamp) -> Model {
        let is_open = self.status == ThreadMessageStatus::InProgress;
        Model {
            id: self.id,
            thread_id: thread.to_owned(),
            seq,
            role: self.role,
            content: self.content,
            status: self.status,
            assistant_id: self.assistant_id,
            run_id: self.run_id,
            hidden_for_run_id: self.hidden_for_run_id,
            metadata: self.metadata,
            incomplete_details: self.incomplete_details,
            created_at: now,
            completed_at: (!is_open).then_some(now),
            deleted_at: None,
        }
    }
}

impl Model {
    /// Returns the object of the API.
    pub fn view(&self) -> ThreadMessageObject {
        let row = self.clone();
        ThreadMessageObject::from(StoredThreadMessage {
            id: row.id,
            created_at: row.created_at,
            assistant_id: row.assistant_id,
            thread_id: row.thread_id,
            run_id: row.run_id,
            role: row.role,
            status: row.status,
            incomplete_details: row.incomplete_details,
            ended_at: row.completed_at,
            content: row.content,
            metadata: row.metadata,
        })
    }
}

/// Inserts messages, starting at this `seq`, and returns them.
pub async fn insert(
    tx: &impl ConnectionTrait,
    thread: &str,
    first_seq: i64,
    drafts: Vec<MessageDraft>,
    now: Timestamp,
) -> Result<Vec<Model>, DbErr> {
    let rows = drafts.into_iter().zip(first_seq..);
    let rows: Vec<Model> = rows
        .map(|(draft, seq)| draft.into_row(thread, seq, now))
        .collect();
    for batch in rows.chunks(BATCH) {
        let batch = batch.iter().map(|it| it.clone().into_active_model());
        Entity::insert_many(batch).exec(tx).await?;
    }
    Ok(rows)
}

/// Finds a message of a thread. Returns `None` for foreign, hidden, unknown and deleted ones alike.
pub async fn find(
    db: &impl ConnectionTrait,
    thread: &str,
    id: &str,
) -> Result<Option<Model>, DbErr> {
    if id.contains('\0') {
        return Ok(None); // PostgreSQL rejects NUL in text
    }
    listed(thread).filter(Column::Id.eq(id)).one(db).await
}

/// Returns the position of a message, also of one that was deleted recently: clients delete the
/// messages of a page before they request the next one.
pub async fn find_seq(
    db: &impl ConnectionTrait,
    thread: &str,
    id: &str,
) -> Result<Option<i64>, DbErr> {
    if id.contains('\0') {
        return Ok(None);
    }
    Entity::find_by_id(id)
        .select_only()
        .column(Column::Seq)
        .filter(Column::ThreadId.eq(thread))
        .filter(Column::HiddenForRunId.is_null())
        .into_tuple()
        .one(db)
        .await
}

/// Returns a part of the messages of a thread, or of those that one run wrote.
pub async fn list(
    db: &impl ConnectionTrait,
    thread: &str,
    run: Option<&str>,
    range: ListRange<i64>,
) -> Result<ListSlice<Model>, DbErr> {
    let of_run = |query: Select<Entity>, run: &str| query.filter(Column::RunId.eq(run));
    range
        .load(db, listed(thread).apply_if(run, of_run), Column::Seq)
        .await
}

fn listed(thread: &str) -> Select<Entity> {
    Entity::find()
        .filter(Column::ThreadId.eq(thread))
        .filter(Column::HiddenForRunId.is_null())
        .filter(Column::DeletedAt.is_null())
}

/// Replaces the metadata. Returns the message, or `None` if it was deleted in the meantime.
pub async fn set_metadata(
    tx: &impl ConnectionTrait,
    id: &str,
    metadata: Json,
) -> Result<Option<Model>, DbErr> {
    let mut updated = Entity::update_many()
        .col_expr(Column::Metadata, Expr::value(metadata))
        .filter(Column::Id.eq(id))
        .filter(Column::DeletedAt.is_null())
        .exec_with_returning(tx)
        .await?;
    Ok(updated.pop())
}

/// Marks a message as deleted and removes its content; `thread_retention` deletes the row. Returns
/// `false` if it was already deleted.
pub async fn mark_deleted(
    tx: &impl ConnectionTrait,
    id: &str,
    now: Timestamp,
) -> Result<bool, DbErr> {
    let res = Entity::update_many()
        .col_expr(Column::DeletedAt, Expr::value(now))
        .col_expr(Column::Content, Expr::value(json!([])))
        .col_expr(Column::Metadata, Expr::value(json!({})))
        .filter(Column::Id.eq(id))
        .filter(Column::DeletedAt.is_null())
        .exec(tx)
        .await?;
    Ok(res.rows_affected == 1)
}

/// Inserts a message that a run writes.
pub async fn insert_row(tx: &impl ConnectionTrait, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model())
        .exec_without_returning(tx)
        .await
        .map(drop)
}

/// Replaces the content and the status of a message that a run writes.
pub async fn replace_content(tx: &impl ConnectionTrait, row: Model) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Content, Expr::value(row.content))
        .col_expr(Column::Status, Expr::value(row.status))
        .col_expr(
            Column::IncompleteDetails,
            Expr::value(row.incomplete_details),
        )
        .col_expr(Column::CompletedAt, Expr::value(row.completed_at))
        .filter(Column::Id.eq(row.id))
        .exec(tx)
        .await
        .map(drop)
}

/// Returns the messages that a run has written, in order.
pub async fn list_for_run(db: &impl ConnectionTrait, run: &str) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::RunId.eq(run))
        .order_by_asc(Column::Seq)
        .all(db)
        .await
}

/// Returns the messages in the context of a run, in order: those of the thread, and its own hidden ones.
/// `n_last` limits them to the newest ones.
pub async fn list_context(
    db: &impl ConnectionTrait,
    (thread, run): (&str, &str),
    n_last: Option<usize>,
) -> Result<Vec<Model>, DbErr> {
    let hidden_for = Column::HiddenForRunId;
    let mut newest_first = Entity::find()
        .filter(Column::ThreadId.eq(thread))
        .filter(hidden_for.is_null().or(hidden_for.eq(run)))
        .filter(Column::DeletedAt.is_null())
        .order_by_desc(Column::Seq)
        .limit(n_last.map(|it| u64::try_from(it).unwrap_or(u64::MAX)))
        .all(db)
        .await?;
    newest_first.reverse();
    Ok(newest_first)
}
