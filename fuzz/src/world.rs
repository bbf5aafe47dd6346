//! Lorebook files, from cards and from other tools: an imported lorebook is valid and within the
//! limits, and is unchanged by export and import.

use serde_json::Value;
use tavern::lorebook_files::file::{MAX_ENTRIES, MAX_NAME_CHARS, ParsedLorebook};
use tavern::lorebook_files::{entry, file};

/// Reads the bytes as a lorebook file.
pub fn check(data: &[u8]) {
    let Ok(lorebook) = file::read(data, "a book.json") else {
        return;
    };
    assert!(lorebook.entries.len() <= MAX_ENTRIES);
    assert!(!lorebook.name.trim().is_empty() && lorebook.name.chars().count() <= MAX_NAME_CHARS);
    for it in &lorebook.entries {
        file::validate(it).expect("an imported entry is not valid");
        entry::read(&Value::Object(it.clone()), "key".to_owned(), None);
    }

    let back = export_and_import(&lorebook);

    assert_eq!(back.name, lorebook.name);
    assert_eq!(
        back.entries, lorebook.entries,
        "export and import changed the entries"
    );
    assert_eq!(
        back.document, lorebook.document,
        "export and import changed the document"
    );
}

fn export_and_import(lorebook: &ParsedLorebook) -> ParsedLorebook {
    let world = file::to_world_info(&lorebook.name, &lorebook.document, &lorebook.entries);
    let bytes = serde_json::to_vec(&world).expect("World Info serializes to JSON");
    file::read(&bytes, "other.json").expect("an exported lorebook cannot be imported")
}
