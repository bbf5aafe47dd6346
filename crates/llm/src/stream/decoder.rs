//! Decodes the body of a model response to deltas, for every API and body format.
//!
//! **Invariant:** a response that was cut off yields no [`Delta::End`]; nothing follows an error;
//! everything after the last piece is ignored.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::time::timeout;

use crate::delta::{Delta, FinishReason};
use crate::dialect::{ChunkParser, Framing};
use crate::error::LlmError;
use crate::secret::Secret;
use crate::stream::reasoning_tags::ReasoningTagParser;
use crate::stream::sse::{MAX_EVENT_BYTES, SseFrame};
use crate::stream::{ndjson, sse, untrusted_json};

/// A connection can be reused only if its response was read to the end, which usually arrives right
/// after the last piece or not at all.
const MAX_WAIT_FOR_EOF: Duration = Duration::from_millis(50);

/// The format of a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFormat {
    Stream(Framing),
    /// One JSON object, from servers that do not stream.
    Whole,
}

/// A response that is being received.
pub struct StreamDecoder {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    splitter: FrameSplitter,
    parser: Box<dyn ChunkParser>,
    reasoning_tags: ReasoningTagParser,
    /// Decoded deltas that were not returned yet; at most those of one chunk.
    pending: VecDeque<Delta>,
    error: Option<LlmError>,
    has_ended: bool,
    is_done: bool,
    is_closed: bool,
    key: Option<Secret>,
}

/// Splits the bytes into pieces.
enum FrameSplitter {
    Events(sse::SseDecoder),
    Lines(ndjson::NdjsonDecoder),
    /// The bytes so far of a single document.
    Whole(Vec<u8>),
}

impl StreamDecoder {
    /// Reads from a response body. The key is used only to remove it from messages.
    pub fn new(
        bytes: BoxStream<'static, reqwest::Result<Bytes>>,
        format: BodyFormat,
        parser: Box<dyn ChunkParser>,
        key: Option<Secret>,
    ) -> Self {
        let splitter = match format {
            BodyFormat::Stream(Framing::Events) => {
                FrameSplitter::Events(sse::SseDecoder::default())
            }
            BodyFormat::Stream(Framing::Lines) => {
                FrameSplitter::Lines(ndjson::NdjsonDecoder::default())
            }
            BodyFormat::Whole => FrameSplitter::Whole(Vec::new()),
        };
        Self {
            bytes,
            splitter,
            parser,
            reasoning_tags: ReasoningTagParser::default(),
            pending: VecDeque::new(),
            error: None,
            has_ended: false,
            is_done: false,
            is_closed: false,
            key,
        }
    }

    /// Returns the decoder with further tags of the reasoning.
    pub fn with_reasoning_tags(self, tags: Option<&(String, String)>) -> Self {
        Self {
            reasoning_tags: ReasoningTagParser::with_tags(tags),
            ..self
        }
    }

    /// Returns the next delta, or `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Delta, LlmError>> {
        loop {
            if let Some(delta) = self.pending.pop_front() {
                return Some(Ok(delta));
            }
            if let Some(error) = self.error.take() {
                self.is_closed = true;
                return Some(Err(error));
            }
            if self.is_closed {
                return None;
            }
            if self.is_done {
                let rest = async { while let Some(Ok(_)) = self.bytes.next().await {} };
                let _ = timeout(MAX_WAIT_FOR_EOF, rest).await;
                self.is_closed = true;
                return None;
            }
            match self.bytes.next().await {
                Some(Ok(chunk)) => self.decode_chunk(&chunk),
                Some(Err(_)) => {
                    self.error = Some(LlmError::Disconnected {
                        message: "The connection to the provider broke during the response."
                            .to_owned(),
                    });
                }
                None => self.finish(),
            }
        }
    }

    fn decode_chunk(&mut self, chunk: &[u8]) {
        let frames = match &mut self.splitter {
            FrameSplitter::Events(decoder) => decoder.feed(chunk),
            FrameSplitter::Lines(decoder) => decoder.feed(chunk),
            FrameSplitter::Whole(whole) if whole.len() + chunk.len() > MAX_EVENT_BYTES => {
                vec![SseFrame::Oversized]
            }
            FrameSplitter::Whole(whole) => {
                whole.extend_from_slice(chunk);
                Vec::new()
            }
        };
        for frame in frames {
            self.decode_frame(frame);
        }
        // A part of an event also shows that the server is alive.
        if self.pending.is_empty() && self.error.is_none() && !self.is_done {
            self.pending.push_back(Delta::KeepAlive);
        }
    }

    fn finish(&mut self) {
        let rest = match &mut self.splitter {
            FrameSplitter::Events(decoder) => decoder.finish(),
            FrameSplitter::Lines(decoder) => decoder.finish(),
            FrameSplitter::Whole(whole) => {
                let whole = mem::take(whole);
                self.decode_event("", &String::from_utf8_lossy(&whole));
                if self.error.is_none() {
                    self.push_end(FinishReason::Stop);
                }
                None
            }
        };
        // Some servers end without a blank line; an incomplete event then means that the stream was
        // cut off.
        if let Some(SseFrame::Event { name, data }) = rest
            && (data.trim() == "[DONE]" || untrusted_json::parse_object(&data).is_some())
        {
            self.decode_frame(SseFrame::Event { name, data });
        }
        self.is_closed = self.error.is_none();
    }

    fn decode_frame(&mut self, frame: SseFrame) {
        if self.is_done || self.error.is_some() {
            return;
        }
        match frame {
            SseFrame::Comment => self.pending.push_back(Delta::KeepAlive),
            SseFrame::Event { data, .. } if data.trim().is_empty() => {
                self.pending.push_back(Delta::KeepAlive);
            }
            SseFrame::Event { name, data } => self.decode_event(&name, &data),
            SseFrame::Oversized => {
                self.error = Some(LlmError::Upstream {
                    message: "The provider sent a single event of more than a megabyte.".to_owned(),
                });
            }
        }
    }

    fn decode_event(&mut self, name: &str, data: &str) {
        let piece = match self.parser.parse(name, data, self.key.as_ref()) {
            Ok(piece) => piece,
            Err(error) => {
                self.error = Some(error);
                return;
            }
        };
        for delta in piece.deltas {
            match delta {
                Delta::End(reason) => self.push_end(reason),
                Delta::Text(text) => self.pending.extend(self.reasoning_tags.push(&text)),
                Delta::Refusal(_) => {
                    self.pending.extend(self.reasoning_tags.finish());
                    self.pending.push_back(delta);
                }
                delta => self.pending.push_back(delta),
            }
        }
        self.is_done = piece.is_last;
    }

    fn push_end(&mut self, reason: FinishReason) {
        if !mem::replace(&mut self.has_ended, true) {
            self.pending.extend(self.reasoning_tags.finish());
            self.pending.push_back(Delta::End(reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::{StreamExt, stream};
    use proptest::prelude::{any, prop_assert_eq};
    use proptest::proptest;

    use super::{BodyFormat, StreamDecoder};
    use crate::delta::{Delta, FinishReason, TokenUsage};
    use crate::dialect::Framing;
    use crate::error::LlmError;
    use crate::openai_chat::dialect::ChatChunkParser;

    fn decode(chunks: Vec<Vec<u8>>, format: BodyFormat) -> Vec<Result<Delta, LlmError>> {
        let bytes = stream::iter(chunks).map(|it| Ok(Bytes::from(it))).boxed();
        let mut decoder = StreamDecoder::new(bytes, format, Box::new(ChatChunkParser), None);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut deltas = Vec::new();
            while let Some(delta) = decoder.next().await {
                deltas.push(delta);
            }
            deltas
        })
    }

    fn events(stream: &str) -> Vec<Result<Delta, LlmError>> {
        decode(
            vec![stream.as_bytes().to_vec()],
            BodyFormat::Stream(Framing::Events),
        )
    }

    fn text(text: &str) -> Result<Delta, LlmError> {
        Ok(Delta::Text(text.to_owned()))
    }

    const HI: &str = r#"{"choices":[{"delta":{"content":"Hi"}}]}"#;
    const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;

    #[test]
    fn usage_after_the_end_is_read_and_done_gives_no_second_end() {
        let stream = format!("data: {HI}\n\ndata: {STOP}\n\ndata: {USAGE}\n\ndata: [DONE]\n\n");

        let usage = TokenUsage {
            prompt_tokens: 1,
            completion_tokens: 2,
        };
        assert_eq!(
            events(&stream),
            [
                text("Hi"),
                Ok(Delta::End(FinishReason::Stop)),
                Ok(Delta::Usage(usage))
            ]
        );
    }

    #[test]
    fn done_alone_ends_an_answer_and_later_events_are_ignored() {
        let stream = format!("data: {HI}\n\ndata: [DONE]\n\ndata: nonsense\n\ndata: [DONE]\n\n");

        assert_eq!(
            events(&stream),
            [text("Hi"), Ok(Delta::End(FinishReason::Stop))]
        );
    }

    #[test]
    fn a_stream_without_finish_reason_and_done_gives_no_end() {
        assert_eq!(events(&format!("data: {HI}\n\n")), [text("Hi")]);
        assert_eq!(
            events(&format!("data: {HI}\n\ndata: {{\"choi")),
            [text("Hi")]
        );
    }

    #[test]
    fn a_complete_last_event_needs_no_blank_line() {
        assert_eq!(
            events(&format!("data: {HI}\n\ndata: [DONE]"))[1..],
            [Ok(Delta::End(FinishReason::Stop))]
        );
    }

    #[test]
    fn nothing_is_decoded_after_invalid_data() {
        let given = events(&format!("data: {HI}\n\ndata: nonsense\n\ndata: {HI}\n\n"));

        assert_eq!(given[0], text("Hi"));
        assert!(matches!(given[1], Err(LlmError::Upstream { .. })));
        assert_eq!(given.len(), 2);
    }

    #[test]
    fn an_error_event_is_reported_as_an_error() {
        let error = events("event: error\ndata: {\"message\": \"Overloaded.\"}\n\n")
            .remove(0)
            .unwrap_err();

        assert_eq!(
            error.to_string(),
            "The provider returned an error: Overloaded."
        );
    }

    #[test]
    fn an_unstreamed_body_is_decoded() {
        let whole = r#"{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
        let (first, second) = whole.as_bytes().split_at(30);

        let given = decode(vec![first.to_vec(), second.to_vec()], BodyFormat::Whole);

        let usage = TokenUsage {
            prompt_tokens: 1,
            completion_tokens: 2,
        };
        assert_eq!(
            given,
            [
                Ok(Delta::KeepAlive),
                Ok(Delta::KeepAlive),
                text("Hi"),
                Ok(Delta::Usage(usage)),
                Ok(Delta::End(FinishReason::Stop)),
            ]
        );
    }

    #[test]
    fn an_error_body_is_reported_as_an_error() {
        for whole in [r#"{"error":{"message":"No."}}"#, "", "nonsense"] {
            let given = decode(vec![whole.as_bytes().to_vec()], BodyFormat::Whole);

            assert!(given.last().unwrap().is_err(), "{whole}");
        }
    }

    proptest! {
        #[test]
        fn the_deltas_do_not_depend_on_where_the_bytes_are_cut(
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
        ) {
            let chunk = |text: &str| format!(r#"data: {{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
            let stream = format!(
                "\u{feff}{}\r\n\r\n: ping\r\r{}\n\ndata: {STOP}\n\ndata: {USAGE}\n\ndata: [DONE]\n\n",
                chunk("Grüße, 漢字"), chunk("🦀\\ud83e\\udd80"),
            ).into_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|it| it.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let visible = |given: Vec<Result<Delta, LlmError>>| -> Vec<_> {
                given.into_iter().filter(|it| *it != Ok(Delta::KeepAlive)).collect()
            };

            let pieces = cuts.windows(2).map(|it| stream[it[0]..it[1]].to_vec()).collect();

            prop_assert_eq!(visible(decode(pieces, BodyFormat::Stream(Framing::Events))), visible(decode(vec![stream], BodyFormat::Stream(Framing::Events))));
        }
    }
}
