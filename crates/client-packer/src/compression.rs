//! Compresses bytes with gzip or brotli, as strongly as possible because this is done once for each
//! build, and returns `None` if that does not make them smaller.

use std::io::{self, Write};

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Returns the bytes compressed with gzip, or `None` if that does not make them smaller.
pub fn gzip(bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(if_smaller(bytes, encoder.finish()?))
}

/// Returns the bytes compressed with brotli, or `None` if that does not make them smaller.
pub fn brotli(bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let parameters = BrotliEncoderParams {
        quality: 11,
        ..BrotliEncoderParams::default()
    };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut &bytes[..], &mut compressed, &parameters)?;
    Ok(if_smaller(bytes, compressed))
}

fn if_smaller(bytes: &[u8], compressed: Vec<u8>) -> Option<Vec<u8>> {
    (compressed.len() < bytes.len()).then_some(compressed)
}
