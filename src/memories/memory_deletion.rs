//! Deletes memories: those that a person deletes or forgets, and the rows of those that were deleted
//! long ago.
//!
//! A single deleted memory keeps its row for a while; what is forgotten is in no table afterwards.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MemoryId, SpaceId};
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, PaginatorTrait, QueryFilter,
    QuerySelect, Select, UpdateMany,
};

use crate::conversations::{conversation, message};
use crate::db::connect::Db;
use crate::memories::memory::{Column, Entity};
use crate::memories::summaries::summary_deletion;
use crate::memories::tasks::task_deletion;
use crate::memories::{memory, memory_source, other_sources};
use crate::spaces::{membership_update, space};

/// The maximum number of ids in one statement.
const MAX_IDS: usize = 1_000;

/// Which memories of a space a person deletes.
#[derive(Clone, Copy, Debug)]
pub enum DeletionScope {
    Memory(MemoryId),
    /// Those about a member, its own, and those that were made from its messages.
    Member(MembershipId),
    /// Those that were made in this conversation and in no other one.
    Conversation(ConversationId),
    All,
}

/// Deletes memories on behalf of a person, with their sources, so that no restored message restores them.
/// What is forgotten (every scope except a single memory) is in no table afterwards, and what was said in the
/// conversation or space so far is not learned from. Summaries of what is forgotten are deleted, too: those
/// of the conversation, of the space, or of each conversation in which the member has written. For a
/// forgotten member, the memory of its messages so far is switched off, and so is learning from later ones.
/// Returns the deleted memories.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn delete(
    db: &Db,
    space: SpaceId,
    scope: DeletionScope,
    now: Timestamp,
) -> Result<Vec<MemoryId>, DbErr> {
    db.write(move |tx| Box::pin(async move { delete_in(tx, space, scope, now).await }))
        .await
}

async fn delete_in(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    scope: DeletionScope,
    now: Timestamp,
) -> Result<Vec<MemoryId>, DbErr> {
    // Locked before the space, as in a step that learns.
    match scope {
        DeletionScope::All => forget_messages(tx, space, None).await?,
        DeletionScope::Conversation(id) => forget_messages(tx, space, Some(id)).await?,
        DeletionScope::Member(id) => {
            summary_deletion::forget_member(tx, id).await?;
            message::switch_memory_off(tx, id).await?;
        }
        DeletionScope::Memory(_) => {}
    }
    let version = space::next_memory_version(tx, space).await?;
    match scope {
        DeletionScope::Member(id) => membership_update::disable_learning(tx, id).await?,
        DeletionScope::Conversation(id) => {
            other_sources::reassign_conversation(tx, id, None, version).await?;
            other_sources::delete_of_conversation(tx, id, None).await?;
        }
        DeletionScope::Memory(_) | DeletionScope::All => {}
    }
    let found = select_in_scope(space, scope).all(tx).await?;
    let ids: Vec<MemoryId> = found.into_iter().map(|it| it.id).collect();
    if let DeletionScope::Memory(_) = scope {
        delete_without_undo(tx, &ids, version, now).await?;
    } else {
        // The trigger counts the deletion.
        for part in ids.chunks(MAX_IDS) {
            Entity::delete_many()
                .filter(Column::Id.is_in(part.iter().copied()))
                .exec(tx)
                .await?;
        }
    }
    Ok(ids)
}

/// Keeps the memories of a locked conversation that will be deleted, if the same was said in another one.
/// Returns the version of the space's memories that they get; `None` if the conversation has no memories.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn keep_shared_memories(
    tx: &impl ConnectionTrait,
    row: &conversation::Model,
) -> Result<Option<i64>, DbErr> {
    let stored = Entity::find().filter(is_stored_in(row.id));
    if stored.one(tx).await?.is_none() {
        return Ok(None);
    }
    let version = space::next_memory_version(tx, row.space_id).await?;
    other_sources::reassign_conversation(tx, row.id, None, version).await?;
    Ok(Some(version))
}

/// Like [`keep_shared_memories`], and marks the others as deleted, because a job may need some time to delete
/// their rows, and until then the same can be learned elsewhere.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn hide_memories(
    tx: &impl ConnectionTrait,
    row: &conversation::Model,
    now: Timestamp,
) -> Result<(), DbErr> {
    let Some(version) = keep_shared_memories(tx, row).await? else {
        return Ok(());
    };
    set_deleted(version, now)
        .filter(is_stored_in(row.id))
        .exec(tx)
        .await
        .map(drop)
}

fn is_stored_in(conversation: ConversationId) -> Condition {
    Condition::all()
        .add(Column::ConversationId.eq(conversation))
        .add(Column::DeletedAt.is_null())
}

/// Deletes the tasks and summaries of a space, or of one of its conversations. What was said so far is no
/// longer learned from or summarized.
async fn forget_messages(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    only: Option<ConversationId>,
) -> Result<(), DbErr> {
    summary_deletion::forget(tx, space, only).await?;
    task_deletion::delete_all(tx, space, only).await
}

/// Deletes memories of everyone that newer memories replace, except those that people keep. Returns
/// the version of the space's memories that they get; `None` if there are none.
///
/// # Errors
/// Returns an error when the database fails.
pub(super) async fn delete_replaced(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    ids: &[MemoryId],
    now: Timestamp,
) -> Result<Option<i64>, DbErr> {
    if ids.is_empty() {
        return Ok(None);
    }
    let version = space::next_memory_version(tx, space).await?;
    // After the version, which locks the space, because a person may have pinned one in between.
    let found = memory::list_in_space(tx, space, ids.iter().copied()).await?;
    let replaced = found.iter().filter(|it| {
        let is_everyones = it.space_membership_id.is_none() && it.audience_hash.is_empty();
        is_everyones && !it.is_kept_by_people()
    });
    let replaced: Vec<MemoryId> = replaced.map(|it| it.id).collect();
    delete_without_undo(tx, &replaced, version, now).await?;
    Ok(Some(version))
}

/// Deletes the given memories that belong to this member and are not pinned. Returns the version of the
/// space's memories that they get; `None` if there are none.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn delete_own(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    owner: MembershipId,
    ids: Vec<MemoryId>,
    now: Timestamp,
) -> Result<Option<i64>, DbErr> {
    if ids.is_empty() {
        return Ok(None);
    }
    let version = space::next_memory_version(tx, space).await?;
    let own = memory::select_for_space(space)
        .filter(Column::Id.is_in(ids))
        .filter(Column::SpaceMembershipId.eq(owner))
        .filter(Column::IsPinned.eq(false));
    let own: Vec<MemoryId> = own.all(tx).await?.into_iter().map(|it| it.id).collect();
    delete_without_undo(tx, &own, version, now).await?;
    Ok(Some(version))
}

/// Marks memories as deleted, and deletes their sources, so that no restored message restores them.
async fn delete_without_undo(
    tx: &impl ConnectionTrait,
    ids: &[MemoryId],
    version: i64,
    now: Timestamp,
) -> Result<(), DbErr> {
    mark_deleted(tx, ids, version, now).await?;
    memory_source::Entity::delete_many()
        .filter(memory_source::Column::MemoryId.is_in(ids.iter().copied()))
        .exec(tx)
        .await
        .map(drop)
}

/// Counts the memories that [`delete`] would delete and that `viewer` may know to exist.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn count_in_scope(
    db: &impl ConnectionTrait,
    space: SpaceId,
    scope: DeletionScope,
    viewer: Option<MembershipId>,
) -> Result<u64, DbErr> {
    let stored = select_in_scope(space, scope)
        .filter(Column::DeletedAt.is_null())
        .filter(memory::is_visible_to(space, viewer));
    stored.count(db).await
}

fn select_in_scope(space: SpaceId, scope: DeletionScope) -> Select<Entity> {
    let all = match scope {
        DeletionScope::Memory(_) => memory::select_for_space(space),
        // Includes deleted memories that could be restored.
        _ => Entity::find().filter(Column::SpaceId.eq(space)),
    };
    all.filter(is_in_scope(scope))
}

fn is_in_scope(scope: DeletionScope) -> Condition {
    let condition = Condition::all();
    match scope {
        DeletionScope::Memory(id) => condition.add(Column::Id.eq(id)),
        DeletionScope::Member(id) => {
            let is_own = Column::SpaceMembershipId.eq(id);
            let is_said = Column::Id.in_subquery(made_from_messages_of(id));
            condition.add(Column::AboutMembershipId.eq(id).or(is_own).or(is_said))
        }
        DeletionScope::Conversation(id) => condition
            .add(Column::ConversationId.eq(id))
            .add(Column::Id.not_in_subquery(other_sources::select_shared_ids(id))),
        DeletionScope::All => condition,
    }
}

/// Selects the ids of the memories of which a message of this member is a source.
fn made_from_messages_of(member: MembershipId) -> SelectStatement {
    let source = |column| (memory_source::Entity, column);
    Query::select()
        .column(source(memory_source::Column::MemoryId))
        .from(memory_source::Entity)
        .inner_join(
            message::Entity,
            Expr::col((message::Entity, message::Column::Id))
                .equals(source(memory_source::Column::MessageId)),
        )
        .and_where(Expr::col((message::Entity, message::Column::SpaceMembershipId)).eq(member))
        .to_owned()
}

/// Marks memories as deleted.
pub(super) async fn mark_deleted(
    tx: &impl ConnectionTrait,
    ids: &[MemoryId],
    version: i64,
    now: Timestamp,
) -> Result<(), DbErr> {
    if ids.is_empty() {
        return Ok(());
    }
    set_deleted(version, now)
        .filter(Column::Id.is_in(ids.iter().copied()))
        .exec(tx)
        .await
        .map(drop)
}

fn set_deleted(version: i64, now: Timestamp) -> UpdateMany<Entity> {
    Entity::update_many()
        .col_expr(Column::DeletedAt, Expr::value(now))
        .col_expr(Column::SpaceVersion, Expr::value(version))
}

/// Deletes the rows of memories that were deleted before this time, at most a batch of them. Returns
/// how many.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn purge(tx: &impl ConnectionTrait, before: Timestamp) -> Result<u64, DbErr> {
    let expired: Vec<MemoryId> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::DeletedAt.lt(before))
        .limit(MAX_IDS as u64)
        .into_tuple()
        .all(tx)
        .await?;
    let deleted = Entity::delete_many().filter(Column::Id.is_in(expired));
    Ok(deleted.exec(tx).await?.rows_affected)
}
