//! Splits an event stream (`text/event-stream`), received in chunks of any size, into events and
//! comments.
//!
//! **Invariant:** the frames do not depend on the chunk boundaries, and the decoder keeps at most
//! [`MAX_EVENT_BYTES`] and one chunk, however long the lines are.

use std::mem;

/// Maximum size of an event, in bytes. Real events have a few hundred; a server that sends more is
/// broken or malicious.
pub const MAX_EVENT_BYTES: usize = 1024 * 1024;

/// One frame of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseFrame {
    /// A line that begins with a colon: servers send them to keep the connection alive.
    Comment,
    /// An event: its name (empty if the stream contains none) and its data.
    Event { name: String, data: String },
    /// An event exceeded the limit. Nothing is read after it.
    Oversized,
}

/// State between two chunks.
#[derive(Debug, Default)]
pub struct SseDecoder {
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    /// A `\r` ended the last line: a `\n` right after it belongs to it.
    is_after_cr: bool,
    /// A byte order mark is allowed only before the first line.
    is_past_first_line: bool,
    is_closed: bool,
}

impl SseDecoder {
    /// Adds a chunk and returns the frames that it completes.
    pub fn feed(&mut self, chunk: &[u8]) -> Vec<SseFrame> {
        let mut frames = Vec::new();
        let mut rest = chunk;
        while !self.is_closed && !rest.is_empty() {
            if mem::take(&mut self.is_after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            match rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                Some(end) => {
                    self.extend_line(&rest[..end], &mut frames);
                    self.is_after_cr = rest[end] == b'\r';
                    rest = &rest[end + 1..];
                    self.end_line(&mut frames);
                }
                None => {
                    self.extend_line(rest, &mut frames);
                    rest = &[];
                }
            }
        }
        frames
    }

    /// Ends the stream. The standard drops an event without a final blank line; this returns it,
    /// because some servers close right after their last line. It may be incomplete.
    pub fn finish(&mut self) -> Option<SseFrame> {
        let mut frames = Vec::new();
        if !self.is_closed && !self.line.is_empty() {
            self.end_line(&mut frames);
        }
        if !self.is_closed {
            self.dispatch(&mut frames);
        }
        self.is_closed = true;
        frames
            .pop()
            .filter(|frame| matches!(frame, SseFrame::Event { .. }))
    }

    fn extend_line(&mut self, bytes: &[u8], frames: &mut Vec<SseFrame>) {
        if self.line.len() + self.data.len() + bytes.len() > MAX_EVENT_BYTES {
            *self = Self {
                is_closed: true,
                ..Self::default()
            };
            frames.push(SseFrame::Oversized);
            return;
        }
        self.line.extend_from_slice(bytes);
    }

    fn end_line(&mut self, frames: &mut Vec<SseFrame>) {
        if self.is_closed {
            return;
        }
        let bytes = mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let mut line = line.as_ref();
        if !mem::replace(&mut self.is_past_first_line, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(frames);
        } else if line.starts_with(':') {
            frames.push(SseFrame::Comment);
        } else {
            self.read_field(line);
        }
    }

    fn read_field(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.name),
            // `id` and `retry` are for reconnecting, which is impossible for the response to a
            // POST.
            _ => {}
        }
    }

    fn dispatch(&mut self, frames: &mut Vec<SseFrame>) {
        let name = mem::take(&mut self.name);
        let data = mem::take(&mut self.data);
        if mem::take(&mut self.has_data) {
            frames.push(SseFrame::Event { name, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq};
    use proptest::proptest;

    use super::{MAX_EVENT_BYTES, SseDecoder, SseFrame};

    fn decode(bytes: &[u8]) -> Vec<SseFrame> {
        SseDecoder::default().feed(bytes)
    }

    fn event(data: &str) -> SseFrame {
        SseFrame::Event {
            name: String::new(),
            data: data.to_owned(),
        }
    }

    #[test]
    fn every_line_ending_ends_a_line() {
        for ending in ["\n", "\r\n", "\r"] {
            let stream = format!("data: a{ending}{ending}data: b{ending}{ending}");

            assert_eq!(
                decode(stream.as_bytes()),
                [event("a"), event("b")],
                "{ending:?}"
            );
        }
    }

    #[test]
    fn at_most_one_space_after_the_colon_is_dropped() {
        assert_eq!(
            decode(b"data:a\n\ndata:  b\n\ndata\n\n"),
            [event("a"), event(" b"), event("")]
        );
    }

    #[test]
    fn data_lines_of_one_event_are_joined_by_newlines() {
        assert_eq!(
            decode(b"data: a\ndata: b\nid: 7\nretry: 1\n\n"),
            [event("a\nb")]
        );
    }

    #[test]
    fn a_comment_is_reported_even_inside_an_event() {
        assert_eq!(
            decode(b": ping\n\ndata: a\n:\n\n"),
            [SseFrame::Comment, SseFrame::Comment, event("a")]
        );
    }

    #[test]
    fn an_event_name_applies_only_to_its_own_event() {
        let named = SseFrame::Event {
            name: "error".to_owned(),
            data: "x".to_owned(),
        };

        assert_eq!(
            decode(b"event: error\ndata: x\n\ndata: y\n\n"),
            [named, event("y")]
        );
    }

    #[test]
    fn a_byte_order_mark_is_dropped_at_the_start_only() {
        let frames = decode("\u{feff}data: a\n\n\u{feff}data: b\n\n".as_bytes());

        assert_eq!(frames, [event("a")]);
    }

    #[test]
    fn an_event_past_the_limit_closes_the_decoder() {
        let mut decoder = SseDecoder::default();
        let quarter = vec![b'x'; MAX_EVENT_BYTES / 4];

        decoder.feed(b"data: ");
        let within: Vec<_> = (0..3).flat_map(|_| decoder.feed(&quarter)).collect();
        let beyond: Vec<_> = (0..3).flat_map(|_| decoder.feed(&quarter)).collect();

        assert_eq!(within, []);
        assert_eq!(beyond, [SseFrame::Oversized]);
        assert_eq!(decoder.feed(b"\n\ndata: a\n\n"), []);
        assert_eq!(decoder.finish(), None);
    }

    #[test]
    fn many_short_lines_count_toward_the_event_limit() {
        let stream = "data: 0123456789\n".repeat(MAX_EVENT_BYTES / 10);

        assert_eq!(decode(stream.as_bytes()), [SseFrame::Oversized]);
    }

    #[test]
    fn an_event_cut_off_by_the_end_of_the_stream_is_returned_at_the_end() {
        let mut decoder = SseDecoder::default();

        assert_eq!(decoder.feed(b"data: [DONE]"), []);
        assert_eq!(decoder.finish(), Some(event("[DONE]")));
        assert_eq!(decoder.finish(), None);
    }

    proptest! {
        #[test]
        fn frames_do_not_depend_on_where_chunks_are_cut(
            lines in proptest::collection::vec(
                proptest::sample::select(vec![
                    "data: a", "data:é 漢字 🦀", "data", ": ping", "event: x", "", "", "id: 1", "\u{feff}", "nonsense",
                ]),
                0..24,
            ),
            endings in proptest::collection::vec(proptest::sample::select(vec!["\n", "\r\n", "\r"]), 24),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
        ) {
            let mut stream = Vec::new();
            for (line, ending) in lines.iter().zip(&endings) {
                stream.extend_from_slice(line.as_bytes());
                stream.extend_from_slice(ending.as_bytes());
            }
            let mut cuts: Vec<usize> = cuts.iter().map(|it| it.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let mut whole = SseDecoder::default();
            let mut pieces = SseDecoder::default();

            let expected = (whole.feed(&stream), whole.finish());
            let frames: Vec<_> = cuts.windows(2).flat_map(|it| pieces.feed(&stream[it[0]..it[1]])).collect();

            prop_assert_eq!((frames, pieces.finish()), expected);
        }
    }
}
