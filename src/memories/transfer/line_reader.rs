//! Reads a file of memories line by line, in batches of limited size.

use std::io::BufRead;

use recall::memory_line;
use recall::memory_line::{ExportedMemory, MemoryLineError};
use tavern::chats::line_reader::{LineReader, RawLine};

use crate::memories::memory::MemoryKind;

/// The maximum number of lines in a batch, which is one transaction.
const MAX_BATCH: usize = 100;

/// A line that is not blank, and its number, counted from 1.
#[derive(Debug)]
pub struct NumberedLine {
    pub number: u64,
    pub memory: Result<ExportedMemory<MemoryKind>, MemoryLineError>,
}

/// Calls `on_batch` with batches of lines until the file ends or it returns `false`. Returns
/// the number of bytes that were read, or `None` if `on_batch` returned `false`.
///
/// # Errors
/// Returns the I/O error if the file cannot be read.
pub fn read(
    file: impl BufRead,
    on_batch: &mut dyn FnMut(Vec<NumberedLine>) -> bool,
) -> std::io::Result<Option<u64>> {
    let parse = |number: u64, line: RawLine<'_>| NumberedLine {
        number,
        memory: match line {
            RawLine::Line(line) => memory_line::read(line),
            RawLine::TooLong => Err(MemoryLineError::TooLong),
        },
    };
    read_batches(file, parse, on_batch)
}

/// Calls `on_batch` with batches of the lines that are not blank, each parsed by `parse` with its number,
/// until the file ends or it returns `false`. Returns the number of bytes that were read, or `None` if
/// `on_batch` returned `false`.
///
/// # Errors
/// Returns the I/O error if the file cannot be read.
pub fn read_batches<T>(
    file: impl BufRead,
    parse: impl Fn(u64, RawLine<'_>) -> T,
    on_batch: &mut dyn FnMut(Vec<T>) -> bool,
) -> std::io::Result<Option<u64>> {
    let mut lines = LineReader::new(file);
    let mut batch = Vec::new();
    while let Some((number, line)) = lines.next_line()? {
        if line == RawLine::Line(&[]) {
            continue;
        }
        batch.push(parse(number, line));
        if batch.len() >= MAX_BATCH && !on_batch(std::mem::take(&mut batch)) {
            return Ok(None);
        }
    }
    let is_complete = batch.is_empty() || on_batch(batch);
    Ok(is_complete.then_some(lines.n_bytes()))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use recall::memory_line::MemoryLineError;

    use super::{MAX_BATCH, read};

    #[test]
    fn blank_lines_are_left_out_but_counted() {
        let file =
            "{\"content\": \"One.\"}\r\n\n  \n{\"content\": \"Two.\", \"kind\": \"event\"}\nnoise";
        let mut found = Vec::new();

        let n_bytes = read(Cursor::new(file), &mut |batch| {
            found.extend(batch);
            true
        });

        assert_eq!(n_bytes.unwrap(), Some(file.len() as u64));
        let numbers: Vec<u64> = found.iter().map(|it| it.number).collect();
        assert_eq!(numbers, [1, 4, 5]);
        let contents = found
            .iter()
            .take(2)
            .map(|it| it.memory.as_ref().unwrap().content.as_str());
        assert_eq!(contents.collect::<Vec<_>>(), ["One.", "Two."]);
        assert_eq!(found[2].memory, Err(MemoryLineError::Broken));
    }

    #[test]
    fn a_batch_has_a_maximum_number_of_lines() {
        let file = "{}\n".repeat(2 * MAX_BATCH + 1);
        let mut sizes = Vec::new();

        let read_all = read(Cursor::new(&file), &mut |batch| {
            sizes.push(batch.len());
            true
        });
        let read_part = read(Cursor::new(&file), &mut |_| false);

        assert!(read_all.unwrap().is_some());
        assert_eq!(sizes, [MAX_BATCH, MAX_BATCH, 1]);
        assert_eq!(read_part.unwrap(), None);
    }
}
