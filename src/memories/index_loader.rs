//! Loads the memories of a space for its index: all of them, or those that changed after a version.

use std::collections::HashMap;

use base::ids::{ConversationId, EmbeddingModelId, MembershipId, MemoryId, SpaceId};
use recall::entry::{EmbeddedMemory, MemoryEntry, MemorySource};
use recall::index::MemoryChange;
use recall::quantized_vector::QuantizedVector;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement, SimpleExpr};
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};

use crate::conversations::conversation;
use crate::conversations::conversation::ConversationKind;
use crate::memories::embedding::vector_store;
use crate::memories::memory::{Column, Entity, MemoryOrigin};
use crate::memories::{memory_audience, memory_vector};

/// Which memories of a space to load.
#[derive(Clone, Copy, Debug)]
pub struct IndexQuery {
    pub space: SpaceId,
    /// Only memories that changed after this version; `None`: all that are not deleted.
    pub after_version: Option<i64>,
    /// The model whose vectors every memory has; `None`: there are no vectors.
    pub model: Option<EmbeddingModelId>,
    /// The provider's model of the space.
    pub provider_model: Option<EmbeddingModelId>,
}

#[derive(FromQueryResult)]
struct IndexRow {
    id: MemoryId,
    space_membership_id: Option<MembershipId>,
    origin: MemoryOrigin,
    conversation_id: Option<ConversationId>,
    source_from_seq: Option<i64>,
    source_to_seq: Option<i64>,
    content: String,
    importance: f64,
    audience_hash: String,
    is_pinned: bool,
    token_count: i64,
    last_recalled_at: Option<i64>,
    is_gone: bool,
    conversation_kind: Option<ConversationKind>,
    embedding: Option<Vec<u8>>,
}

/// Loaded memories, whose local vectors are not quantized yet.
pub struct LoadedMemories {
    rows: Vec<IndexRow>,
    audiences: HashMap<MemoryId, Vec<MembershipId>>,
    provider_vectors: HashMap<MemoryId, QuantizedVector>,
}

/// Loads the changes of the memories of a space.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load(db: &impl ConnectionTrait, query: IndexQuery) -> Result<LoadedMemories, DbErr> {
    let rows = db.query_all(&select(query)).await?;
    let rows: Result<Vec<IndexRow>, DbErr> = rows
        .iter()
        .map(|it| IndexRow::from_query_result(it, ""))
        .collect();
    let rows = rows?;
    let audiences = match rows.iter().any(|it| !it.audience_hash.is_empty()) {
        true => memory_audience::load_for_space(db, query.space).await?,
        false => HashMap::new(),
    };
    let provider_vectors = match query.provider_model {
        Some(model) => {
            vector_store::load_quantized(db, query.space, model, query.after_version).await?
        }
        None => HashMap::new(),
    };
    Ok(LoadedMemories {
        rows,
        audiences,
        provider_vectors,
    })
}

impl LoadedMemories {
    /// Returns the changes for an index. Converting the vectors is CPU work.
    pub fn into_changes(mut self) -> Vec<MemoryChange> {
        let changes = self.rows.into_iter().map(|row| match row.is_gone {
            true => MemoryChange::Removed(row.id),
            false => {
                let audience = self.audiences.remove(&row.id);
                let vector = row.embedding.as_deref().and_then(memory_vector::from_bytes);
                MemoryChange::Stored(EmbeddedMemory {
                    vector: vector.map(|it| QuantizedVector::new(&it)),
                    provider_vector: self.provider_vectors.remove(&row.id),
                    entry: row.into_entry(audience),
                })
            }
        });
        changes.collect()
    }
}

fn select(query: IndexQuery) -> SelectStatement {
    let of_memory = |column: Column| Expr::col((Entity, column));
    let vector = (memory_vector::Entity, memory_vector::Column::Embedding);
    let is_vector = Expr::col((memory_vector::Entity, memory_vector::Column::MemoryId))
        .equals((Entity, Column::Id))
        .and(
            Expr::col((
                memory_vector::Entity,
                memory_vector::Column::EmbeddingModelId,
            ))
            .eq(query.model),
        );
    let is_conversation = Expr::col((conversation::Entity, conversation::Column::Id))
        .equals((Entity, Column::ConversationId));
    let columns = [
        Column::Id,
        Column::SpaceMembershipId,
        Column::Origin,
        Column::ConversationId,
        Column::SourceFromSeq,
        Column::SourceToSeq,
        Column::Content,
        Column::Importance,
        Column::AudienceHash,
        Column::IsPinned,
        Column::TokenCount,
        Column::LastRecalledAt,
    ];
    let mut select = Query::select();
    select
        .columns(columns.map(|it| (Entity, it)))
        .expr_as(is_gone(), "is_gone")
        .expr_as(
            Expr::col((conversation::Entity, conversation::Column::Kind)),
            "conversation_kind",
        )
        .expr_as(Expr::col(vector), "embedding")
        .from(Entity)
        .left_join(memory_vector::Entity, is_vector)
        .left_join(conversation::Entity, is_conversation)
        .and_where(of_memory(Column::SpaceId).eq(query.space));
    match query.after_version {
        Some(version) => select.and_where(of_memory(Column::SpaceVersion).gt(version)),
        None => select.and_where(is_gone().not()),
    };
    select
}

/// Whether a memory was deleted, or its conversation is being deleted.
fn is_gone() -> SimpleExpr {
    let is_hidden = Expr::col((conversation::Entity, conversation::Column::IsHidden));
    let is_deleted = Expr::col((Entity, Column::DeletedAt)).is_not_null();
    is_deleted.or(is_hidden.if_null(false))
}

impl IndexRow {
    fn into_entry(self, audience: Option<Vec<MembershipId>>) -> MemoryEntry {
        let source = || {
            Some(MemorySource {
                conversation: self.conversation_id?,
                from_seq: match self.origin {
                    // A memory that a tool call added is not in the text of its message, so it is
                    // recalled even if the history contains the message.
                    MemoryOrigin::Tool => 0,
                    _ => self.source_from_seq?,
                },
                to_seq: self.source_to_seq?,
                is_branch: self.conversation_kind == Some(ConversationKind::Branch),
            })
        };
        MemoryEntry {
            owner: self.space_membership_id,
            // A memory with an audience of which nobody is left is known to nobody.
            audience: (!self.audience_hash.is_empty()).then(|| audience.unwrap_or_default().into()),
            source: source(),
            importance: self.importance as f32,
            is_pinned: self.is_pinned,
            tokens: self.token_count,
            last_recalled_at: self.last_recalled_at.unwrap_or(0),
            ..MemoryEntry::new(self.id, &self.content)
        }
    }
}
