//! Tests of reading a whole chat file in batches.

use std::io::{BufReader, Read};

use super::{BatchEvent, LineReport, MAX_BYTES, MAX_MESSAGES, MessageBatch, read};
use crate::chats::line_reader::MAX_LINE;

fn read_all(file: &[u8]) -> (Vec<MessageBatch>, usize, LineReport) {
    let mut batches = Vec::new();
    let mut n_headers = 0;
    let report = read(file, &|it| it.len() as i64, &mut |step| {
        match step {
            BatchEvent::Header(_) => n_headers += 1,
            BatchEvent::Batch(batch) => batches.push(batch),
            BatchEvent::NextChat => unreachable!("JSONL is one chat"),
        }
        true
    });
    (batches, n_headers, report.unwrap())
}

fn contents(batches: &[MessageBatch]) -> Vec<&str> {
    let messages = batches.iter().flat_map(|it| &it.messages);
    messages
        .map(|it| it.texts[it.active].content.as_str())
        .collect()
}

#[test]
fn broken_lines_are_reported_and_others_kept() {
    let file = include_bytes!("../../../../tests/fixtures/chats/broken_lines.jsonl");
    let (batches, n_headers, report) = read_all(file);

    assert_eq!(
        (contents(&batches), n_headers),
        (vec!["Kept.", "Kept too."], 1)
    );
    let reported: Vec<u64> = report.lines.iter().map(|it| it.line).collect();
    assert_eq!((reported, report.n_skipped), (vec![4, 5, 6, 7, 8, 10], 6));
    assert_eq!(batches.last().unwrap().bytes_read, file.len() as u64);
}

#[test]
fn byte_order_marks_line_ends_and_missing_headers_change_nothing() {
    let crlf = include_bytes!("../../../../tests/fixtures/chats/bom_crlf.jsonl");
    let (batches, n_headers, report) = read_all(crlf);
    assert_eq!((contents(&batches), n_headers), (vec!["One.", "Two."], 1));
    assert_eq!(report, LineReport::default());

    let bare = include_bytes!("../../../../tests/fixtures/chats/no_header.jsonl");
    let (batches, n_headers, report) = read_all(bare);
    assert_eq!((contents(&batches).len(), n_headers), (2, 0));
    assert_eq!(report, LineReport::default());
}

#[test]
fn dates_of_every_format_are_recognized() {
    let (batches, _, _) = read_all(include_bytes!(
        "../../../../tests/fixtures/chats/dates.jsonl"
    ));

    let dated: Vec<bool> = batches[0]
        .messages
        .iter()
        .map(|it| it.sent_at.is_some())
        .collect();
    assert_eq!(dated, [true, true, true, true, false, false]);
}

#[test]
fn the_report_of_a_file_of_invalid_lines_is_short() {
    let noise = b"noise\n".repeat(100_000);
    let (_, _, report) = read_all(&noise);

    assert_eq!((report.n_skipped, report.lines.len()), (100_000, 100));
}

/// Generates a file of 100 MB while it is read.
struct EndlessFile<'a> {
    line: &'a [u8],
    left: usize,
    at: usize,
}

impl Read for EndlessFile<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let part = &self.line[self.at..];
        let n = part.len().min(into.len()).min(self.left);
        into[..n].copy_from_slice(&part[..n]);
        self.at = (self.at + n) % self.line.len();
        self.left -= n;
        Ok(n)
    }
}

#[test]
fn a_large_file_holds_one_batch_and_one_line_in_memory() {
    let text = "word ".repeat(400);
    let line = format!(
        "{{\"name\":\"Ada\",\"is_user\":false,\"mes\":\"{text}\",\"swipes\":[\"{text}\",\"other {text}\"],\"swipe_id\":0}}\n"
    );
    let size = 100 * 1024 * 1024 / line.len() * line.len();
    let file = EndlessFile {
        line: line.as_bytes(),
        left: size,
        at: 0,
    };
    let (mut max_held, mut n_messages, mut read_to) = (0, 0, 0);

    let report = read(BufReader::new(file), &|_| 1, &mut |step| {
        if let BatchEvent::Batch(batch) = step {
            let texts = batch.messages.iter().flat_map(|it| &it.texts);
            max_held = max_held.max(texts.map(|it| it.content.len()).sum());
            assert!(batch.messages.len() <= MAX_MESSAGES);
            n_messages += batch.messages.len();
            read_to = batch.bytes_read;
        }
        true
    });

    assert_eq!(report.unwrap(), LineReport::default());
    assert_eq!((n_messages, read_to), (size / line.len(), size as u64));
    assert!(
        max_held <= MAX_BYTES + MAX_LINE,
        "{max_held} bytes held at once"
    );
}

#[test]
fn reading_stops_when_the_consumer_stops() {
    let line = b"{\"name\":\"Ada\",\"mes\":\"Hi.\"}\n".repeat(1_000);
    let mut n_batches = 0;

    let _ = read(line.as_slice(), &|_| 1, &mut |_| {
        n_batches += 1;
        false
    });

    assert_eq!(n_batches, 1);
}
