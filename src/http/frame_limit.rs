//! Measures frames while they arrive.
//!
//! The decoder behind us looks at the length of a frame only once all of it is in memory. A frame
//! that announces more than its door takes ends the connection here, before its content comes. So
//! does one with a reserved bit, of which the decoder says no more than of a text that is none, and
//! a control frame in pieces, of which it writes into our log.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use futures::Stream;

/// Two bytes, eight of a long length, four of a mask.
const MAX_HEADER_BYTES: usize = 14;

/// Bytes of a client on their way to the decoder.
pub struct FrameLimit<S> {
    bytes: S,
    position: FramePosition,
}

impl<S> FrameLimit<S> {
    /// Measures what `bytes` brings: frames of at most so many bytes.
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

/// The bits of a frame that stand for nothing: nothing was agreed on.
const RESERVED: u8 = 0x70;
const IS_FINAL: u8 = 0x80;
const IS_CONTROL: u8 = 0x08;

/// Whether a frame can begin so.
fn is_malformed(first: u8) -> bool {
    first & RESERVED != 0 || first & (IS_FINAL | IS_CONTROL) == IS_CONTROL
}

/// Where in the stream of frames we are.
struct FramePosition {
    /// The longest frame, in bytes.
    max: usize,
    /// The header that is being read.
    header: [u8; MAX_HEADER_BYTES],
    n_header: usize,
    /// Bytes of the frame's content that are still to come.
    content: usize,
}

impl FramePosition {
    fn new(max: usize) -> Self {
        Self {
            max: max,
            header: [0; MAX_HEADER_BYTES],
            n_header: 0,
            content: 0,
        }
    }

    /// Lays itself along the next bytes.
    ///
    /// # Errors
    /// The first flaw of a frame.
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

/// The length that a header announces, once it is whole.
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

    /// A client's frame of so many bytes.
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
        /// However the bytes are cut, the frames are found.
        #[test]
        fn frames_are_found_in_any_pieces(
            lengths in proptest::collection::vec(prop_oneof![0..130usize, 65_000..66_000usize], 1..6),
            cut in 1..5000usize,
        ) {
            let bytes: Vec<u8> = lengths.iter().flat_map(|it| frame(*it)).collect();
            let mut tape = FramePosition::new(MAX);

            let fits = bytes.chunks(cut).all(|it| tape.advance(it).is_ok());

            prop_assert_eq!(fits, lengths.iter().all(|it| *it <= MAX));
        }
    }
}
