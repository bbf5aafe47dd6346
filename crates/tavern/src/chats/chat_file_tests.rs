//! Tests of opening chat files: the kind of each file, refusals, and the events of documents.

use std::io::{Seek, Write};

use serde_json::json;

use super::{ChatFile, ChatFileError, open};
use crate::chats::batches::{BatchEvent, MAX_MESSAGES};
use crate::documents::limits::MAX_BYTES;

fn open_bytes(bytes: &[u8]) -> Result<ChatFile, ChatFileError> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("written");
    file.rewind().expect("at its start");
    open(file, bytes.len() as u64)
}

fn is_lines(bytes: &[u8]) -> bool {
    matches!(open_bytes(bytes), Ok(ChatFile::Lines(_)))
}

#[test]
fn jsonl_is_read_line_by_line() {
    for bytes in [
        &b""[..],
        b"\xEF\xBB\xBF\r\n{\"user_name\": \"A\", \"chat_metadata\": {}}\r\n",
        b"{\"mes\": \"Hi.\"}",
        b"{broken\n{\"mes\": \"Hi.\"}",
        b"{}\n{\"mes\": \"Hi.\"}",
        b"[1]\n[2]",
        b"noise",
        b"\x89PNG",
    ] {
        assert!(is_lines(bytes), "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_document_that_is_not_a_chat_is_refused_with_its_keys() {
    let unknown = open_bytes(b"{\"alpha\": 1,\n \"beta\": []}");
    let empty = open_bytes(b"{\"type\": \"risuChat\", \"data\": {\"message\": []}}");

    let Err(ChatFileError::Unknown(reason)) = unknown else {
        panic!("{unknown:?}")
    };
    assert!(reason.contains("`alpha`, `beta`"), "{reason}");
    assert!(matches!(empty, Err(ChatFileError::NoMessage)));
}

#[test]
fn only_jsonl_may_be_large() {
    let text = "x".repeat(1000);
    let message = json!({"msg": text, "userId": "u"}).to_string();
    let n = MAX_BYTES / 1000;
    let document = format!("{{\"messages\": [{}]}}", vec![message; n].join(",\n"));
    let lines = format!("{}\n", json!({"mes": text})).repeat(n);
    let blank_first = format!("{{}}\n{lines}");
    let many = format!("{{\"messages\": [\n{}0]}}", "0,".repeat(300_000));

    assert!(matches!(
        open_bytes(document.as_bytes()),
        Err(ChatFileError::TooLarge(_))
    ));
    assert!(matches!(
        open_bytes(many.as_bytes()),
        Err(ChatFileError::TooLarge(_))
    ));
    assert!(is_lines(lines.as_bytes()));
    assert!(is_lines(blank_first.as_bytes()));
}

#[test]
fn the_chats_of_a_document_are_passed_on_in_batches() {
    let message = json!({"text": "Hi.", "src": {"is_human": true, "name": "Ben"}});
    let history = json!({"msgs": vec![message; MAX_MESSAGES + 1]});
    let dump = json!({"histories": [history, {"msgs": []}, history]}).to_string();

    let file = open_bytes(dump.as_bytes()).expect("a dump");
    let mut events = Vec::new();
    let report = file.read(&|_| 1, &mut |event| {
        events.push(match event {
            BatchEvent::Header(_) => "header".to_owned(),
            BatchEvent::NextChat => "next".to_owned(),
            BatchEvent::Batch(batch) => {
                assert!(batch.bytes_read <= dump.len() as u64);
                batch.messages.len().to_string()
            }
        });
        true
    });

    let full = MAX_MESSAGES.to_string();
    assert_eq!(events, ["header", &full, "1", "next", "header", &full, "1"]);
    assert_eq!(report.expect("read").n_skipped, 0);
}

#[test]
fn invalid_utf8_is_reported_with_its_offset() {
    let file = open_bytes(b"{\"messages\": [{\"msg\": \"a\xFFb\", \"userId\": \"u\"}]}");
    let Ok(ChatFile::Document(chats, _)) = file else {
        panic!("{file:?}")
    };

    assert_eq!(chats[0].messages[0].texts[0].content, "a\u{FFFD}b");
    assert_eq!(chats[0].header.warnings[0].params["offset"], 24);
}
