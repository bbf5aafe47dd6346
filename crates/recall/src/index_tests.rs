//! Tests how an index follows changes.

use base::ids::MemoryId;

use super::{MemoryChange, MemoryIndex};
use crate::block::memory_block::MAX_MEMORIES;
use crate::entry::{EmbeddedMemory, MemoryEntry};
use crate::quantized_vector::QuantizedVector;

fn stored(id: i64, content: &str) -> MemoryChange {
    let memory = EmbeddedMemory {
        vector: Some(QuantizedVector::new(&[id as f32, 1.0])),
        ..MemoryEntry::new(MemoryId(id), content).into()
    };
    MemoryChange::Stored(memory)
}

fn removed(id: i64) -> MemoryChange {
    MemoryChange::Removed(MemoryId(id))
}

fn ids(n: usize) -> std::ops::Range<i64> {
    0..i64::try_from(n).unwrap()
}

fn contents(index: &MemoryIndex) -> Vec<String> {
    let mut items: Vec<_> = index.parts.iter().flat_map(|it| it.items()).collect();
    items.sort_by_key(|it| it.entry.id);
    let contents = items.iter().map(|it| it.entry.content.clone());
    contents.collect()
}

/// Returns the number of memories in each block, and how many of them are removed.
fn sizes(index: &MemoryIndex) -> Vec<(usize, usize)> {
    let parts = index.parts.iter();
    parts.map(|it| (it.block.len(), it.removed.len())).collect()
}

#[test]
fn changes_replace_add_and_remove_memories() {
    let before = MemoryIndex::default().with_changes(1, [stored(2, "two"), stored(1, "one")]);

    let after = before.with_changes(
        4,
        [
            removed(1),
            stored(2, "two, edited"),
            stored(3, "three"),
            removed(9),
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

    let emptied = index.with_changes(2, [removed(1)]);

    assert_eq!((emptied.n_bytes(), emptied.is_empty()), (0, true));
}

#[test]
fn a_changed_memory_moves_to_the_last_block_and_the_others_are_shared() {
    let memories = ids(2 * MAX_MEMORIES + 10).map(|id| stored(id, "old"));
    let before = MemoryIndex::default().with_changes(1, memories);

    let after = before.with_changes(2, [stored(5, "new")]);
    let again = after.with_changes(3, [stored(5, "newer")]);

    let full = (MAX_MEMORIES, 0);
    let with_gap = (MAX_MEMORIES, 1);
    assert_eq!(sizes(&before), [full, full, (10, 0)]);
    assert_eq!(sizes(&after), [with_gap, full, (11, 0)]);
    assert_eq!(sizes(&again), [with_gap, full, (11, 0)]);
    assert_eq!(after.len(), before.len());
    assert_eq!(contents(&again)[5], "newer");
    for at in 0..2 {
        assert!(std::sync::Arc::ptr_eq(
            &before.parts[at].block,
            &again.parts[at].block
        ));
    }
}

#[test]
fn a_block_is_created_again_when_a_quarter_is_removed() {
    let memories = ids(2 * MAX_MEMORIES).map(|id| stored(id, "memory"));
    let all = MemoryIndex::default().with_changes(1, memories);
    let quarter = MAX_MEMORIES / 4;

    let edited = |id| stored(id, "edited");
    let fewer = all.with_changes(2, ids(quarter - 1).map(edited));
    let last = ids(quarter).last().unwrap();
    let quarter_removed = fewer.with_changes(3, [edited(last)]);

    let full = (MAX_MEMORIES, 0);
    let with_gaps = (MAX_MEMORIES, quarter - 1);
    assert_eq!(sizes(&fewer), [with_gaps, full, (quarter - 1, 0)]);
    assert_eq!(sizes(&quarter_removed), [full, full]);
    assert_eq!(quarter_removed.len(), 2 * MAX_MEMORIES);
    assert!(quarter_removed.n_bytes() < fewer.n_bytes());
}

#[test]
fn an_index_does_not_keep_the_text_of_a_removed_memory_nor_its_earlier_texts() {
    let memories = ids(3 * MAX_MEMORIES).map(|id| stored(id, "memory"));
    let all = MemoryIndex::default().with_changes(1, memories);
    let edited = all.with_changes(2, [stored(5, "memory, edited")]);
    let texts: Vec<_> = [(&all, 0), (&edited, 3)]
        .into_iter()
        .map(|(index, part)| {
            let block = &index.parts[part].block;
            let position = block.position(MemoryId(5)).unwrap();
            std::sync::Arc::downgrade(block.entry(position))
        })
        .collect();

    let after = edited.with_changes(3, [removed(5)]);
    drop((all, edited));

    assert!(texts.iter().all(|it| it.upgrade().is_none()));
    assert_eq!(after.len(), 3 * MAX_MEMORIES - 1);
    let full = (MAX_MEMORIES, 0);
    assert_eq!(sizes(&after), [full, full, (MAX_MEMORIES - 1, 0)]);
}
