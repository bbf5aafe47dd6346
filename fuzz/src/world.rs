//! World files, books of cards and of other tools: what is read is within its limits, is as good as
//! if it had been made here, and goes out and comes in as it was.

use serde_json::Value;
use troupe::lore::entry;
use troupe::lore::file;
use troupe::lore::file::Draft;
use troupe::lore::file::MAX_ENTRIES;
use troupe::lore::file::MAX_NAME_CHARS;

/// Reads the bytes as a file.
pub fn is_held(data: &[u8]) {
    let Ok(draft) = file::read(data, "a book.json") else {
        return;
    };
    assert!(draft.entries.len() <= MAX_ENTRIES);
    assert!(!draft.name.trim().is_empty() && draft.name.chars().count() <= MAX_NAME_CHARS);
    for it in &draft.entries {
        file::judge(it).expect("what was read is within its limits");
        entry::read(&Value::Object(it.clone()), "key".to_owned(), None);
    }

    let back = out_and_in(&draft);

    assert_eq!(back.name, draft.name);
    assert_eq!(back.entries, draft.entries, "nothing is lost on the way");
    assert_eq!(
        back.document, draft.document,
        "nor of what the book says of itself"
    );
}

fn out_and_in(draft: &Draft) -> Draft {
    let world = file::world(&draft.name, &draft.document, &draft.entries);
    let bytes = serde_json::to_vec(&world).expect("a world is JSON");
    file::read(&bytes, "other.json").expect("what goes out comes in")
}
