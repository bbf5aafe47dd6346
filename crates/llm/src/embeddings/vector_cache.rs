//! The vectors of the texts that a client embedded last.
//!
//! **Invariant:** the cache is only in memory, and holds no text: a vector is found by the SHA-256
//! of its text.
//!
//! **Invariant:** all vectors have the same number of dimensions.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use sha2::{Digest, Sha256};

/// Maximum number of cached vectors. With 3,072 dimensions they use 12 MiB.
const MAX_VECTORS: u64 = 1_024;

/// The SHA-256 of a text.
pub(crate) type TextHash = [u8; 32];

/// Returns the key of a text.
pub(crate) fn hash_text(text: &str) -> TextHash {
    Sha256::digest(text.as_bytes()).into()
}

/// A cache that evicts the vectors that were not used for the longest time.
pub(super) struct VectorCache {
    vectors: Cache<TextHash, Arc<[f32]>>,
    /// The dimensions of the last vectors.
    n_dimensions: AtomicUsize,
}

impl VectorCache {
    /// Creates an empty cache.
    pub(super) fn new() -> Self {
        let vectors = Cache::builder()
            .max_capacity(MAX_VECTORS)
            .eviction_policy(EvictionPolicy::lru());
        Self {
            vectors: vectors.build(),
            n_dimensions: AtomicUsize::new(0),
        }
    }

    /// Returns the vector of a text.
    pub(super) fn find(&self, hash: &TextHash) -> Option<Arc<[f32]>> {
        self.vectors.get(hash)
    }

    /// Adds the vectors of a response, and removes those of other dimensions: the provider replaced
    /// its model under the same name.
    pub(super) fn insert(&self, vectors: &[(TextHash, Arc<[f32]>)]) {
        let Some((_, first)) = vectors.first() else {
            return;
        };
        if self.n_dimensions.swap(first.len(), Ordering::Relaxed) != first.len() {
            self.clear();
        }
        for (hash, vector) in vectors {
            self.vectors.insert(*hash, Arc::clone(vector));
        }
        // Otherwise the limit would be exceeded until later insertions.
        self.vectors.run_pending_tasks();
    }

    /// Removes all vectors.
    pub(super) fn clear(&self) {
        self.vectors.invalidate_all();
    }
}

impl fmt::Debug for VectorCache {
    /// Shows nothing of the contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VectorCache").finish_non_exhaustive()
    }
}
