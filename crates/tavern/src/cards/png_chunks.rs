//! Writes PNG chunks (length, kind, data, checksum), at once or in pieces, and computes their
//! checksums.

use std::io::Write;

/// Appends a chunk to a file.
pub fn push_chunk(file: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    file.extend(length.to_be_bytes());
    file.extend(kind);
    file.extend(data);
    file.extend(checksum(kind, data).to_be_bytes());
}

/// Writes a chunk in pieces.
pub struct ChunkWriter<W> {
    out: W,
    crc: u32,
}

impl<W: Write> ChunkWriter<W> {
    /// Starts a chunk of `length` bytes.
    ///
    /// # Errors
    /// Returns an error when the output cannot be written.
    pub fn start(mut out: W, kind: &[u8; 4], length: u32) -> std::io::Result<Self> {
        out.write_all(&length.to_be_bytes())?;
        out.write_all(kind)?;
        let sum = update_crc(u32::MAX, kind);
        Ok(Self { out, crc: sum })
    }

    /// Writes a piece of the data.
    ///
    /// # Errors
    /// Returns an error when the output cannot be written.
    pub fn push(&mut self, data: &[u8]) -> std::io::Result<()> {
        self.crc = update_crc(self.crc, data);
        self.out.write_all(data)
    }

    /// Ends the chunk with its checksum.
    ///
    /// # Errors
    /// Returns an error when the output cannot be written.
    pub fn finish(mut self) -> std::io::Result<()> {
        self.out.write_all(&(!self.crc).to_be_bytes())
    }
}

/// Returns the CRC-32 of a chunk.
pub fn checksum(kind: &[u8; 4], data: &[u8]) -> u32 {
    !update_crc(update_crc(u32::MAX, kind), data)
}

fn update_crc(sum: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = crc_table();
    bytes.iter().fold(sum, |sum, byte| {
        TABLE[(sum as u8 ^ byte) as usize] ^ (sum >> 8)
    })
}

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < table.len() {
        let mut value = i as u32;
        let mut bit = 0;
        while bit < 8 {
            value = match value & 1 {
                1 => 0xEDB8_8320 ^ (value >> 1),
                _ => value >> 1,
            };
            bit += 1;
        }
        table[i] = value;
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{ChunkWriter, push_chunk};

    #[test]
    fn a_chunk_written_in_pieces_equals_one_written_at_once() {
        let mut whole = Vec::new();
        push_chunk(&mut whole, b"tEXt", b"keyword\0text");

        let mut pieces = Vec::new();
        let mut chunk = ChunkWriter::start(&mut pieces, b"tEXt", 12).unwrap();
        for piece in [&b"keyword"[..], b"", b"\0te", b"xt"] {
            chunk.push(piece).unwrap();
        }
        chunk.finish().unwrap();

        assert_eq!(pieces, whole);
    }
}
