//! Converts chats that Risu exported as JSON (`type: "risuChat"`, or `risuAllChats` with several):
//! messages, the note as author's note, and the local lorebook.

use serde_json::{Value, json};

use crate::chats::dates;
use crate::chats::importers::chat_builder::{
    ChatBuilder, DraftMessage, ImportedChat, MAX_CHATS, add_lorebook, chats_cut, flag, list,
    settings, text, warn_left_out,
};
use crate::chats::message::{ChatHeader, ChatRole};

/// Returns whether these are such chats.
pub fn is_chat(document: &Value) -> bool {
    matches!(text(document, "type"), Some("risuChat" | "risuAllChats"))
}

/// Converts each chat of the file.
pub fn convert(document: &Value) -> Vec<ImportedChat> {
    let chats = match document.get("data") {
        Some(Value::Array(chats)) => chats.as_slice(),
        Some(chat) => std::slice::from_ref(chat),
        None => &[],
    };
    let mut converted: Vec<_> = chats.iter().take(MAX_CHATS).map(convert_one).collect();
    if chats.len() > MAX_CHATS
        && let Some(first) = converted.first_mut()
    {
        first.header.warnings.push(chats_cut());
    }
    converted
}

fn convert_one(chat: &Value) -> ImportedChat {
    let name = text(chat, "name").unwrap_or_default();
    let mut header = ChatHeader {
        title: Some(name.to_owned()),
        settings: settings(chat.get("note"), None),
        ..ChatHeader::default()
    };
    let lore = list(chat, "localLore");
    if !lore.is_empty() {
        let book = json!({"type": "risu", "ver": 1, "name": name, "data": lore});
        add_lorebook(&mut header, book, name);
    }
    let others = [
        "scriptstate",
        "supaMemoryData",
        "hypaV2Data",
        "hypaV3Data",
        "modules",
    ];
    warn_left_out(&mut header, chat, &others);
    let mut builder = ChatBuilder::new(header);
    for message in list(chat, "message") {
        match text(message, "data") {
            Some(shown) => builder.push(DraftMessage {
                name: text(message, "name").map(str::to_owned),
                is_excluded: flag(message, "disabled"),
                sent_at: message.get("time").and_then(dates::parse),
                ..DraftMessage::new(role_of(message), shown)
            }),
            None => builder.skip(),
        }
    }
    builder.finish()
}

fn role_of(message: &Value) -> ChatRole {
    match text(message, "role") {
        Some("user") => ChatRole::User,
        _ => ChatRole::Assistant,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::convert;
    use crate::chats::message::ChatRole;

    #[test]
    fn messages_note_and_lorebook_are_read() {
        let chats = convert(&json!({"type": "risuChat", "ver": 1, "data": {
            "name": "Evening", "note": "It rains.", "scriptstate": {"$hp": "3"},
            "message": [
                {"role": "char", "data": "Hello.", "time": 1_717_419_725_678_i64},
                {"role": "user", "data": "Hi.", "disabled": true},
            ],
            "localLore": [{"key": "mill, engine", "secondkey": "", "insertorder": 10,
                "comment": "Mill", "content": "Brass.", "mode": "normal", "alwaysActive": false,
                "selective": false}],
        }}));

        let [chat] = chats.as_slice() else {
            panic!("{chats:?}")
        };
        assert_eq!(chat.header.settings["author_note"]["text"], "It rains.");
        assert_eq!(chat.header.warnings[0].params["names"], "scriptstate");
        let book = chat.header.lorebook.as_ref().expect("a lorebook");
        assert_eq!(book.entries[0]["keys"], json!(["mill", "engine"]));
        assert_eq!(
            (chat.messages[0].role, chat.messages[1].role),
            (ChatRole::Assistant, ChatRole::User)
        );
        assert!(chat.messages[1].is_excluded);
        assert!(chat.messages[0].sent_at.is_some());
    }

    #[test]
    fn each_of_all_chats_is_one() {
        let chat = json!({"message": [{"role": "user", "data": "Hi."}]});
        let chats = convert(&json!({"type": "risuAllChats", "data": [chat, chat]}));

        assert_eq!(chats.len(), 2);
        assert_eq!(chats[1].messages.len(), 1);
    }
}
