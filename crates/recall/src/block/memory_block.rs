//! A part of the memories of an index. The values that a search reads of each memory are in arrays, because
//! reading them from a separate allocation for each memory takes longer than comparing them. The rest of a
//! memory is read only if it is found.

use std::sync::Arc;

use base::ids::{MembershipId, MemoryId};

use crate::block::postings::Postings;
use crate::block::vector_rows::VectorRows;
use crate::entry::{EmbeddedMemory, MemoryEntry, ScopeKey};
use crate::quantized_vector::QuantizedVector;
use crate::terms::{term_hash, terms};

/// The maximum number of memories of a block. A change creates a block of at most this size again, which
/// takes about a millisecond. Small in tests, so that a few memories need several blocks.
pub const MAX_MEMORIES: usize = if cfg!(test) { 16 } else { 1_024 };

/// A memory with its terms and vectors, outside of a block.
pub struct BlockItem {
    pub entry: Arc<MemoryEntry>,
    terms: Vec<u64>,
    vector: Option<QuantizedVector>,
    provider_vector: Option<QuantizedVector>,
}

impl From<EmbeddedMemory> for BlockItem {
    fn from(memory: EmbeddedMemory) -> Self {
        let terms = terms(&memory.entry.content).into_iter();
        Self {
            terms: terms.map(|it| term_hash(&it)).collect(),
            entry: Arc::new(memory.entry),
            vector: memory.vector,
            provider_vector: memory.provider_vector,
        }
    }
}

/// Memories in arrays, ascending by id. Immutable.
#[derive(Debug)]
pub struct MemoryBlock {
    keys: Vec<ScopeKey>,
    /// The audiences of all memories, one list after the other.
    audiences: Vec<MembershipId>,
    postings: Postings,
    vectors: Vec<VectorRows>,
    provider_vectors: Vec<VectorRows>,
    entries: Vec<Arc<MemoryEntry>>,
}

impl MemoryBlock {
    /// Creates a block of at most [`MAX_MEMORIES`] memories, which are ascending by id.
    pub fn new(items: Vec<BlockItem>) -> Self {
        let mut audiences = Vec::new();
        let keys = items
            .iter()
            .map(|it| ScopeKey::new(&it.entry, &mut audiences));
        let keys = keys.collect();
        let numbered = || (0u16..).zip(&items);
        let terms = numbered().flat_map(|(at, it)| it.terms.iter().map(move |hash| (*hash, at)));
        let vectors = |of: fn(&BlockItem) -> Option<&QuantizedVector>| {
            let vectors = numbered().filter_map(|(at, it)| Some((at, of(it)?)));
            VectorRows::group(&vectors.collect::<Vec<_>>())
        };
        Self {
            keys,
            postings: Postings::new(terms),
            vectors: vectors(|it| it.vector.as_ref()),
            provider_vectors: vectors(|it| it.provider_vector.as_ref()),
            audiences,
            entries: items.into_iter().map(|it| it.entry).collect(),
        }
    }

    /// Returns its memories in the form from which another block is created.
    pub fn items(&self) -> Vec<BlockItem> {
        let terms = self.postings.terms_of_each(self.len());
        let items = self
            .entries
            .iter()
            .zip(terms)
            .map(|(entry, terms)| BlockItem {
                entry: entry.clone(),
                terms,
                vector: None,
                provider_vector: None,
            });
        let mut items: Vec<BlockItem> = items.collect();
        for (at, codes, factor) in self.vectors.iter().flat_map(VectorRows::rows) {
            items[at].vector = Some(QuantizedVector::from_codes(codes, factor));
        }
        for (at, codes, factor) in self.provider_vectors.iter().flat_map(VectorRows::rows) {
            items[at].provider_vector = Some(QuantizedVector::from_codes(codes, factor));
        }
        items
    }

    /// Returns the number of memories.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the position of a memory.
    pub fn position(&self, id: MemoryId) -> Option<usize> {
        self.keys.binary_search_by_key(&id, |it| it.id).ok()
    }

    /// Returns a memory by its position.
    pub fn entry(&self, position: usize) -> &Arc<MemoryEntry> {
        &self.entries[position]
    }

    /// Returns what decides about the scope of each memory.
    pub fn keys(&self) -> &[ScopeKey] {
        &self.keys
    }

    /// Returns the members to which the keys refer.
    pub fn audiences(&self) -> &[MembershipId] {
        &self.audiences
    }

    /// Returns the positions of the memories that contain a term.
    pub fn containing(&self, hash: u64) -> &[u16] {
        self.postings.containing(hash)
    }

    /// Returns the local vectors.
    pub fn vectors(&self) -> &[VectorRows] {
        &self.vectors
    }

    /// Returns the vectors of the model of a provider.
    pub fn provider_vectors(&self) -> &[VectorRows] {
        &self.provider_vectors
    }

    /// Returns its approximate size in memory, in bytes.
    pub fn n_bytes(&self) -> usize {
        let entry = |it: &Arc<MemoryEntry>| size_of_val(it) + it.n_bytes();
        let entries: usize = self.entries.iter().map(entry).sum();
        let vectors = self.vectors.iter().chain(&self.provider_vectors);
        let vectors: usize = vectors.map(VectorRows::n_bytes).sum();
        let scope = size_of_val(&*self.keys) + size_of_val(&*self.audiences);
        size_of::<Self>() + scope + self.postings.n_bytes() + vectors + entries
    }
}
