//! Chat documents of other programs: their messages are valid and within the limits, and every message
//! is exported and imported again unchanged.

use tavern::chats::importers::chat_document;
use tavern::documents::document;
use tavern::lorebook_files::file;

use crate::chat::check_message;

/// Reads the bytes as a JSON document with chats.
pub fn check(data: &[u8]) {
    let Ok(found) = document::read_json(data) else {
        return;
    };
    let Some(kind) = chat_document::kind_of(&found.value) else {
        return;
    };
    for chat in chat_document::convert(kind, &found.value) {
        assert!(!chat.messages.is_empty(), "a chat has no messages");
        chat.messages.iter().for_each(check_message);
        for entry in chat.header.lorebook.iter().flat_map(|it| &it.entries) {
            file::validate(entry).expect("an imported entry is not valid");
        }
    }
}
