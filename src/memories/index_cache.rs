//! Keeps the memories of spaces in memory, as indexes that are searched.
//!
//! **Invariant:** an index is used only if it has at least the version that the row of the space has. A newer
//! version is loaded as the difference, unless a memory was deleted without a trace since; so a
//! change on any node is effective as soon as it is committed.
//!
//! **Invariant:** an index names the model of the vectors of a provider in it. When the model of a space
//! changes, all its memories are loaded again.

use std::sync::Arc;

use base::ids::{EmbeddingModelId, SpaceId};
use moka::sync::Cache;
use recall::index::MemoryIndex;
use tokio::sync::Mutex;

use crate::db::connect::Db;
use crate::memories::embedding::query_embedding::QueryEmbedder;
use crate::memories::error::MemoryError;
use crate::memories::index_loader::IndexQuery;
use crate::memories::memory_store::LOCAL_MODEL;
use crate::memories::metrics::memory_metrics::MemoryMetrics;
use crate::memories::{embedding_model, index_loader};
use crate::memory_limited_cache::memory_limited_cache;
use crate::spaces::space;

/// The approximate memory of all indexes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Loads of different spaces rarely wait for each other.
const N_LOCKS: usize = 64;

/// The memories of a space.
#[derive(Clone, Debug, Default)]
pub struct SpaceIndex {
    pub memories: MemoryIndex,
    /// The provider's model whose vectors the memories have; `None`: they have none.
    pub provider_model: Option<EmbeddingModelId>,
}

/// The indexes of a node. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct MemoryIndexes {
    /// Embeds queries for searches in the indexes.
    pub queries: QueryEmbedder,
    /// Counts the searches.
    pub metrics: MemoryMetrics,
    indexes: Cache<SpaceId, Arc<SpaceIndex>>,
    /// Held while a space is loaded, so that concurrent searches load it once.
    loading: Arc<[Mutex<()>; N_LOCKS]>,
}

impl MemoryIndexes {
    /// Creates an empty cache.
    pub fn new(queries: QueryEmbedder) -> Self {
        let n_bytes = |_: &SpaceId, index: &Arc<SpaceIndex>| index.memories.n_bytes();
        Self {
            queries,
            metrics: MemoryMetrics::default(),
            indexes: memory_limited_cache(MAX_BYTES, n_bytes),
            loading: Arc::new(std::array::from_fn(|_| Mutex::default())),
        }
    }

    /// Returns the index of a space as of the version in its row.
    ///
    /// # Errors
    /// Returns the database's error, or `TaskEnded`.
    pub async fn load(
        &self,
        db: &Db,
        space: &space::Model,
    ) -> Result<Arc<SpaceIndex>, MemoryError> {
        if let Some(index) = self.find_current(space) {
            return Ok(index);
        }
        let slot = usize::try_from(space.id.0).unwrap_or_default() % N_LOCKS;
        let _loading = self.loading[slot].lock().await;
        if let Some(index) = self.find_current(space) {
            return Ok(index);
        }
        let known = self.indexes.get(&space.id);
        // A row that was deleted without a trace is in no difference.
        let known = known.filter(|it| it.memories.version() >= space.memory_reset_version);
        let known = known.filter(|it| it.provider_model == space.embedding_model_id);
        // Before the first memory there is no model; its row cannot be inserted while reading.
        let model = embedding_model::find_by_name(db.reader(), LOCAL_MODEL).await?;
        let query = IndexQuery {
            space: space.id,
            after_version: known.as_ref().map(|it| it.memories.version()),
            model: model.map(|it| it.id),
            provider_model: space.embedding_model_id,
        };
        let loaded = index_loader::load(db.reader(), query).await?;
        let (known, version) = (known.unwrap_or_default(), space.memory_version);
        let build = move || SpaceIndex {
            memories: known.memories.with_changes(version, loaded.into_changes()),
            provider_model: query.provider_model,
        };
        let index = Arc::new(tokio::task::spawn_blocking(build).await?);
        self.indexes.insert(space.id, index.clone());
        Ok(index)
    }

    fn find_current(&self, space: &space::Model) -> Option<Arc<SpaceIndex>> {
        let index = self.indexes.get(&space.id);
        // A newer one has what was stored since the row of the space was read.
        index.filter(|it| it.memories.version() >= space.memory_version)
    }
}
