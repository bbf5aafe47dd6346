//! Memories and searches that the tests of a search use.

use base::ids::MemoryId;

use crate::entry::{EmbeddedMemory, MemoryEntry, RecallScope};
use crate::index::{MemoryChange, MemoryIndex};
use crate::quantized_vector::QuantizedVector;
use crate::query::QueryText;
use crate::search::{FoundMemory, RecallRules, search};

/// Returns an index of these memories.
pub fn index(memories: impl IntoIterator<Item = impl Into<EmbeddedMemory>>) -> MemoryIndex {
    let stored = memories
        .into_iter()
        .map(|it| MemoryChange::Stored(it.into()));
    MemoryIndex::default().with_changes(1, stored)
}

/// Returns a memory of ten tokens.
pub fn memory(id: i64, content: &str) -> MemoryEntry {
    MemoryEntry {
        tokens: 10,
        ..MemoryEntry::new(MemoryId(id), content)
    }
}

/// Returns a memory with a local vector.
pub fn with_vector(id: i64, content: &str, vector: [f32; 2]) -> EmbeddedMemory {
    EmbeddedMemory {
        vector: Some(QuantizedVector::new(&vector)),
        ..memory(id, content).into()
    }
}

/// Searches for a text without vectors.
pub fn found(index: &MemoryIndex, text: &str, rules: &RecallRules) -> Vec<FoundMemory> {
    let query = QueryText {
        text,
        authors: "",
        vector: None,
        provider_vector: None,
    };
    search(index, &RecallScope::default(), &[query], rules, &|| false)
}

/// Returns the ids of the memories that a prompt would contain, best first.
pub fn recalled(found: &[FoundMemory]) -> Vec<i64> {
    let recalled = found.iter().filter(|it| it.rank.is_some());
    recalled.map(|it| it.memory.id.0).collect()
}

/// Returns the ids of the memories that were found, but do not belong in the prompt.
pub fn near(found: &[FoundMemory]) -> Vec<i64> {
    let near = found.iter().filter(|it| it.rank.is_none());
    near.map(|it| it.memory.id.0).collect()
}
