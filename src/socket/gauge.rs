//! Measures frames while they arrive.
//!
//! The decoder below us looks at the length of a frame only once all of it is in memory. A frame
//! that announces more than [`MOST`] bytes ends the connection here, before its content comes.

use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use futures::Stream;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

/// The longest frame, and the longest message in pieces.
pub const MOST: usize = 64 * 1024;

/// Two bytes, eight of a long length, four of a mask.
const LONGEST_HEADER: usize = 14;

/// Bytes of a client on their way to the decoder.
pub struct Gauge<S> {
    bytes: S,
    tape: Tape,
}

impl<S> Gauge<S> {
    /// Measures what `bytes` brings.
    pub fn new(bytes: S) -> Self {
        Self {
            bytes,
            tape: Tape::default(),
        }
    }
}

impl<S> Stream for Gauge<S>
where
    S: Stream<Item = Result<Bytes, PayloadError>> + Unpin,
{
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let next = ready!(Pin::new(&mut self.bytes).poll_next(context));
        if let Some(Ok(bytes)) = &next
            && !self.tape.fits(bytes)
        {
            return Poll::Ready(Some(Err(PayloadError::Overflow)));
        }
        Poll::Ready(next)
    }
}

/// Where in the stream of frames we are.
#[derive(Default)]
struct Tape {
    /// The header that is being read.
    header: [u8; LONGEST_HEADER],
    n_header: usize,
    /// Bytes of the frame's content that are still to come.
    content: usize,
}

impl Tape {
    /// Lays itself along the next bytes; `false`: a frame is too long.
    fn fits(&mut self, mut bytes: &[u8]) -> bool {
        while let Some((first, others)) = bytes.split_first() {
            if self.content > 0 {
                let n = self.content.min(bytes.len());
                self.content -= n;
                bytes = &bytes[n..];
                continue;
            }
            self.header[self.n_header] = *first;
            self.n_header += 1;
            bytes = others;
            if let Some(length) = announced(&self.header[..self.n_header]) {
                if length > MOST as u64 {
                    return false;
                }
                self.n_header = 0;
                self.content = length as usize;
            }
        }
        true
    }
}

/// The length that a header announces, once it is whole.
fn announced(header: &[u8]) -> Option<u64> {
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
    use super::MOST;
    use super::Tape;
    use proptest::prelude::*;

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
        assert!(Tape::default().fits(&frame(MOST)));
        assert!(!Tape::default().fits(&frame(MOST + 1)));
    }

    #[test]
    fn a_frame_is_refused_by_its_header_alone() {
        let announced = &frame(1 << 20)[..14];

        assert!(!Tape::default().fits(announced));
        assert!(!Tape::default().fits(&[
            0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0
        ]));
    }

    proptest! {
        /// However the bytes are cut, the frames are found.
        #[test]
        fn frames_are_found_in_any_pieces(
            lengths in proptest::collection::vec(prop_oneof![0..130usize, 65_000..66_000usize], 1..6),
            cut in 1..5000usize,
        ) {
            let bytes: Vec<u8> = lengths.iter().flat_map(|it| frame(*it)).collect();
            let mut tape = Tape::default();

            let fits = bytes.chunks(cut).all(|it| tape.fits(it));

            prop_assert_eq!(fits, lengths.iter().all(|it| *it <= MOST));
        }
    }
}
