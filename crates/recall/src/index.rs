//! All memories of one space, as of one version of the space's memories.
//!
//! **Invariant:** an index is used only for the version that it has. A newer version is reached by
//! the changes in between, so an index never contains a memory that its version does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::ids::MemoryId;

use crate::block::memory_block::{BlockItem, MAX_MEMORIES, MemoryBlock};
use crate::entry::EmbeddedMemory;

/// The memories of a space. Immutable; a change creates another index, which shares most blocks.
#[derive(Clone, Debug, Default)]
pub struct MemoryIndex {
    version: i64,
    /// Only the last block has fewer than [`MAX_MEMORIES`] memories.
    parts: Vec<IndexPart>,
    len: usize,
    n_bytes: usize,
}

/// A block, and which of its memories were deleted or are in a later block.
#[derive(Clone, Debug)]
pub struct IndexPart {
    pub block: Arc<MemoryBlock>,
    /// The positions of these memories.
    pub removed: Vec<u16>,
    n_bytes: usize,
}

/// A memory that was stored or removed after the version of an index.
#[derive(Clone, Debug)]
pub enum MemoryChange {
    Stored(EmbeddedMemory),
    Removed(MemoryId),
}

type Changes = BTreeMap<MemoryId, Option<EmbeddedMemory>>;

impl MemoryIndex {
    /// Returns the version of the space's memories that this index contains.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Returns the number of memories.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the space has no memories.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns its approximate size in memory, in bytes.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Returns its blocks.
    pub fn parts(&self) -> &[IndexPart] {
        &self.parts
    }

    /// Returns the index after these changes, each memory at most once.
    ///
    /// A stored memory is added to the last block, which is created again for that. A block is also
    /// created again when a quarter of its memories is in `removed`, and as soon as a memory in it is
    /// deleted: the index does not keep the text of a deleted memory.
    pub fn with_changes(
        &self,
        version: i64,
        changes: impl IntoIterator<Item = MemoryChange>,
    ) -> Self {
        let changes = changes.into_iter().map(|change| match change {
            MemoryChange::Stored(memory) => (memory.entry.id, Some(memory)),
            MemoryChange::Removed(id) => (id, None),
        });
        let changes: Changes = changes.collect();
        let mut parts: Vec<_> = self.parts.iter().map(|it| it.without(&changes)).collect();
        let outdated = parts.extract_if(.., |it| it.is_sparse() || it.contains_removed(&changes));
        let mut items: Vec<BlockItem> = outdated.flat_map(|it| it.items()).collect();
        items.extend(changes.into_values().flatten().map(BlockItem::from));
        if !items.is_empty() {
            let last = parts.pop_if(|it| it.block.len() < MAX_MEMORIES);
            items.extend(last.into_iter().flat_map(|it| it.items()));
        }
        items.sort_unstable_by_key(|it| it.entry.id);
        let mut items = items.into_iter();
        while items.len() > 0 {
            let block = items.by_ref().take(MAX_MEMORIES).collect();
            parts.push(IndexPart::new(MemoryBlock::new(block)));
        }
        Self {
            version,
            len: parts.iter().map(IndexPart::n_left).sum(),
            n_bytes: parts.iter().map(|it| it.n_bytes).sum(),
            parts,
        }
    }
}

impl IndexPart {
    fn new(block: MemoryBlock) -> Self {
        Self {
            n_bytes: block.n_bytes(),
            block: Arc::new(block),
            removed: Vec::new(),
        }
    }

    /// Returns the part after these memories are removed from it.
    fn without(&self, changes: &Changes) -> Self {
        let mut part = self.clone();
        for (position, _) in self.changed(changes) {
            if !self.removed.contains(&position) {
                part.removed.push(position);
            }
        }
        part
    }

    /// Returns the positions of the changed memories in the block, and whether they were removed.
    fn changed(&self, changes: &Changes) -> impl Iterator<Item = (u16, bool)> {
        let keys = self.block.keys();
        let ids = keys.first().zip(keys.last());
        let changes = ids.map(|(first, last)| changes.range(first.id..=last.id));
        changes
            .into_iter()
            .flatten()
            .filter_map(move |(id, memory)| {
                let position = u16::try_from(self.block.position(*id)?).ok()?;
                Some((position, memory.is_none()))
            })
    }

    /// Returns whether the block contains a memory that was removed, or an earlier version of it.
    fn contains_removed(&self, changes: &Changes) -> bool {
        self.changed(changes).any(|(_, is_removed)| is_removed)
    }

    fn is_sparse(&self) -> bool {
        4 * self.removed.len() >= self.block.len()
    }

    fn n_left(&self) -> usize {
        self.block.len() - self.removed.len()
    }

    /// Returns the memories that are not removed.
    fn items(&self) -> Vec<BlockItem> {
        let items = (0u16..).zip(self.block.items());
        let left = items.filter(|(at, _)| !self.removed.contains(at));
        left.map(|(_, it)| it).collect()
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
