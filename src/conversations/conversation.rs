//! Table `conversations`: one row for each timeline of messages, with its counters. Queries, locks,
//! updates and deletes the rows.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId, SpaceId};
use sea_orm::ActiveValue::Set;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{
    Expr, ExprTrait, LockBehavior, LockType, Query, SelectStatement, UnionType,
};
use sea_orm::{IntoActiveModel, PaginatorTrait, QueryOrder, QuerySelect};

use crate::conversations::chats::import_job;
use crate::db::backend;
use crate::db::backend::Backend;
use crate::db::commit_verification::CommitProof;
use crate::db::connect::Db;
use crate::db::id_list::padded;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::db::string_enum::string_enum;
use crate::spaces::space;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "conversations")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: ConversationId,
    pub space_id: SpaceId,
    pub kind: ConversationKind,
    pub title: String,
    pub parent_conversation_id: Option<ConversationId>,
    /// Only for a branch: a message of the parent.
    pub forked_from_message_id: Option<MessageId>,
    /// The number of the newest durable event.
    pub rev: i64,
    /// The `seq` of the newest message.
    pub last_seq: i64,
    /// The author of the newest visible assistant message.
    pub last_speaker_membership_id: Option<MembershipId>,
    /// The `seq` of that message.
    pub last_assistant_seq: Option<i64>,
    /// The `seq` of the newest message of role `user` that is neither hidden nor out of character.
    pub last_user_seq: Option<i64>,
    /// Whether the scheduler must still apply a change of settings.
    pub needs_step: bool,
    /// The number of the newest run.
    pub last_run_seq: i64,
    /// The number of auto mode turns since the last user message.
    pub auto_mode_turns: i64,
    /// Author's note and scenario of this conversation.
    #[sea_orm(column_type = "JsonBinary")]
    pub settings: Json,
    /// Macro variables and timed lorebook effects.
    #[sea_orm(column_type = "JsonBinary")]
    pub variables: Json,
    pub created_at: Timestamp,
    pub archived_at: Option<Timestamp>,
    /// A job is still filling or deleting it; it is invisible to everyone.
    pub is_hidden: bool,
    /// The size of the texts of its messages in bytes, all swipes included.
    pub text_bytes: i64,
    /// The tokens of its runs and copilot candidates. Those of a run are added in the transaction that
    /// ends it, or right afterwards if it was canceled.
    pub tokens_used: i64,
    /// The first message from which the memory has not learned yet; `None` if no task to learn is
    /// queued.
    pub unlearned_from_seq: Option<i64>,
    /// Where the histories of its prompts begin; `src/prompt/history/history_window.rs` reads and writes it.
    #[sea_orm(column_type = "JsonBinary")]
    pub prompt_starts: Json,
    /// The first message that summaries may cover: the first message of the conversation, or the one
    /// after the forgotten messages.
    pub summary_from_seq: i64,
    /// The last message that a run has requested to be summarized.
    pub summary_goal_seq: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "crate::spaces::space::Entity",
        from = "Column::SpaceId",
        to = "crate::spaces::space::Column::Id"
    )]
    Space,
}

impl Related<crate::spaces::space::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Space.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// How a conversation was created.
    #[schema(as = ConversationKind)]
    ConversationKind { Root, Branch, Thread }
}

/// Returns a conversation that is not hidden. The caller checks the access to its space.
pub async fn find_visible(
    db: &impl ConnectionTrait,
    id: ConversationId,
) -> Result<Option<Model>, DbErr> {
    let conversation = Entity::find_by_id(id).filter(Column::IsHidden.eq(false));
    conversation.one(db).await
}

/// Returns a conversation of a space that is not hidden.
pub async fn find_in_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
    id: ConversationId,
) -> Result<Option<Model>, DbErr> {
    let found = find_visible(db, id).await?;
    Ok(found.filter(|it| it.space_id == space))
}

/// Returns a conversation, hidden or not, with its space.
pub async fn find_with_space(
    db: &impl ConnectionTrait,
    id: ConversationId,
) -> Result<Option<(Model, space::Model)>, DbErr> {
    let found = Entity::find_by_id(id).find_also_related(space::Entity);
    Ok(found.one(db).await?.and_then(with_space))
}

/// Returns these conversations with their spaces, hidden ones included.
pub async fn list_with_spaces(
    db: &impl ConnectionTrait,
    ids: impl IntoIterator<Item = ConversationId>,
) -> Result<Vec<(Model, space::Model)>, DbErr> {
    let found = Entity::find()
        .filter(Column::Id.is_in(ids))
        .find_also_related(space::Entity);
    let found = found.all(db).await?.into_iter();
    Ok(found.filter_map(with_space).collect())
}

/// Returns the number of conversations that are not hidden, in spaces that are not being imported.
pub async fn count_visible(db: &impl ConnectionTrait) -> Result<u64, DbErr> {
    let visible = Entity::find().filter(Column::Id.not_in_subquery(hidden_ids()));
    visible.count(db).await
}

/// Returns a page of the conversations of a space that are not hidden.
pub async fn list_for_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
    page: PageQuery,
) -> Result<PageOf<Model>, DbErr> {
    let visible = Entity::find()
        .filter(Column::SpaceId.eq(space))
        .filter(Column::IsHidden.eq(false));
    page.load(visible, Column::Id, db).await
}

/// Locks a conversation for this transaction, so that decisions about it are serialized.
///
/// On SQLite the transaction itself is the lock, and `FOR UPDATE` is left out.
pub async fn lock(tx: &impl ConnectionTrait, id: ConversationId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).lock(LockType::Update).one(tx).await
}

/// Locks the selected conversations for this transaction, always in the same order, to avoid deadlocks.
pub async fn lock_selected(tx: &impl ConnectionTrait, ids: SelectStatement) -> Result<(), DbErr> {
    let locked = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::Id.in_subquery(ids))
        .order_by_asc(Column::Id)
        .lock(LockType::Update)
        .into_tuple::<ConversationId>();
    locked.all(tx).await.map(drop)
}

/// Locks a conversation and returns it with its space. The space is read before any wait for the
/// lock, and may have changed since.
pub async fn lock_with_space(
    tx: &impl ConnectionTrait,
    id: ConversationId,
) -> Result<Option<(Model, space::Model)>, DbErr> {
    let mut found = Entity::find_by_id(id).find_also_related(space::Entity);
    // The row of the space is shared with other conversations and is not locked here.
    QuerySelect::query(&mut found).lock_with_tables(LockType::Update, [Entity]);
    Ok(found.one(tx).await?.and_then(with_space))
}

/// Locks those of these conversations that no other transaction has locked; skips the others.
pub async fn lock_available(
    tx: &impl ConnectionTrait,
    ids: impl IntoIterator<Item = ConversationId>,
) -> Result<Vec<(Model, space::Model)>, DbErr> {
    let mut found = Entity::find()
        .filter(Column::Id.is_in(ids))
        .filter(Column::IsHidden.eq(false))
        .order_by_asc(Column::Id)
        .find_also_related(space::Entity);
    QuerySelect::query(&mut found).lock_with_tables_behavior(
        LockType::Update,
        [Entity],
        LockBehavior::SkipLocked,
    );
    let found = found.all(tx).await?.into_iter();
    Ok(found.filter_map(with_space).collect())
}

fn with_space((row, space): (Model, Option<space::Model>)) -> Option<(Model, space::Model)> {
    Some((row, space?))
}

/// Saves the counters of events, messages, runs and tokens. Returns a proof by which the commit can be
/// verified later: the transaction number, and that `rev` got this far, because a crashed server
/// may assign the number again.
pub async fn save_counters(
    tx: &impl ConnectionTrait,
    row: &Model,
    backend: Backend,
) -> Result<Option<CommitProof>, DbErr> {
    let number = Query::returning().expr(backend::transaction_number(backend));
    let update = Query::update()
        .table(Entity)
        .value(Column::Rev, row.rev)
        .value(Column::LastSeq, row.last_seq)
        .value(
            Column::LastSpeakerMembershipId,
            row.last_speaker_membership_id,
        )
        .value(Column::LastAssistantSeq, row.last_assistant_seq)
        .value(Column::LastUserSeq, row.last_user_seq)
        .value(Column::LastRunSeq, row.last_run_seq)
        .value(Column::AutoModeTurns, row.auto_mode_turns)
        .value(Column::TextBytes, row.text_bytes)
        .value(Column::TokensUsed, row.tokens_used)
        .value(Column::UnlearnedFromSeq, row.unlearned_from_seq)
        .value(Column::SummaryFromSeq, row.summary_from_seq)
        .value(Column::SummaryGoalSeq, row.summary_goal_seq)
        .and_where(Expr::col(Column::Id).eq(row.id))
        .returning(number)
        .to_owned();
    let saved = tx.query_one(&update).await?;
    prove_commit(saved, row, backend)
}

/// Increments the `rev` of locked conversations, whose rows here have the new one already, and saves
/// no other counter. Returns a proof like [`save_counters`].
pub async fn save_next_revs(
    tx: &impl ConnectionTrait,
    rows: impl IntoIterator<Item = &Model>,
    backend: Backend,
) -> Result<Option<CommitProof>, DbErr> {
    let rows: Vec<&Model> = rows.into_iter().collect();
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let number = Query::returning().expr(backend::transaction_number(backend));
    let update = Query::update()
        .table(Entity)
        .value(Column::Rev, Expr::col(Column::Rev).add(1))
        .and_where(Expr::col(Column::Id).is_in(padded(rows.iter().map(|it| it.id))))
        .returning(number)
        .to_owned();
    let saved = tx.query_all(&update).await?.pop();
    prove_commit(saved, first, backend)
}

/// Returns the proof for a saved row: the number of its transaction, which the statement returned,
/// and that `rev` got this far.
fn prove_commit(
    saved: Option<QueryResult>,
    row: &Model,
    backend: Backend,
) -> Result<Option<CommitProof>, DbErr> {
    let Some(saved) = saved else {
        return Ok(None);
    };
    let status = backend::transaction_status(backend, saved.try_get_by_index(0)?);
    let proof = Query::select()
        .expr(status)
        .from(Entity)
        .and_where(Expr::col(Column::Id).eq(row.id))
        .and_where(Expr::col(Column::Rev).gte(row.rev))
        .to_owned();
    Ok(Some(CommitProof(proof)))
}

/// Deletes a locked conversation and everything that refers to it. Its space keeps the tokens.
pub async fn delete_row(tx: &impl ConnectionTrait, row: &Model) -> Result<(), DbErr> {
    if row.tokens_used > 0 {
        space::add_unattributed_tokens(tx, row.space_id, row.tokens_used).await?;
    }
    Entity::delete_by_id(row.id).exec(tx).await?;
    Ok(())
}

/// Allocates numbers for `n_runs` runs and returns the first.
///
/// # Errors
/// Returns a database error if the statement fails or the conversation does not exist.
pub async fn allocate_run_numbers(
    tx: &impl ConnectionTrait,
    id: ConversationId,
    n_runs: i64,
) -> Result<i64, DbErr> {
    let updated = Entity::update_many()
        .col_expr(
            Column::LastRunSeq,
            Expr::col(Column::LastRunSeq).add(n_runs),
        )
        .filter(Column::Id.eq(id))
        .exec_with_returning(tx)
        .await?;
    let gone = || DbErr::RecordNotFound(id.to_string());
    let row = updated.first().ok_or_else(gone)?;
    Ok(row.last_run_seq - n_runs + 1)
}

/// Changes title or settings. Returns `None` if the conversation does not exist.
pub async fn update(
    db: &Db,
    id: ConversationId,
    title: Option<String>,
    settings: Option<Json>,
) -> Result<Option<Model>, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            let Some(row) = lock(tx, id).await? else {
                return Ok(None);
            };
            let mut row = row.into_active_model();
            if let Some(title) = title {
                row.title = Set(title);
            }
            if let Some(settings) = settings {
                row.settings = Set(settings);
            }
            row.update(tx).await.map(Some)
        })
    })
    .await
}

/// Clears the marker after the change was applied. The rows are locked.
pub async fn clear_needs_step(
    tx: &impl ConnectionTrait,
    ids: &[ConversationId],
) -> Result<(), DbErr> {
    if ids.is_empty() {
        return Ok(());
    }
    Entity::update_many()
        .col_expr(Column::NeedsStep, Expr::value(false))
        .filter(Column::Id.is_in(ids.iter().copied()))
        .exec(tx)
        .await
        .map(|_| ())
}

/// Selects conversations that are hidden while a job fills or deletes them, and those in the hidden
/// spaces of imports. They are few, and both have an index.
pub fn hidden_ids() -> SelectStatement {
    let ids = || Query::select().column(Column::Id).from(Entity).to_owned();
    let imported = Expr::col(Column::SpaceId).in_subquery(import_job::hidden_space_ids());
    ids()
        .and_where(Expr::cust("is_hidden"))
        .union(UnionType::All, ids().and_where(imported).to_owned())
        .to_owned()
}

/// Returns the number of branches and threads of a conversation.
pub async fn count_children(db: &impl ConnectionTrait, id: ConversationId) -> Result<u64, DbErr> {
    let children = Entity::find().filter(Column::ParentConversationId.eq(id));
    children.count(db).await
}
