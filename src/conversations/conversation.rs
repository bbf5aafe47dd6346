//! Table `conversations`: timelines.

use sea_orm::ActiveValue::Set;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait, LockBehavior, LockType, Query, SelectStatement};
use sea_orm::{IntoActiveModel, PaginatorTrait, QueryOrder, QuerySelect};

use crate::clock::Timestamp;
use crate::db::backend;
use crate::db::commit_verification::CommitProof;
use crate::db::connect::{Backend, Db};
use crate::db::string_enum::string_enum;
use crate::ids::{ConversationId, MembershipId, MessageId, SpaceId};
use crate::spaces::{membership, space};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "conversations")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: ConversationId,
    pub space_id: SpaceId,
    pub kind: ConversationKind,
    pub title: String,
    pub parent_conversation_id: Option<ConversationId>,
    /// Only a branch: a message of the parent.
    pub forked_from_message_id: Option<MessageId>,
    /// The number of the newest durable event.
    pub rev: i64,
    /// The number of the newest message.
    pub last_seq: i64,
    /// The author of the newest visible assistant message.
    pub last_speaker_membership_id: Option<MembershipId>,
    /// The number of that message.
    pub last_assistant_seq: Option<i64>,
    /// The number of the newest visible message of role user.
    pub last_user_seq: Option<i64>,
    /// A change of settings has not been applied to it yet.
    pub needs_step: bool,
    /// The number of the newest run.
    pub last_run_seq: i64,
    /// How often auto mode has spoken since a person did.
    pub auto_mode_turns: i64,
    /// Author's note, scenario of this timeline.
    #[sea_orm(column_type = "JsonBinary")]
    pub settings: Json,
    /// Macro variables, timed lore.
    #[sea_orm(column_type = "JsonBinary")]
    pub variables: Json,
    pub created_at: Timestamp,
    pub archived_at: Option<Timestamp>,
    /// A job is still filling or deleting it: no one sees it.
    pub is_hidden: bool,
    /// The bytes of the texts of its messages, all versions included.
    pub text_bytes: i64,
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
    /// How a timeline came to be.
    #[schema(as = ConversationKind)]
    ConversationKind { Root, Branch, Thread }
}

/// Locks a conversation for this transaction: whoever decides about it waits here.
///
/// On SQLite the transaction itself is the lock, and the words `FOR UPDATE` are left out.
pub async fn lock(tx: &impl ConnectionTrait, id: ConversationId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).lock(LockType::Update).one(tx).await
}

/// The same, with the space it is in, as it is before any wait for the lock: spaces change without.
pub async fn lock_with_space(
    tx: &impl ConnectionTrait,
    id: ConversationId,
) -> Result<Option<(Model, space::Model)>, DbErr> {
    let mut found = Entity::find_by_id(id).find_also_related(space::Entity);
    // The space's row is shared by others, and locked by nobody here.
    QuerySelect::query(&mut found).lock_with_tables(LockType::Update, [Entity]);
    Ok(found.one(tx).await?.and_then(with_space))
}

/// Locks those of them that nobody else has, for this transaction; the others are left out.
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

/// Saves how far the numbers of its events, messages and turns got. Gives what proves later that this
/// was committed: the number of the transaction, and that the row got so far, since a server that
/// crashed may give the number to another.
pub async fn save_counters(
    tx: &impl ConnectionTrait,
    row: &Model,
    dialect: Backend,
) -> Result<Option<CommitProof>, DbErr> {
    let is_this_row = Expr::col(Column::Id).eq(row.id);
    let number = Query::returning().expr(backend::transaction_number(dialect));
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
        .and_where(is_this_row.clone())
        .returning(number)
        .to_owned();
    let Some(saved) = tx.query_one(&update).await? else {
        return Ok(None);
    };
    let status = backend::transaction_status(dialect, saved.try_get_by_index(0)?);
    let proof = Query::select()
        .expr(status)
        .from(Entity)
        .and_where(is_this_row)
        .and_where(Expr::col(Column::Rev).gte(row.rev))
        .to_owned();
    Ok(Some(CommitProof(proof)))
}

/// Takes numbers for so many runs, and returns the first of them.
///
/// # Errors
/// When the database fails, or the conversation is gone.
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

/// Changes title or settings. `None`: it is gone.
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

/// Remembers what macros and lore have noted. The row is locked.
pub async fn set_variables(
    tx: &impl ConnectionTrait,
    id: ConversationId,
    variables: Json,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Variables, Expr::value(variables))
        .filter(Column::Id.eq(id))
        .exec(tx)
        .await?;
    Ok(())
}

/// Removes the marker of a change that was applied. The rows are locked.
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

/// The conversations that no one sees yet, or any more; few, and found by an index of their own.
pub fn hidden_ids() -> SelectStatement {
    Query::select()
        .column(Column::Id)
        .from(Entity)
        .and_where(Expr::cust("is_hidden"))
        .to_owned()
}

/// Counts more text that is stored in a conversation.
pub async fn add_text_bytes(
    tx: &impl ConnectionTrait,
    id: ConversationId,
    bytes: i64,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::TextBytes, Expr::col(Column::TextBytes).add(bytes))
        .filter(Column::Id.eq(id))
        .exec(tx)
        .await
        .map(drop)
}

/// How many branches and threads hang on a conversation.
pub async fn count_children(db: &impl ConnectionTrait, id: ConversationId) -> Result<u64, DbErr> {
    let children = Entity::find().filter(Column::ParentConversationId.eq(id));
    children.count(db).await
}

/// Deletes a conversation with everything on it; answers the seats whose copilot played there.
/// `None`: another one hangs on it by now.
pub async fn delete(db: &Db, id: ConversationId) -> Result<Option<Vec<membership::Model>>, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            // Whoever makes a branch or a thread waits for the lock, and finds nothing to hang it on.
            lock(tx, id).await?;
            if count_children(tx, id).await? > 0 {
                return Ok(None);
            }
            Entity::delete_by_id(id).exec(tx).await?;
            let copilots = membership::disable_copilots_in(tx, id).await?;
            Ok(Some(copilots))
        })
    })
    .await
}
