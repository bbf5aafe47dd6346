//! Converts a chat that Agnai exported as JSON (`messages[{msg, handle, userId, characterId,
//! createdAt, retries}]`). The `retries` of a message become its swipes.

use serde_json::Value;

use crate::chats::dates;
use crate::chats::importers::chat_builder::{
    ChatBuilder, DraftMessage, ImportedChat, flag, list, settings, text, warn_left_out,
};
use crate::chats::message::{ChatHeader, ChatRole};

/// Returns whether this is such a chat.
pub fn is_chat(document: &Value) -> bool {
    let messages = list(document, "messages");
    messages
        .iter()
        .any(|it| it.get("msg").is_some_and(Value::is_string))
}

/// Converts the chat.
pub fn convert(document: &Value) -> ImportedChat {
    let mut header = ChatHeader {
        title: text(document, "name").map(str::to_owned),
        settings: settings(None, document.get("scenario")),
        ..ChatHeader::default()
    };
    warn_left_out(&mut header, document, &["sampleChat", "memory"]);
    let mut builder = ChatBuilder::new(header);
    for message in list(document, "messages") {
        match text(message, "msg") {
            Some(shown) => builder.push(read_message(message, shown)),
            None => builder.skip(),
        }
    }
    builder.finish()
}

fn read_message(message: &Value, shown: &str) -> DraftMessage {
    let is_characters = text(message, "characterId").is_some_and(|it| !it.is_empty());
    let role = match (is_characters, flag(message, "system")) {
        (_, true) => ChatRole::System,
        (true, false) => ChatRole::Assistant,
        (false, false) => ChatRole::User,
    };
    let mut texts = vec![shown.to_owned()];
    let retries = list(message, "retries").iter();
    texts.extend(retries.filter_map(Value::as_str).map(str::to_owned));
    DraftMessage {
        name: text(message, "handle").map(str::to_owned),
        is_ooc: flag(message, "ooc"),
        sent_at: message.get("createdAt").and_then(dates::parse),
        texts,
        ..DraftMessage::new(role, "")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::convert;
    use crate::chats::message::ChatRole;

    #[test]
    fn retries_become_swipes_and_authors_are_told_apart() {
        let chat = convert(&json!({
            "kind": "chat", "name": "At the mill", "scenario": "London", "sampleChat": "x",
            "messages": [
                {"msg": "Hello.", "characterId": "c1", "handle": "Ada", "retries": ["Hi.", "Hello."],
                 "createdAt": "2024-06-03T13:02:05.678Z"},
                {"msg": "Good day.", "userId": "u", "handle": "Ben"},
                {"msg": "A break?", "userId": "u", "ooc": true},
                {"state": "no text"},
            ],
        }));

        assert_eq!(chat.header.title.as_deref(), Some("At the mill"));
        assert_eq!(chat.header.settings["scenario_override"], "London");
        assert_eq!(chat.header.warnings[0].params["names"], "sampleChat");
        let of = |at: usize| &chat.messages[at];
        assert_eq!((of(0).texts.len(), of(0).active), (2, 0));
        assert_eq!(of(0).texts[1].content, "Hi.");
        assert_eq!(
            of(0).sent_at.unwrap().to_string(),
            "2024-06-03T13:02:05.678Z"
        );
        assert_eq!(
            (of(0).role, of(1).role),
            (ChatRole::Assistant, ChatRole::User)
        );
        assert_eq!(of(1).name.as_deref(), Some("Ben"));
        assert!(of(2).is_ooc);
        assert_eq!(chat.report.n_skipped, 1);
    }
}
