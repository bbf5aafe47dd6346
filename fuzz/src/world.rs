//! World files, books of cards and of other tools: what is read is within its limits, is as good as
//! if it had been made here, and goes out and comes in as it was.

use serde_json::Value;
use tavern::lorebook_files::file::{MAX_ENTRIES, MAX_NAME_CHARS, ParsedLorebook};
use tavern::lorebook_files::{entry, file};

/// Reads the bytes as a file.
pub fn is_held(data: &[u8]) {
    let Ok(lorebook) = file::read(data, "a book.json") else {
        return;
    };
    assert!(lorebook.entries.len() <= MAX_ENTRIES);
    assert!(!lorebook.name.trim().is_empty() && lorebook.name.chars().count() <= MAX_NAME_CHARS);
    for it in &lorebook.entries {
        file::validate(it).expect("what was read is within its limits");
        entry::read(&Value::Object(it.clone()), "key".to_owned(), None);
    }

    let back = out_and_in(&lorebook);

    assert_eq!(back.name, lorebook.name);
    assert_eq!(back.entries, lorebook.entries, "nothing is lost on the way");
    assert_eq!(
        back.document, lorebook.document,
        "nor of what the book says of itself"
    );
}

fn out_and_in(lorebook: &ParsedLorebook) -> ParsedLorebook {
    let world = file::to_world_info(&lorebook.name, &lorebook.document, &lorebook.entries);
    let bytes = serde_json::to_vec(&world).expect("a world is JSON");
    file::read(&bytes, "other.json").expect("what goes out comes in")
}
