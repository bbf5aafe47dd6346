//! Reads the frames that a server sends at a WebSocket. Looks only for what the benchmark counts, so
//! that thousands of readers use little processor time.

const TEXT: u8 = 0x1;
const PING: u8 = 0x9;
/// The beginning of the last frame of a reply.
const REPLY_END: &[u8] = b"{\"type\":\"typing_stop\"";

/// What a socket has received so far.
#[derive(Default)]
pub struct FrameCounter {
    /// The bytes of an incomplete header.
    header: Vec<u8>,
    /// The beginning of the payload that is being received.
    payload: Vec<u8>,
    /// The bytes of the payload that have not arrived yet.
    missing: usize,
    pub n_texts: usize,
    pub n_pings: usize,
    /// How often the byte that marks a delta occurred in payloads.
    pub n_deltas: usize,
    pub n_replies: usize,
}

impl FrameCounter {
    /// Counts what these bytes contain, which follow those of the last call. `mark` is the byte that
    /// occurs once in each delta.
    pub fn add(&mut self, mut bytes: &[u8], mark: u8) {
        while let Some((first, rest)) = bytes.split_first() {
            if self.missing > 0 {
                let (payload, rest) = bytes.split_at(self.missing.min(bytes.len()));
                self.add_payload(payload, mark);
                bytes = rest;
                continue;
            }
            self.header.push(*first);
            bytes = rest;
            if let Some(length) = payload_length(&self.header) {
                match self.header[0] & 0xf {
                    TEXT => self.n_texts += 1,
                    PING => self.n_pings += 1,
                    _ => {}
                }
                self.header.clear();
                self.payload.clear();
                self.missing = length;
            }
        }
    }

    /// Returns whether the first text frame has arrived completely.
    pub fn has_whole_text(&self) -> bool {
        self.n_texts > 0 && self.missing == 0
    }

    fn add_payload(&mut self, bytes: &[u8], mark: u8) {
        let n_wanted = REPLY_END.len() - self.payload.len();
        let n_taken = n_wanted.min(bytes.len());
        self.payload.extend(&bytes[..n_taken]);
        self.n_replies += usize::from(n_taken > 0 && self.payload == REPLY_END);
        self.n_deltas += bytes.iter().filter(|it| **it == mark).count();
        self.missing -= bytes.len();
    }
}

/// Returns the length of the payload of an unmasked frame once its header is complete.
fn payload_length(header: &[u8]) -> Option<usize> {
    let n_length_bytes = match header.get(1)? {
        126 => 2,
        127 => 8,
        length => return Some(usize::from(*length)),
    };
    let length = header.get(2..2 + n_length_bytes)?;
    let append = |sum: usize, byte: &u8| sum << 8 | usize::from(*byte);
    Some(length.iter().fold(0, append))
}
