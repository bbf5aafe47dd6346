//! Reads which memories have no vector of a model, stores vectors, and deletes those of models that a
//! space no longer uses.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{EmbeddingModelId, MembershipId, MemoryId, SpaceId};
use recall::quantized_vector::QuantizedVector;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect, Select,
};

use crate::memories::embedding::model_choice::{COSINE_RANGE, EmbeddingChoice};
use crate::memories::memory::{Column, Entity};
use crate::memories::memory_store::LOCAL_MODEL;
use crate::memories::tasks::{embedding_task, memory_task, task_queue};
use crate::memories::{embedding_model, memory, memory_vector};
use crate::spaces::space;

/// The rows of a page. Vectors are loaded in pages, because they need several times as much memory
/// before they are quantized.
const PAGE: u64 = 2_000;
/// The maximum number of rows that one statement deletes.
const MAX_DELETED: u64 = 1_000;

/// A memory without a vector.
#[derive(Clone, Debug, FromQueryResult)]
pub struct UnembeddedMemory {
    pub id: MemoryId,
    pub content: String,
    pub content_hash: String,
}

/// The vector of a memory, and the hash of the content it was computed from.
#[derive(Clone, Debug)]
pub struct NewVector {
    pub memory: MemoryId,
    pub content_hash: String,
    /// 32-bit floats, little-endian.
    pub embedding: Vec<u8>,
}

/// Returns memories of a space without a vector of this model, the newest first. `before`: only those
/// with a lower id. `model`: `None` for a model that has no vectors yet.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_unembedded(
    db: &impl ConnectionTrait,
    space: SpaceId,
    model: Option<EmbeddingModelId>,
    before: Option<MemoryId>,
    limit: u64,
) -> Result<Vec<UnembeddedMemory>, DbErr> {
    let mut found = memory::select_for_space(space);
    if let Some(model) = model {
        found = found.filter(Expr::exists(vectors_of_memory(model)).not());
    }
    if let Some(before) = before {
        found = found.filter(Column::Id.lt(before));
    }
    found
        .select_only()
        .columns([Column::Id, Column::Content, Column::ContentHash])
        .order_by_desc(Column::Id)
        .limit(limit)
        .into_model()
        .all(db)
        .await
}

/// Selects the vector of the memory of the outer query.
fn vectors_of_memory(model: EmbeddingModelId) -> SelectStatement {
    let memory = (memory_vector::Entity, memory_vector::Column::MemoryId);
    let of_model = (
        memory_vector::Entity,
        memory_vector::Column::EmbeddingModelId,
    );
    Query::select()
        .expr(Expr::value(1))
        .from(memory_vector::Entity)
        .and_where(Expr::col(memory).equals((Entity, Column::Id)))
        .and_where(Expr::col(of_model).eq(model))
        .to_owned()
}

/// Counts the memories of a space that `viewer` may know to exist. Returns their number, and how many of them
/// have a vector of this model.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn count(
    db: &impl ConnectionTrait,
    space: SpaceId,
    model: Option<EmbeddingModelId>,
    viewer: Option<MembershipId>,
) -> Result<(u64, u64), DbErr> {
    let visible = memory::select_for_space(space).filter(memory::is_visible_to(space, viewer));
    let total = visible.clone().count(db).await?;
    let Some(model) = model else {
        return Ok((total, 0));
    };
    let embedded = visible.filter(Expr::exists(vectors_of_memory(model)));
    Ok((total, embedded.count(db).await?))
}

/// Returns the vectors of this model of memories that changed after a version of the space; `None`: of
/// all memories of the space.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load_quantized(
    db: &impl ConnectionTrait,
    space: SpaceId,
    model: EmbeddingModelId,
    after_version: Option<i64>,
) -> Result<HashMap<MemoryId, QuantizedVector>, DbErr> {
    let mut vectors = HashMap::new();
    let mut last = MemoryId(0);
    loop {
        let page: Vec<(MemoryId, Vec<u8>)> = select_vectors(space, after_version)
            .filter(memory_vector::Column::EmbeddingModelId.eq(model))
            .filter(memory_vector::Column::MemoryId.gt(last))
            .order_by_asc(memory_vector::Column::MemoryId)
            .limit(PAGE)
            .into_tuple()
            .all(db)
            .await?;
        let Some((id, _)) = page.last() else {
            return Ok(vectors);
        };
        last = *id;
        vectors.extend(page.into_iter().filter_map(|(id, bytes)| {
            let vector = memory_vector::from_bytes(&bytes)?;
            Some((id, QuantizedVector::new(&vector)))
        }));
    }
}

fn select_vectors(space: SpaceId, after_version: Option<i64>) -> Select<memory_vector::Entity> {
    let mut of_space = Query::select();
    of_space
        .column(Column::Id)
        .from(Entity)
        .and_where(Expr::col(Column::SpaceId).eq(space));
    if let Some(version) = after_version {
        of_space.and_where(Expr::col(Column::SpaceVersion).gt(version));
    }
    memory_vector::Entity::find()
        .select_only()
        .columns([
            memory_vector::Column::MemoryId,
            memory_vector::Column::Embedding,
        ])
        .filter(memory_vector::Column::MemoryId.in_subquery(of_space))
}

/// Stores vectors of a model with this number of dimensions for a held task, except those of memories
/// whose content has changed since. The space uses this model from now on.
///
/// Returns the row of the model; `None` if the task is no longer held and nothing was stored.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn store(
    tx: &impl ConnectionTrait,
    task: &memory_task::Model,
    (choice, dimensions): (&EmbeddingChoice, usize),
    vectors: Vec<NewVector>,
    now: Timestamp,
) -> Result<Option<embedding_model::Model>, DbErr> {
    let space = space::begin_memory_change(tx, task.space_id).await?;
    if !task_queue::is_held(tx, task).await? {
        return Ok(None);
    }
    let hash = choice.base_url_hash();
    let model = embedding_model::NewModel {
        name: &choice.model,
        base_url_hash: &hash,
        dimensions,
        cosine_range: COSINE_RANGE,
    };
    let model = embedding_model::find_or_insert(tx, model).await?;
    let current = list_hashes(tx, space.id, &vectors).await?;
    let is_current = |it: &NewVector| current.get(&it.memory) == Some(&it.content_hash);
    let vectors: Vec<NewVector> = vectors.into_iter().filter(is_current).collect();
    if !vectors.is_empty() {
        let ids: Vec<MemoryId> = vectors.iter().map(|it| it.memory).collect();
        insert(tx, model.id, vectors, now).await?;
        Entity::update_many()
            .col_expr(Column::SpaceVersion, Expr::value(space.memory_version))
            .filter(Column::Id.is_in(ids))
            .exec(tx)
            .await?;
    }
    if space.embedding_model_id != Some(model.id) {
        space::set_embedding_model(tx, space.id, Some(model.id)).await?;
        if space.embedding_model_id.is_some() {
            embedding_task::require_cleanup(tx, task).await?;
        }
    }
    Ok(Some(model))
}

async fn list_hashes(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    vectors: &[NewVector],
) -> Result<HashMap<MemoryId, String>, DbErr> {
    let hashes: Vec<(MemoryId, String)> = Entity::find()
        .select_only()
        .columns([Column::Id, Column::ContentHash])
        .filter(Column::SpaceId.eq(space))
        .filter(Column::Id.is_in(vectors.iter().map(|it| it.memory)))
        .into_tuple()
        .all(tx)
        .await?;
    Ok(hashes.into_iter().collect())
}

async fn insert(
    tx: &impl ConnectionTrait,
    model: EmbeddingModelId,
    vectors: Vec<NewVector>,
    now: Timestamp,
) -> Result<(), DbErr> {
    let rows = vectors.into_iter().map(|it| memory_vector::ActiveModel {
        memory_id: Set(it.memory),
        embedding_model_id: Set(model),
        embedding: Set(it.embedding),
        created_at: Set(now),
    });
    // An earlier worker may have stored the same vector before its lease expired.
    memory_vector::Entity::insert_many(rows)
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .exec_without_returning(tx)
        .await
        .map(drop)
}

/// Deletes some of the vectors of a space that are neither of the local model nor of the model that the
/// space uses. Returns how many.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn delete_unused(tx: &impl ConnectionTrait, space: SpaceId) -> Result<u64, DbErr> {
    let used = space::find_visible(tx, space).await?;
    let used = used.and_then(|it| it.embedding_model_id);
    let local = embedding_model::find_or_insert(tx, LOCAL_MODEL).await?;
    let kept = [Some(local.id), used];
    let is_unused = memory_vector::Column::EmbeddingModelId.is_not_in(kept.into_iter().flatten());
    let ids: Vec<(MemoryId, EmbeddingModelId)> = select_vectors(space, None)
        .select_only()
        .columns([
            memory_vector::Column::MemoryId,
            memory_vector::Column::EmbeddingModelId,
        ])
        .filter(is_unused.clone())
        .limit(MAX_DELETED)
        .into_tuple()
        .all(tx)
        .await?;
    let ids = ids.into_iter().map(|it| it.0);
    let deleted = memory_vector::Entity::delete_many().filter(
        Condition::all()
            .add(memory_vector::Column::MemoryId.is_in(ids))
            .add(is_unused),
    );
    Ok(deleted.exec(tx).await?.rows_affected)
}
