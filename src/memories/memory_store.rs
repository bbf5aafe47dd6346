//! Writes memories: inserts and changes them, and counts their recalls. `memory_deletion.rs` deletes
//! them.
//!
//! **Invariant:** each transaction first takes the next version of the space's memories, which locks
//! the space, and gives this version to every memory that it changes. So the memories of a space
//! change one transaction after the other, and an index that has loaded one version finds all later
//! changes.

use std::collections::{HashMap, HashSet};

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MemoryId, MessageId, SpaceId, UserId};
use llm::tokens;
use recall::content;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter,
};

use crate::db::connect::Db;
use crate::memories::embedding_model::NewModel;
use crate::memories::memory::{Column, MemoryKind, MemoryOrigin, Model};
use crate::memories::tasks::embedding_task;
use crate::memories::{embedding_model, memory, memory_source, memory_vector, other_sources};
use crate::spaces::space;

/// The tokens of a line in a prompt in addition to its content: its kind and age.
const LINE_TOKENS: i64 = 12;

/// A memory to store.
#[derive(Clone, Debug)]
pub struct NewMemory {
    pub owner: Option<MembershipId>,
    pub about: Option<MembershipId>,
    /// The messages from which it is made.
    pub source: Option<NewSource>,
    pub kind: MemoryKind,
    pub origin: MemoryOrigin,
    /// One line.
    pub content: String,
    pub importance: f64,
    pub is_pinned: bool,
    pub created_by: Option<UserId>,
}

/// The messages of a new memory.
#[derive(Clone, Debug)]
pub struct NewSource {
    pub conversation: ConversationId,
    pub from_seq: i64,
    pub to_seq: i64,
    pub messages: Vec<MessageId>,
}

/// A memory with its hash and embedding, computed before the transaction.
#[derive(Clone, Debug)]
pub struct PreparedMemory {
    new: NewMemory,
    values: ContentValues,
    /// `None`: the time at which it is stored.
    created_at: Option<Timestamp>,
}

impl PreparedMemory {
    /// Computes hash, tokens and embedding.
    pub fn new(new: NewMemory) -> Self {
        Self {
            values: ContentValues::new(&new.content),
            created_at: None,
            new,
        }
    }

    /// Returns the hash of its content.
    pub fn content_hash(&self) -> &str {
        &self.values.content_hash
    }

    /// Returns the memory with the messages from which it is made.
    pub fn with_source(mut self, source: NewSource) -> Self {
        self.new.source = Some(source);
        self
    }

    /// Sets the time of creation of a memory that is older than its row.
    pub fn with_created_at(self, created_at: Option<Timestamp>) -> Self {
        Self { created_at, ..self }
    }

    /// Returns the hash and owner by which [`insert`] recognizes an existing memory.
    pub fn key(&self) -> (String, Option<MembershipId>) {
        (self.values.content_hash.clone(), self.new.owner)
    }
}

/// What is computed from the content of a memory, before the transaction.
#[derive(Clone, Debug)]
struct ContentValues {
    content_hash: String,
    tokens: i64,
    vector: Vec<u8>,
}

impl ContentValues {
    fn new(content: &str) -> Self {
        Self {
            content_hash: content::content_hash(content),
            tokens: tokens::count(content) + LINE_TOKENS,
            vector: memory_vector::to_bytes(&local_embedding::embed(content)),
        }
    }
}

/// What was stored.
#[derive(Clone, Debug, Default)]
pub struct StoredMemories {
    /// The memories that did not exist.
    pub new: Vec<Model>,
    /// The version of the space's memories that new and changed ones got; `None` if none was stored or
    /// changed.
    pub version: Option<i64>,
}

/// Stores one memory. Returns `None` if it already exists.
///
/// # Errors
/// Returns an error when the database fails or the space does not exist.
pub async fn insert_one(
    db: &Db,
    space: SpaceId,
    memory: NewMemory,
    now: Timestamp,
) -> Result<Option<Model>, DbErr> {
    let memory = PreparedMemory::new(memory);
    let stored: StoredMemories = db
        .write(move |tx| Box::pin(async move { insert(tx, space, vec![memory], now).await }))
        .await?;
    Ok(stored.new.into_iter().next())
}

/// Stores the memories that do not exist yet. If a memory exists, messages of another conversation are added
/// to its sources; it changes if it then names that conversation.
///
/// # Errors
/// Returns an error when the database fails or the space does not exist.
pub async fn insert(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    memories: Vec<PreparedMemory>,
    now: Timestamp,
) -> Result<StoredMemories, DbErr> {
    if memories.is_empty() {
        return Ok(StoredMemories::default());
    }
    let locked = space::begin_memory_change(tx, space).await?;
    let version = locked.memory_version;
    let known = list_known(tx, space, &memories).await?;
    let mut new_keys = HashSet::new();
    let model = embedding_model::find_or_insert(tx, LOCAL_MODEL).await?;
    let (mut stored, mut is_changed) = (Vec::new(), false);
    for it in memories {
        if let Some(row) = known.get(&it.key()) {
            if let Some(it) = it.new.source {
                let source = (it.conversation, it.messages);
                is_changed |= other_sources::add_sources(tx, row, source, version).await?;
            }
            continue;
        }
        if !new_keys.insert(it.key()) {
            continue;
        }
        let (new, values) = (it.new, it.values);
        let (source, messages) = match new.source {
            Some(it) => (Some((it.conversation, it.from_seq, it.to_seq)), it.messages),
            None => (None, Vec::new()),
        };
        let row = Model {
            id: MemoryId(0), // assigned by the database
            space_id: space,
            space_membership_id: new.owner,
            about_membership_id: new.about,
            conversation_id: source.map(|it| it.0),
            source_from_seq: source.map(|it| it.1),
            source_to_seq: source.map(|it| it.2),
            kind: new.kind,
            origin: new.origin,
            content: new.content,
            importance: new.importance,
            content_hash: values.content_hash,
            audience_hash: String::new(),
            is_pinned: new.is_pinned,
            token_count: values.tokens,
            recall_count: 0,
            last_recalled_at: None,
            last_recall_run_id: None,
            created_by: new.created_by,
            edited_by: None,
            version: 1,
            space_version: version,
            created_at: it.created_at.unwrap_or(now),
            updated_at: now,
            deleted_at: None,
        };
        let mut row = row.into_active_model().reset_all();
        row.id = NotSet;
        let row = row.insert(tx).await?;
        insert_vector(tx, &model, row.id, values.vector, now).await?;
        memory_source::insert(tx, row.id, messages).await?;
        stored.push(row);
    }
    if !stored.is_empty() {
        embedding_task::request(tx, &locked, now).await?;
    }
    is_changed |= !stored.is_empty();
    Ok(StoredMemories {
        new: stored,
        version: is_changed.then_some(version),
    })
}

/// Returns which of these memories exist, by hash and owner.
async fn list_known(
    tx: &impl ConnectionTrait,
    space: SpaceId,
    memories: &[PreparedMemory],
) -> Result<HashMap<(String, Option<MembershipId>), Model>, DbErr> {
    let hashes = memories.iter().map(PreparedMemory::content_hash);
    let known = memory::select_for_space(space)
        .filter(Column::ContentHash.is_in(hashes))
        .filter(Column::AudienceHash.eq(""))
        .all(tx)
        .await?;
    let key = |it: &Model| (it.content_hash.clone(), it.space_membership_id);
    Ok(known.into_iter().map(|it| (key(&it), it)).collect())
}

/// Returns the memory of this owner with this content, if it exists.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find_by_content(
    db: &impl ConnectionTrait,
    space: SpaceId,
    owner: Option<MembershipId>,
    content: &str,
) -> Result<Option<Model>, DbErr> {
    let of_owner = match owner {
        Some(id) => Column::SpaceMembershipId.eq(id),
        None => Column::SpaceMembershipId.is_null(),
    };
    memory::select_for_space(space)
        .filter(Column::ContentHash.eq(content::content_hash(content)))
        .filter(Column::AudienceHash.eq(""))
        .filter(of_owner)
        .one(db)
        .await
}

/// The local embedding model.
pub const LOCAL_MODEL: NewModel<'static> = NewModel {
    name: local_embedding::MODEL_NAME,
    base_url_hash: "",
    dimensions: local_embedding::DIMENSIONS,
    cosine_range: local_embedding::COSINE_RANGE,
};

async fn insert_vector(
    tx: &impl ConnectionTrait,
    model: &embedding_model::Model,
    memory: MemoryId,
    embedding: Vec<u8>,
    now: Timestamp,
) -> Result<(), DbErr> {
    let row = memory_vector::ActiveModel {
        memory_id: Set(memory),
        embedding_model_id: Set(model.id),
        embedding: Set(embedding),
        created_at: Set(now),
    };
    let insert = memory_vector::Entity::insert(row);
    insert.exec_without_returning(tx).await.map(drop)
}

/// What a person changes in a memory; `None` keeps the value.
#[derive(Clone, Debug, Default)]
pub struct MemoryEdit {
    /// One line.
    pub content: Option<String>,
    pub kind: Option<MemoryKind>,
    pub importance: Option<f64>,
    pub is_pinned: Option<bool>,
    pub about: Option<Option<MembershipId>>,
}

/// The result of a change.
#[derive(Clone, Debug)]
pub enum MemoryUpdate {
    Updated(Model),
    /// The memory, which has another version than expected.
    Stale(Model),
    /// Another memory of the same owner has this content.
    Duplicate,
}

/// Changes a memory if it has the version that the person saw; `by` is the person and that version.
/// Returns `None` if it does not exist.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn update(
    db: &Db,
    space: SpaceId,
    id: MemoryId,
    change: MemoryEdit,
    by: (UserId, i64),
    now: Timestamp,
) -> Result<Option<MemoryUpdate>, DbErr> {
    let values = change.content.as_deref().map(ContentValues::new);
    db.write(move |tx| {
        Box::pin(async move { update_in(tx, (space, id), (change, values), by, now).await })
    })
    .await
}

async fn update_in(
    tx: &impl ConnectionTrait,
    (space, id): (SpaceId, MemoryId),
    (change, values): (MemoryEdit, Option<ContentValues>),
    (by, expected_version): (UserId, i64),
    now: Timestamp,
) -> Result<Option<MemoryUpdate>, DbErr> {
    let locked = space::begin_memory_change(tx, space).await?;
    let Some(mut row) = memory::find_in_space(tx, space, id).await? else {
        return Ok(None);
    };
    if row.version != expected_version {
        return Ok(Some(MemoryUpdate::Stale(row)));
    }
    let content = change.content.filter(|it| *it != row.content);
    if let Some((content, values)) = content.zip(values) {
        let owner = row.space_membership_id;
        let same = find_by_content(tx, space, owner, &content).await?;
        if same.is_some_and(|it| it.id != id) {
            return Ok(Some(MemoryUpdate::Duplicate));
        }
        row.content_hash = values.content_hash;
        row.token_count = values.tokens;
        row.edited_by = Some(by);
        replace_vectors(tx, id, values.vector, now).await?;
        embedding_task::request(tx, &locked, now).await?;
        row.content = content;
    }
    row.kind = change.kind.unwrap_or(row.kind);
    row.importance = change.importance.unwrap_or(row.importance);
    row.is_pinned = change.is_pinned.unwrap_or(row.is_pinned);
    row.about_membership_id = change.about.unwrap_or(row.about_membership_id);
    row.version += 1;
    row.space_version = locked.memory_version;
    row.updated_at = now;
    let row = row.into_active_model().reset_all();
    row.update(tx).await.map(MemoryUpdate::Updated).map(Some)
}

/// Replaces the vectors of a memory by the local vector of its new content.
async fn replace_vectors(
    tx: &impl ConnectionTrait,
    id: MemoryId,
    vector: Vec<u8>,
    now: Timestamp,
) -> Result<(), DbErr> {
    let of_memory = memory_vector::Column::MemoryId.eq(id);
    memory_vector::Entity::delete_many()
        .filter(of_memory)
        .exec(tx)
        .await?;
    let model = embedding_model::find_or_insert(tx, LOCAL_MODEL).await?;
    insert_vector(tx, &model, id, vector, now).await
}
