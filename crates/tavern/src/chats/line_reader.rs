//! Reads a file line by line, and skips lines that exceed a length limit, so that memory use is
//! bounded.

use std::io::BufRead;

/// Maximum length of a line: a message with all its swipes and the metadata of frontends.
pub const MAX_LINE: usize = 2 * 1024 * 1024;

/// A line of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum RawLine<'a> {
    Line(&'a [u8]),
    /// The line was longer than [`MAX_LINE`] and was skipped.
    TooLong,
}

/// Reads lines and counts lines and bytes.
pub struct LineReader<R> {
    input: R,
    line: Vec<u8>,
    n_lines: u64,
    n_bytes: u64,
}

impl<R: BufRead> LineReader<R> {
    /// Creates a reader at the start of the input.
    pub fn new(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
            n_lines: 0,
            n_bytes: 0,
        }
    }

    /// Returns the number of bytes read.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Returns the next line without its line break, and its number from 1; `None` at the end of
    /// the file. The last line needs no line break. A byte order mark is not part of the first
    /// line.
    ///
    /// # Errors
    /// Returns the I/O error if the file cannot be read.
    pub fn next_line(&mut self) -> std::io::Result<Option<(u64, RawLine<'_>)>> {
        self.line.clear();
        let mut is_too_long = false;
        let mut n_read = 0;
        loop {
            let seen = self.input.fill_buf()?;
            if seen.is_empty() {
                break;
            }
            let end = seen.iter().position(|it| *it == b'\n');
            let part = &seen[..end.unwrap_or(seen.len())];
            is_too_long |= self.line.len() + part.len() > MAX_LINE;
            if is_too_long {
                self.line.clear();
            } else {
                self.line.extend_from_slice(part);
            }
            let n_taken = part.len() + usize::from(end.is_some());
            self.input.consume(n_taken);
            n_read += n_taken as u64;
            if end.is_some() {
                break;
            }
        }
        if n_read == 0 {
            return Ok(None);
        }
        self.n_bytes += n_read;
        self.n_lines += 1;
        if is_too_long {
            return Ok(Some((self.n_lines, RawLine::TooLong)));
        }
        let mut line = self.line.as_slice();
        if self.n_lines == 1 {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        Ok(Some((self.n_lines, RawLine::Line(line.trim_ascii()))))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::{LineReader, MAX_LINE, RawLine};

    fn all(text: &[u8]) -> Vec<String> {
        let mut lines = LineReader::new(BufReader::with_capacity(7, text));
        let mut all = Vec::new();
        while let Some((number, piece)) = lines.next_line().unwrap() {
            all.push(match piece {
                RawLine::Line(line) => format!("{number}:{}", String::from_utf8_lossy(line)),
                RawLine::TooLong => format!("{number}!"),
            });
        }
        assert_eq!(lines.n_bytes(), text.len() as u64);
        all
    }

    #[test]
    fn byte_order_marks_and_line_ends_are_stripped() {
        assert_eq!(
            all(b"\xef\xbb\xbfone\r\n\r\n two \n\nthree, far longer than one look"),
            [
                "1:one",
                "2:",
                "3:two",
                "4:",
                "5:three, far longer than one look"
            ]
        );
        assert_eq!(all(b""), Vec::<String>::new());
    }

    #[test]
    fn an_endless_line_is_skipped_without_buffering() {
        let endless = std::io::repeat(b'x').take(20 * MAX_LINE as u64);
        let file = BufReader::new(endless.chain(&b"\n{}\n"[..]));
        let mut lines = LineReader::new(file);

        assert_eq!(lines.next_line().unwrap(), Some((1, RawLine::TooLong)));
        assert!(lines.line.capacity() <= 2 * MAX_LINE);
        assert_eq!(lines.next_line().unwrap(), Some((2, RawLine::Line(b"{}"))));
        assert_eq!(lines.next_line().unwrap(), None);
    }
}
