//! Tests of the record of a sent prompt.

use base::ids::{AttachmentId, MemoryId, MessageId};
use serde_json::json;

use super::{CurrentTexts, SentPrompt, TextState};
use crate::prompt::blocks::{RecordedSummary, RecordedText};

/// Every message exists except one.
struct Texts;

impl CurrentTexts for Texts {
    fn message(&self, it: RecordedText) -> Option<TextState> {
        (it.message != MessageId(9)).then(|| TextState {
            text: format!("text {}.{}", it.message.0, it.swipe),
            is_changed: false,
        })
    }

    fn picture(&self, _: MessageId, _: AttachmentId) -> Option<String> {
        None
    }

    fn translation(&self, message: MessageId, language: &str) -> Option<TextState> {
        (message != MessageId(4)).then(|| TextState {
            text: format!("text {} in {language}", message.0),
            is_changed: false,
        })
    }

    fn memory_block(&self, _: &[MemoryId]) -> TextState {
        TextState::default()
    }

    fn summary_block(&self, _: RecordedSummary) -> TextState {
        TextState::default()
    }

    fn is_unheard(&self, message: MessageId) -> bool {
        message == MessageId(8)
    }
}

fn shown(record: serde_json::Value) -> Vec<(String, i64, String)> {
    let record: SentPrompt = serde_json::from_value(record).expect("a record");
    let blocks = record.into_blocks(&Texts).into_iter();
    blocks
        .map(|it| (it.name.unwrap_or_default(), it.tokens, it.text))
        .collect()
}

#[test]
fn messages_are_read_with_and_without_styles() {
    let rest = json!({"model": "m", "lore": {"fired": [], "dropped": [], "warnings": []}, "total_tokens": 1, "limit_tokens": 2, "dropped_messages": 0});
    let with = |fields: serde_json::Value| {
        let mut record = rest.clone();
        for (name, value) in fields.as_object().expect("an object") {
            record[name] = value.clone();
        }
        record
    };
    let style =
        json!({"kind": "history", "role": "user", "name": "Ann", "tokens": 0, "text": "Ann: "});
    let mut old = style.clone();
    (old["tokens"], old["said"]) = (json!(7), json!({"message": 3, "swipe": 1}));

    let expected = [("Ann".to_owned(), 7, "Ann: text 3.1".to_owned())];
    assert_eq!(shown(with(json!({"pieces": [old]}))), expected);
    assert_eq!(
        shown(with(json!({"styles": [style], "pieces": [[0, 7, 3, 1]]}))),
        expected
    );
    assert_eq!(
        shown(with(json!({"styles": [style], "pieces": [[1, 7, 3, 1]]}))),
        []
    );
    let mut translated = style.clone();
    translated["translated_to"] = json!("en");
    let record = with(json!({"styles": [translated], "pieces": [[0, 7, 3, 1], [0, 7, 4, 0]]}));
    let in_english = |text: &str| ("Ann".to_owned(), 7, format!("Ann: {text}"));
    let expected = [in_english("text 3 in en"), in_english("text 4.0")];
    assert_eq!(shown(record), expected);
    let deleted = [("Ann".to_owned(), 7, String::new())];
    assert_eq!(
        shown(with(json!({"styles": [style], "pieces": [[0, 7, 9, 0]]}))),
        deleted
    );
}
