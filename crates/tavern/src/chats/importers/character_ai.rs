//! Converts dumps of Character.AI, also those of CAI Tools: each history becomes a chat. Older dumps
//! have `histories` with `msgs`, newer ones `turns` with candidates, of which one is shown.

use base::clock::Timestamp;
use serde_json::Value;

use crate::chats::dates;
use crate::chats::importers::chat_builder::{
    ChatBuilder, DraftMessage, ImportedChat, MAX_CHATS, chats_cut, flag, list, text,
};
use crate::chats::message::{ChatHeader, ChatRole};

/// Returns whether this is such a dump.
pub fn is_dump(document: &Value) -> bool {
    let is_history = |it: &Value| ["msgs", "turns"].iter().any(|key| it[*key].is_array());
    match document {
        Value::Array(histories) => histories.iter().any(is_history),
        Value::Object(_) => {
            let histories = &document["histories"];
            histories.is_array() || histories["histories"].is_array() || is_history(document)
        }
        _ => false,
    }
}

/// Converts each history.
pub fn convert(document: &Value) -> Vec<ImportedChat> {
    let histories = match document {
        Value::Array(histories) => histories.as_slice(),
        _ => match &document["histories"] {
            Value::Array(histories) => histories.as_slice(),
            Value::Object(_) => list(&document["histories"], "histories"),
            _ => std::slice::from_ref(document),
        },
    };
    let mut chats: Vec<_> = histories.iter().take(MAX_CHATS).map(convert_one).collect();
    if histories.len() > MAX_CHATS
        && let Some(first) = chats.first_mut()
    {
        first.header.warnings.push(chats_cut());
    }
    chats
}

fn convert_one(history: &Value) -> ImportedChat {
    let created = ["created", "create_time"].iter();
    let header = ChatHeader {
        created_at: created.filter_map(|it| dates::parse(&history[*it])).next(),
        ..ChatHeader::default()
    };
    let mut builder = ChatBuilder::new(header);
    let drafts = match history["msgs"].as_array() {
        Some(messages) => messages.iter().map(read_message).collect(),
        None => in_order(list(history, "turns").iter().map(read_turn).collect()),
    };
    for draft in drafts {
        match draft {
            Some(draft) => builder.push(draft),
            None => builder.skip(),
        }
    }
    builder.finish()
}

fn read_message(message: &Value) -> Option<DraftMessage> {
    let source = &message["src"];
    let name = text(source, "name").or_else(|| text(&source["user"], "username"));
    Some(DraftMessage {
        name: name.map(str::to_owned),
        sent_at: dates::parse(&message["created"]),
        ..DraftMessage::new(role_of(source), text(message, "text")?)
    })
}

fn read_turn(turn: &Value) -> Option<DraftMessage> {
    let author = &turn["author"];
    let primary = text(turn, "primary_candidate_id");
    let candidates = list(turn, "candidates").iter();
    let candidates: Vec<(Option<&str>, &str)> = candidates
        .filter_map(|it| Some((text(it, "candidate_id"), text(it, "raw_content")?)))
        .collect();
    let shown = candidates
        .iter()
        .position(|(id, _)| primary.is_some() && *id == primary);
    let texts: Vec<String> = candidates.iter().map(|it| it.1.to_owned()).collect();
    (!texts.is_empty()).then(|| DraftMessage {
        name: text(author, "name").map(str::to_owned),
        sent_at: dates::parse(&turn["create_time"]),
        texts,
        active: shown.unwrap_or(0),
        ..DraftMessage::new(role_of(author), "")
    })
}

fn role_of(author: &Value) -> ChatRole {
    match flag(author, "is_human") {
        true => ChatRole::User,
        false => ChatRole::Assistant,
    }
}

/// Returns turns oldest first. The service lists them newest first.
fn in_order(mut drafts: Vec<Option<DraftMessage>>) -> Vec<Option<DraftMessage>> {
    let time = |it: &Option<DraftMessage>| it.as_ref().and_then(|it| it.sent_at);
    let times: Option<Vec<Timestamp>> = drafts.iter().map(time).collect();
    let is_newest_first = times.is_some_and(|it| it.windows(2).all(|pair| pair[0] >= pair[1]));
    if is_newest_first {
        drafts.reverse();
    }
    drafts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::convert;
    use crate::chats::message::ChatRole;

    #[test]
    fn each_history_becomes_a_chat() {
        let message = |human: bool, text: &str| json!({"text": text, "src": {"is_human": human, "name": if human { "Ben" } else { "Ada" }}});
        let chats = convert(&json!({"info": {}, "histories": {"histories": [
            {"created": "2023-01-02T03:04:05Z", "msgs": [message(false, "Hello."), message(true, "Hi.")]},
            {"msgs": [message(false, "Again?"), {"src": {}}]},
        ]}}));

        assert_eq!(chats.len(), 2);
        assert!(chats[0].header.created_at.is_some());
        let first = &chats[0].messages;
        assert_eq!(
            (first[0].role, first[1].role),
            (ChatRole::Assistant, ChatRole::User)
        );
        assert_eq!(first[1].name.as_deref(), Some("Ben"));
        assert_eq!(chats[1].report.n_skipped, 1);
    }

    #[test]
    fn candidates_become_swipes_and_turns_are_oldest_first() {
        let turn = |time: &str, human: bool, texts: &[&str]| {
            let candidates: Vec<_> = texts
                .iter()
                .map(|it| json!({"candidate_id": it, "raw_content": it}))
                .collect();
            json!({"author": {"name": "A", "is_human": human}, "create_time": time,
                "primary_candidate_id": texts.last(), "candidates": candidates})
        };
        let chats = convert(&json!([{"turns": [
            turn("2024-01-01T00:00:02Z", false, &["one", "two"]),
            turn("2024-01-01T00:00:01Z", true, &["first"]),
        ]}]));

        let messages = &chats[0].messages;
        assert_eq!(messages[0].texts[0].content, "first");
        assert_eq!((messages[1].texts.len(), messages[1].active), (2, 1));
    }
}
