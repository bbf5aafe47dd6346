//! Lines of memories: a line that is read is a valid memory, and is read again unchanged after it was
//! written.

use recall::content::{MAX_CONTENT_CHARS, one_line};
use recall::memory_line;
use recall::memory_line::{ExportedMemory, MAX_LINE_BYTES};

/// Reads the bytes as a file of memories.
pub fn check(data: &[u8]) {
    for line in data.split(|it| *it == b'\n') {
        if let Ok(memory) = memory_line::read::<String>(line) {
            check_memory(&memory);
        }
    }
}

fn check_memory(memory: &ExportedMemory<String>) {
    let content = &memory.content;
    assert!((1..=MAX_CONTENT_CHARS).contains(&content.chars().count()));
    assert_eq!(one_line(content).as_ref(), Some(content));
    assert!(memory.importance.is_none_or(|it| (0.0..=1.0).contains(&it)));
    let mut lines = Vec::new();
    memory_line::write(&mut lines, memory).expect("a memory serializes to JSON");
    assert_eq!(lines.pop(), Some(b'\n'));
    assert!(!lines.contains(&b'\n'), "a memory is not one line");
    // A written line states every field, so it may be longer than the one that was read.
    if lines.len() <= MAX_LINE_BYTES {
        let back = memory_line::read(&lines);
        assert_eq!(
            back.as_ref(),
            Ok(memory),
            "{}",
            String::from_utf8_lossy(&lines)
        );
    }
}
