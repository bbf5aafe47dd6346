//! Converts a chat that text-generation-webui stored as JSON: pairs of a user's text and a reply,
//! as the model got them (`internal`) and as they were shown (`visible`). The shown text wins.

use serde_json::Value;

use crate::chats::dates;
use crate::chats::importers::chat_builder::{ChatBuilder, DraftMessage, ImportedChat, list, text};
use crate::chats::message::{ChatHeader, ChatRole};

/// What the program writes in the place of a user's text before the greeting.
const BEGIN: &str = "<|BEGIN-VISIBLE-CHAT|>";

/// Returns whether this is such a chat.
pub fn is_chat(document: &Value) -> bool {
    let is_list = |field: &str| document.get(field).is_some_and(Value::is_array);
    is_list("internal") && is_list("visible") || is_list("data") && is_list("data_visible")
}

/// Converts the chat.
pub fn convert(document: &Value) -> ImportedChat {
    let (internal, visible) = match document.get("internal") {
        Some(_) => (list(document, "internal"), list(document, "visible")),
        None => (list(document, "data"), list(document, "data_visible")),
    };
    let mut builder = ChatBuilder::new(ChatHeader::default());
    for at in 0..internal.len().max(visible.len()) {
        for (side, role) in [ChatRole::User, ChatRole::Assistant]
            .into_iter()
            .enumerate()
        {
            let of = |pairs: &[Value]| pairs.get(at)?.get(side)?.as_str().map(str::to_owned);
            let (sent, shown) = (of(internal), of(visible));
            let shown = shown.map(|it| unescape(&it));
            if [&sent, &shown]
                .iter()
                .any(|it| it.as_deref() == Some(BEGIN))
            {
                continue;
            }
            let text = shown.filter(|it| !it.trim().is_empty()).or(sent);
            // The greeting has no user's text, and a reply may be missing.
            if let Some(text) = text.filter(|it| !it.trim().is_empty()) {
                builder.push(read_message(document, (at, side), role, text));
            }
        }
    }
    builder.finish()
}

/// Adds the time and the other versions that newer files have in `metadata`.
fn read_message(
    document: &Value,
    (at, side): (usize, usize),
    role: ChatRole,
    shown: String,
) -> DraftMessage {
    let author = ["user", "assistant"][side];
    let about = &document["metadata"][format!("{author}_{at}")];
    let versions = list(about, "versions").iter();
    let mut texts: Vec<String> = versions
        .filter_map(|it| text(it, "visible_content").or_else(|| text(it, "content")))
        .map(unescape)
        .collect();
    let shown_at = texts.iter().position(|it| *it == shown);
    let active = shown_at.unwrap_or(texts.len());
    if shown_at.is_none() {
        texts.push(shown);
    }
    DraftMessage {
        sent_at: dates::parse(&about["timestamp"]),
        texts,
        active,
        ..DraftMessage::new(role, "")
    }
}

/// Returns the text without the HTML entities that the program writes in shown texts.
fn unescape(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
        // The last one, so that `&amp;lt;` becomes `&lt;`.
        ("&amp;", "&"),
    ];
    let replace = |text: String, (entity, plain): (&str, &str)| text.replace(entity, plain);
    entities.into_iter().fold(text.to_owned(), replace)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::convert;
    use crate::chats::message::ChatRole;

    #[test]
    fn the_shown_text_wins_and_the_begin_mark_is_removed() {
        let chat = convert(&json!({
            "internal": [["<|BEGIN-VISIBLE-CHAT|>", "Hello."], ["raw & plain", "sent"], ["more", ""]],
            "visible": [["", "Hello."], ["raw &amp; plain", "&lt;b&gt; shown"], ["more", ""]],
            "metadata": {"assistant_1": {"timestamp": "Jan 05, 2025 14:30", "versions": [
                {"content": "older", "visible_content": "older"},
            ]}},
        }));

        let read: Vec<_> = chat
            .messages
            .iter()
            .map(|it| (it.role, it.texts[it.active].content.as_str()))
            .collect();
        assert_eq!(
            read,
            [
                (ChatRole::Assistant, "Hello."),
                (ChatRole::User, "raw & plain"),
                (ChatRole::Assistant, "<b> shown"),
                (ChatRole::User, "more"),
            ]
        );
        let reply = &chat.messages[2];
        assert_eq!((reply.texts.len(), reply.active), (2, 1));
        assert_eq!(
            reply.sent_at.unwrap().to_string(),
            "2025-01-05T14:30:00.000Z"
        );
        assert_eq!(chat.report.n_skipped, 0);
    }

    #[test]
    fn the_older_names_of_the_lists_are_read() {
        let chat = convert(&json!({"data": [["a", "b"]], "data_visible": [["A", "B"]]}));

        assert_eq!(chat.messages.len(), 2);
        assert_eq!(chat.messages[1].texts[0].content, "B");
    }
}
