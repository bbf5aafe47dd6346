//! All memories of one space, as of one version of the space's memories.
//!
//! **Invariant:** an index is used only for the version that it has. A newer version is reached by
//! the changes in between, so an index never contains a memory that its version does not.

use std::collections::HashMap;
use std::sync::Arc;

use base::ids::MemoryId;

use crate::entry::MemoryEntry;

/// The memories of a space. Immutable; a change creates another index, which shares the entries.
#[derive(Clone, Debug, Default)]
pub struct MemoryIndex {
    version: i64,
    /// Ascending by id.
    entries: Vec<Arc<MemoryEntry>>,
    n_bytes: usize,
}

/// A memory that was stored or removed after the version of an index.
#[derive(Clone, Debug)]
pub enum MemoryChange {
    Stored(MemoryEntry),
    Removed(MemoryId),
}

impl MemoryIndex {
    /// Returns the version of the space's memories that this index contains.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Returns the number of memories.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the space has no memories.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns its approximate size in memory, in bytes.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Returns the index after these changes, each memory at most once.
    pub fn with_changes(
        &self,
        version: i64,
        changes: impl IntoIterator<Item = MemoryChange>,
    ) -> Self {
        let mut changed: HashMap<MemoryId, Option<MemoryEntry>> = HashMap::new();
        for change in changes {
            match change {
                MemoryChange::Stored(entry) => changed.insert(entry.id, Some(entry)),
                MemoryChange::Removed(id) => changed.insert(id, None),
            };
        }
        let kept = self
            .entries
            .iter()
            .filter(|it| !changed.contains_key(&it.id));
        let mut entries: Vec<_> = kept.cloned().collect();
        entries.extend(changed.into_values().flatten().map(Arc::new));
        entries.sort_unstable_by_key(|it| it.id);
        let pointer = size_of::<Arc<MemoryEntry>>();
        Self {
            version,
            n_bytes: entries.iter().map(|it| it.n_bytes() + pointer).sum(),
            entries,
        }
    }

    /// Returns all memories, ascending by id.
    pub fn entries(&self) -> &[Arc<MemoryEntry>] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use base::ids::MemoryId;

    use super::{MemoryChange, MemoryIndex};
    use crate::entry::MemoryEntry;

    fn contents(index: &MemoryIndex) -> Vec<String> {
        let contents = index.entries().iter().map(|it| it.content.clone());
        contents.collect()
    }

    fn stored(id: i64, content: &str) -> MemoryChange {
        MemoryChange::Stored(MemoryEntry::new(MemoryId(id), content))
    }

    #[test]
    fn changes_replace_add_and_remove_memories() {
        let before = MemoryIndex::default().with_changes(1, [stored(2, "two"), stored(1, "one")]);

        let after = before.with_changes(
            4,
            [
                MemoryChange::Removed(MemoryId(1)),
                stored(2, "two, edited"),
                stored(3, "three"),
                MemoryChange::Removed(MemoryId(9)),
            ],
        );

        assert_eq!(contents(&before), ["one", "two"]);
        assert_eq!(contents(&after), ["two, edited", "three"]);
        assert_eq!((before.version(), after.version()), (1, 4));
        assert_eq!(after.len(), 2);
    }

    #[test]
    fn an_empty_index_has_no_size() {
        let index = MemoryIndex::default().with_changes(1, [stored(1, "one")]);
        assert!(index.n_bytes() > 0);

        let emptied = index.with_changes(2, [MemoryChange::Removed(MemoryId(1))]);

        assert_eq!((emptied.n_bytes(), emptied.is_empty()), (0, true));
    }
}
