//! Splits a stream of NDJSON (one JSON object per line), received in chunks of any size, into
//! lines.
//!
//! **Invariant:** the lines do not depend on the chunk boundaries, and the decoder keeps at most
//! [`MAX_EVENT_BYTES`] and one chunk.

use std::mem;

use crate::stream::sse::{MAX_EVENT_BYTES, SseFrame};

/// State between two chunks.
#[derive(Debug, Default)]
pub struct NdjsonDecoder {
    line: Vec<u8>,
    is_closed: bool,
}

impl NdjsonDecoder {
    /// Adds a chunk and returns the lines that it completes. Empty lines are skipped.
    pub fn feed(&mut self, chunk: &[u8]) -> Vec<SseFrame> {
        let mut frames = Vec::new();
        for part in chunk.split_inclusive(|it| *it == b'\n') {
            if self.is_closed {
                break;
            }
            if self.line.len() + part.len() > MAX_EVENT_BYTES {
                self.line = Vec::new();
                self.is_closed = true;
                frames.push(SseFrame::Oversized);
                break;
            }
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                frames.extend(self.finish_line());
            }
        }
        frames
    }

    /// Ends the stream and returns its last line, which may be incomplete.
    pub fn finish(&mut self) -> Option<SseFrame> {
        self.is_closed = true;
        self.finish_line()
    }

    fn finish_line(&mut self) -> Option<SseFrame> {
        let line = mem::take(&mut self.line);
        let data = String::from_utf8_lossy(&line);
        let data = data.trim_start_matches('\u{feff}').trim();
        (!data.is_empty()).then(|| SseFrame::Event {
            name: String::new(),
            data: data.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq};
    use proptest::proptest;

    use super::NdjsonDecoder;
    use crate::stream::sse::{MAX_EVENT_BYTES, SseFrame};

    fn line(data: &str) -> SseFrame {
        SseFrame::Event {
            name: String::new(),
            data: data.to_owned(),
        }
    }

    #[test]
    fn every_line_is_a_frame_and_the_last_needs_no_newline() {
        let mut decoder = NdjsonDecoder::default();

        assert_eq!(
            decoder.feed("\u{feff}{\"a\":1}\r\n\n{\"b\":\"é\"}\n{".as_bytes()),
            [line("{\"a\":1}"), line("{\"b\":\"é\"}")]
        );
        assert_eq!(decoder.finish(), Some(line("{")));
        assert_eq!(decoder.finish(), None);
    }

    #[test]
    fn a_line_past_the_limit_closes_the_decoder() {
        let mut decoder = NdjsonDecoder::default();
        let third = vec![b'x'; MAX_EVENT_BYTES / 3];

        let all: Vec<_> = (0..6).flat_map(|_| decoder.feed(&third)).collect();

        assert_eq!(all, [SseFrame::Oversized]);
        assert_eq!(decoder.feed(b"\n{}\n"), []);
        assert_eq!(decoder.finish(), None);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_where_chunks_are_cut(
            stream in "([{}a漢🦀\u{feff}]{0,3}(\r?\n)?){0,12}",
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
        ) {
            let stream = stream.into_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|it| it.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let (mut whole, mut pieces) = (NdjsonDecoder::default(), NdjsonDecoder::default());

            let expected = (whole.feed(&stream), whole.finish());
            let lines: Vec<_> = cuts.windows(2).flat_map(|it| pieces.feed(&stream[it[0]..it[1]])).collect();

            prop_assert_eq!((lines, pieces.finish()), expected);
        }
    }
}
