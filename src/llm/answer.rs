//! Turns the bytes of an answer into deltas, whichever API it comes from and in whichever form.
//!
//! **Invariant:** an answer that was cut off gives no [`Delta::End`]; after an error nothing
//! more is given; what follows the last piece is ignored.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::time::timeout;

use crate::llm::delta::Delta;
use crate::llm::delta::FinishReason;
use crate::llm::dialect::Framing;
use crate::llm::dialect::Reader;
use crate::llm::error::LlmError;
use crate::llm::json;
use crate::llm::lines;
use crate::llm::secret::Secret;
use crate::llm::sse;
use crate::llm::sse::Frame;
use crate::llm::sse::MAX_EVENT_BYTES;
use crate::llm::thoughts::Thoughts;

/// A connection can be used again only if its answer was read to the very end, which comes right
/// after the last piece or not at all.
const MAX_WAIT_FOR_EOF: Duration = Duration::from_millis(50);

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Stream(Framing),
    /// One JSON object, from servers that do not stream.
    Whole,
}

/// An answer on its way.
pub struct Answer {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    pieces: Pieces,
    reader: Box<dyn Reader>,
    thoughts: Thoughts,
    /// Read, not yet given. As long as one chunk makes it.
    ready: VecDeque<Delta>,
    error: Option<LlmError>,
    has_ended: bool,
    is_done: bool,
    is_closed: bool,
    key: Option<Secret>,
}

/// What tells one piece from the next.
enum Pieces {
    Events(sse::Decoder),
    Lines(lines::Decoder),
    /// All so far of the one piece.
    Whole(Vec<u8>),
}

impl Answer {
    /// Reads from a response body. The key is only there to be kept out of messages.
    pub fn new(
        bytes: BoxStream<'static, reqwest::Result<Bytes>>,
        form: Form,
        reader: Box<dyn Reader>,
        key: Option<Secret>,
    ) -> Self {
        let pieces = match form {
            Form::Stream(Framing::Events) => Pieces::Events(sse::Decoder::default()),
            Form::Stream(Framing::Lines) => Pieces::Lines(lines::Decoder::default()),
            Form::Whole => Pieces::Whole(Vec::new()),
        };
        Self {
            bytes,
            pieces,
            reader,
            thoughts: Thoughts::default(),
            ready: VecDeque::new(),
            error: None,
            has_ended: false,
            is_done: false,
            is_closed: false,
            key,
        }
    }

    /// The next delta; `None` when there are no more.
    pub async fn next(&mut self) -> Option<Result<Delta, LlmError>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
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
                Some(Ok(chunk)) => self.take_chunk(&chunk),
                Some(Err(_)) => {
                    self.error = Some(LlmError::Disconnected {
                        message:
                            "The connection to the provider broke in the middle of the answer."
                                .to_owned(),
                    });
                }
                None => self.finish(),
            }
        }
    }

    fn take_chunk(&mut self, chunk: &[u8]) {
        let frames = match &mut self.pieces {
            Pieces::Events(decoder) => decoder.feed(chunk),
            Pieces::Lines(decoder) => decoder.feed(chunk),
            Pieces::Whole(whole) if whole.len() + chunk.len() > MAX_EVENT_BYTES => {
                vec![Frame::Oversized]
            }
            Pieces::Whole(whole) => {
                whole.extend_from_slice(chunk);
                Vec::new()
            }
        };
        for frame in frames {
            self.take_frame(frame);
        }
        // Half an event is a sign of life too.
        if self.ready.is_empty() && self.error.is_none() && !self.is_done {
            self.ready.push_back(Delta::Life);
        }
    }

    fn finish(&mut self) {
        let rest = match &mut self.pieces {
            Pieces::Events(decoder) => decoder.finish(),
            Pieces::Lines(decoder) => decoder.finish(),
            Pieces::Whole(whole) => {
                let whole = mem::take(whole);
                self.take_piece("", &String::from_utf8_lossy(&whole));
                if self.error.is_none() {
                    self.end(FinishReason::Stop);
                }
                None
            }
        };
        // Some servers end without a blank line; what is not whole then was cut off.
        if let Some(Frame::Event { name, data }) = rest
            && (data.trim() == "[DONE]" || json::parse(&data).is_some())
        {
            self.take_frame(Frame::Event { name, data });
        }
        self.is_closed = self.error.is_none();
    }

    fn take_frame(&mut self, frame: Frame) {
        if self.is_done || self.error.is_some() {
            return;
        }
        match frame {
            Frame::Comment => self.ready.push_back(Delta::Life),
            Frame::Event { data, .. } if data.trim().is_empty() => {
                self.ready.push_back(Delta::Life);
            }
            Frame::Event { name, data } => self.take_piece(&name, &data),
            Frame::Oversized => {
                self.error = Some(LlmError::Upstream {
                    message: "The provider sent a single piece of more than a megabyte.".to_owned(),
                });
            }
        }
    }

    fn take_piece(&mut self, name: &str, data: &str) {
        let piece = match self.reader.read(name, data, self.key.as_ref()) {
            Ok(piece) => piece,
            Err(error) => {
                self.error = Some(error);
                return;
            }
        };
        for delta in piece.deltas {
            match delta {
                Delta::End(reason) => self.end(reason),
                Delta::Text(text) => self.ready.extend(self.thoughts.push(&text)),
                Delta::Refusal(_) => {
                    self.ready.extend(self.thoughts.finish());
                    self.ready.push_back(delta);
                }
                delta => self.ready.push_back(delta),
            }
        }
        self.is_done = piece.is_last;
    }

    fn end(&mut self, reason: FinishReason) {
        if !mem::replace(&mut self.has_ended, true) {
            self.ready.extend(self.thoughts.finish());
            self.ready.push_back(Delta::End(reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::StreamExt;
    use futures::stream;
    use proptest::prelude::any;
    use proptest::prelude::prop_assert_eq;
    use proptest::proptest;

    use super::Answer;
    use super::Form;
    use crate::llm::chat::Chunks;
    use crate::llm::delta::Delta;
    use crate::llm::delta::FinishReason;
    use crate::llm::delta::Usage;
    use crate::llm::dialect::Framing;
    use crate::llm::error::LlmError;

    fn read(chunks: Vec<Vec<u8>>, form: Form) -> Vec<Result<Delta, LlmError>> {
        let bytes = stream::iter(chunks).map(|it| Ok(Bytes::from(it))).boxed();
        let mut answer = Answer::new(bytes, form, Box::new(Chunks), None);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut deltas = Vec::new();
            while let Some(delta) = answer.next().await {
                deltas.push(delta);
            }
            deltas
        })
    }

    fn events(stream: &str) -> Vec<Result<Delta, LlmError>> {
        read(
            vec![stream.as_bytes().to_vec()],
            Form::Stream(Framing::Events),
        )
    }

    fn text(text: &str) -> Result<Delta, LlmError> {
        Ok(Delta::Text(text.to_owned()))
    }

    const HI: &str = r#"{"choices":[{"delta":{"content":"Hi"}}]}"#;
    const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;

    #[test]
    fn usage_after_the_end_is_read_and_done_ends_it_once() {
        let stream = format!("data: {HI}\n\ndata: {STOP}\n\ndata: {USAGE}\n\ndata: [DONE]\n\n");

        let usage = Usage {
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
    fn done_alone_ends_an_answer_and_what_follows_it_is_ignored() {
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
    fn a_last_event_without_its_blank_line_counts_if_it_is_whole() {
        assert_eq!(
            events(&format!("data: {HI}\n\ndata: [DONE]"))[1..],
            [Ok(Delta::End(FinishReason::Stop))]
        );
    }

    #[test]
    fn after_nonsense_nothing_more_is_given() {
        let given = events(&format!("data: {HI}\n\ndata: nonsense\n\ndata: {HI}\n\n"));

        assert_eq!(given[0], text("Hi"));
        assert!(matches!(given[1], Err(LlmError::Upstream { .. })));
        assert_eq!(given.len(), 2);
    }

    #[test]
    fn an_event_named_error_is_one() {
        let error = events("event: error\ndata: {\"message\": \"Overloaded.\"}\n\n")
            .remove(0)
            .unwrap_err();

        assert_eq!(error.to_string(), "The provider broke off: Overloaded.");
    }

    #[test]
    fn an_answer_in_one_piece_is_taken_as_one() {
        let whole = r#"{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
        let (first, second) = whole.as_bytes().split_at(30);

        let given = read(vec![first.to_vec(), second.to_vec()], Form::Whole);

        let usage = Usage {
            prompt_tokens: 1,
            completion_tokens: 2,
        };
        assert_eq!(
            given,
            [
                Ok(Delta::Life),
                Ok(Delta::Life),
                text("Hi"),
                Ok(Delta::Usage(usage)),
                Ok(Delta::End(FinishReason::Stop)),
            ]
        );
    }

    #[test]
    fn an_error_in_place_of_an_answer_is_one() {
        for whole in [r#"{"error":{"message":"No."}}"#, "", "nonsense"] {
            let given = read(vec![whole.as_bytes().to_vec()], Form::Whole);

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
                given.into_iter().filter(|it| *it != Ok(Delta::Life)).collect()
            };

            let pieces = cuts.windows(2).map(|it| stream[it[0]..it[1]].to_vec()).collect();

            prop_assert_eq!(visible(read(pieces, Form::Stream(Framing::Events))), visible(read(vec![stream], Form::Stream(Framing::Events))));
        }
    }
}
