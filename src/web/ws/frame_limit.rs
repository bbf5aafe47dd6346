//! Ends a WebSocket connection when the header of a frame announces too much content or is
//! malformed, before the content arrives.
//!
//! The decoder checks the length of a frame only when the whole frame is in memory. It reports a
//! reserved bit like invalid text, and writes a log line about a fragmented control frame; both are
//! malformed here.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use futures::Stream;

/// Two bytes, eight of a long length, four of a mask.
const MAX_HEADER_BYTES: usize = 14;

/// The bytes of a client before they reach the decoder.
pub struct FrameLimit<S> {
    bytes: S,
    position: FramePosition,
}

impl<S> FrameLimit<S> {
    /// Limits the frames in `bytes` to `max` bytes each.
    pub fn new(bytes: S, max: usize) -> Self {
        Self {
            bytes,
            position: FramePosition::new(max),
        }
    }
}

impl<S> Stream for FrameLimit<S>
where
    S: Stream<Item = Result<Bytes, PayloadError>> + Unpin,
{
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let next = ready!(Pin::new(&mut self.bytes).poll_next(context));
        let Some(Ok(bytes)) = &next else {
            return Poll::Ready(next);
        };
        Poll::Ready(match self.position.advance(bytes) {
            Ok(()) => next,
            Err(FrameError::TooLong) => Some(Err(PayloadError::Overflow)),
            Err(FrameError::Malformed) => Some(Err(PayloadError::EncodingCorrupted)),
        })
    }
}

/// Why a frame ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameError {
    TooLong,
    Malformed,
}

/// The reserved bits of a frame: no extension was negotiated.
const RESERVED: u8 = 0x70;
const IS_FINAL: u8 = 0x80;
const IS_CONTROL: u8 = 0x08;

/// Returns whether a first byte is invalid.
fn is_malformed(first: u8) -> bool {
    first & RESERVED != 0 || first & (IS_FINAL | IS_CONTROL) == IS_CONTROL
}

/// The position in the stream of frames.
struct FramePosition {
    /// The maximum length of a frame, in bytes.
    max: usize,
    /// The header that is being read.
    header: [u8; MAX_HEADER_BYTES],
    n_header: usize,
    /// Bytes of the frame's content that have not arrived yet.
    content: usize,
}

impl FramePosition {
    fn new(max: usize) -> Self {
        Self {
            max,
            header: [0; MAX_HEADER_BYTES],
            n_header: 0,
            content: 0,
        }
    }

    /// Processes the next bytes.
    ///
    /// # Errors
    /// Returns the first error of a frame.
    fn advance(&mut self, mut bytes: &[u8]) -> Result<(), FrameError> {
        while let Some((first, others)) = bytes.split_first() {
            if self.content > 0 {
                let n = self.content.min(bytes.len());
                self.content -= n;
                bytes = &bytes[n..];
                continue;
            }
            if self.n_header == 0 && is_malformed(*first) {
                return Err(FrameError::Malformed);
            }
            self.header[self.n_header] = *first;
            self.n_header += 1;
            bytes = others;
            if let Some(length) = declared_length(&self.header[..self.n_header]) {
                if length > self.max as u64 {
                    return Err(FrameError::TooLong);
                }
                self.n_header = 0;
                self.content = length as usize;
            }
        }
        Ok(())
    }
}

/// Returns the length that a header announces, once it is complete.
fn declared_length(header: &[u8]) -> Option<u64> {
    let second = *header.get(1)?;
    let n_length = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let n_mask = if second & 0x80 == 0 { 0 } else { 4 };
    if header.len() < 2 + n_length + n_mask {
        return None;
    }
    Some(match n_length {
        0 => u64::from(second & 0x7f),
        _ => header[2..2 + n_length]
            .iter()
            .fold(0, |length, it| length << 8 | u64::from(*it)),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{FrameError, FramePosition};

    const MAX: usize = 64 * 1024;

    /// Returns a client's frame with this many bytes.
    fn frame(length: usize) -> Vec<u8> {
        let mut frame = vec![0x81];
        match length {
            0..=125 => frame.push(0x80 | length as u8),
            126..=0xffff => {
                frame.push(0x80 | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            _ => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend([0xff; 4]);
        frame.extend(std::iter::repeat_n(0xfe, length));
        frame
    }

    #[test]
    fn the_longest_frame_fits_and_one_byte_more_does_not() {
        assert_eq!(FramePosition::new(MAX).advance(&frame(MAX)), Ok(()));
        let more = FramePosition::new(MAX).advance(&frame(MAX + 1));
        assert_eq!(more, Err(FrameError::TooLong));
    }

    #[test]
    fn a_frame_is_rejected_by_its_header_alone() {
        let announced = &frame(1 << 20)[..14];

        let endless = [
            0x81, 0xff, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0,
        ];
        for header in [announced, &endless] {
            assert_eq!(
                FramePosition::new(MAX).advance(header),
                Err(FrameError::TooLong)
            );
        }
    }

    #[test]
    fn protocol_errors_are_detected_in_the_first_byte_of_a_frame_only() {
        let mut other = frame(200);
        other.extend(frame(3));
        assert_eq!(FramePosition::new(MAX).advance(&other), Ok(()));

        for first in [0xc1, 0xa1, 0x91, 0x08, 0x09, 0x0a] {
            let broken = [other.as_slice(), &[first]].concat();
            assert_eq!(
                FramePosition::new(MAX).advance(&broken),
                Err(FrameError::Malformed)
            );
        }
    }

    proptest! {
        /// Frames are found wherever the bytes are cut.
        #[test]
        fn frames_are_detected_however_their_bytes_are_split(
            lengths in proptest::collection::vec(prop_oneof![0..130usize, 65_000..66_000usize], 1..6),
            cut in 1..5000usize,
        ) {
            let bytes: Vec<u8> = lengths.iter().flat_map(|it| frame(*it)).collect();
            let mut position = FramePosition::new(MAX);

            let fits = bytes.chunks(cut).all(|it| position.advance(it).is_ok());

            prop_assert_eq!(fits, lengths.iter().all(|it| *it <= MAX));
        }
    }
}
