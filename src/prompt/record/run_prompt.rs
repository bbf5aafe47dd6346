//! Table `run_prompts`: stores the prompt that each run sent to the model, with references instead
//! of message texts, and deletes the oldest prompts of a conversation.
//!
//! **Invariant:** each conversation keeps its newest [`MAX_KEPT`] prompts, and at most
//! [`PRUNE_INTERVAL`] older ones. They contain no message texts, only references, so that a deleted
//! message disappears here too.

use base::clock::Timestamp;
use base::ids::{ConversationId, RunId};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, Query, SelectStatement};
use sea_orm::{Order, QueryOrder, QuerySelect, QueryTrait};

use crate::db::backend;
use crate::db::backend::Backend;
use crate::prompt::record::sent_prompt::{SentPrompt, SentPromptJson};

/// The number of prompts of a conversation that are always kept.
pub const MAX_KEPT: u64 = 50;

/// Older prompts are deleted when a run gets a number that is a multiple of this.
pub const PRUNE_INTERVAL: i64 = 10;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "run_prompts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub run_id: RunId,
    pub conversation_id: ConversationId,
    #[sea_orm(column_type = "JsonBinary")]
    pub record: SentPrompt,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// A prompt to store for a run.
#[derive(Clone, Copy, Debug)]
pub struct NewRunPrompt<'a> {
    pub run: RunId,
    pub conversation: ConversationId,
    pub record: &'a SentPromptJson,
    pub created_at: Timestamp,
}

/// Stores the prompt of a run.
pub async fn store(
    tx: &impl ConnectionTrait,
    backend: Backend,
    new: NewRunPrompt<'_>,
) -> Result<(), DbErr> {
    let insert = Query::insert()
        .into_table(Entity)
        .columns([
            Column::RunId,
            Column::ConversationId,
            Column::Record,
            Column::CreatedAt,
        ])
        .values_panic([
            Expr::value(new.run),
            Expr::value(new.conversation),
            backend::json_document(backend, new.record.as_str()),
            Expr::value(new.created_at),
        ])
        .to_owned();
    tx.execute(&insert).await?;
    Ok(())
}

/// The sequence number of a row's run within its conversation.
pub const RUN_SEQ: &str =
    "(SELECT run_seq FROM conversation_runs WHERE conversation_runs.id = run_prompts.run_id)";

/// Stores prompts of a conversation's runs and deletes the oldest ones.
pub async fn restore(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    rows: Vec<ActiveModel>,
) -> Result<(), DbErr> {
    if rows.is_empty() {
        return Ok(());
    }
    let n_rows = rows.len() as u64;
    Entity::insert_many(rows).exec_without_returning(tx).await?;
    prune(tx, conversation, n_rows).await
}

/// Selects those of these runs whose prompt is stored.
pub fn stored_among(runs: impl IntoIterator<Item = RunId>) -> SelectStatement {
    Query::select()
        .column(Column::RunId)
        .from(Entity)
        .and_where(Column::RunId.is_in(runs))
        .to_owned()
}

/// Deletes the oldest prompts of a conversation, of which `n_new` were stored since the last time.
pub async fn prune(
    tx: &impl ConnectionTrait,
    conversation: ConversationId,
    n_new: u64,
) -> Result<(), DbErr> {
    let too_many = Entity::find()
        .select_only()
        .column(Column::RunId)
        .filter(Column::ConversationId.eq(conversation))
        .order_by(Expr::cust(RUN_SEQ), Order::Desc)
        .offset(MAX_KEPT)
        .limit(MAX_KEPT.max(n_new))
        .into_query();
    Entity::delete_many()
        .filter(Column::RunId.in_subquery(too_many))
        .exec(tx)
        .await?;
    Ok(())
}
