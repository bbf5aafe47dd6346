//! Unpacks request bodies that are compressed with gzip or deflate. A limit protects the server from small
//! bodies that would use very much memory when unpacked.

use std::io::Read;

use flate2::read::{MultiGzDecoder, ZlibDecoder};

use crate::web::v1::error::{V1Error, V1Result};

/// The maximum length of an unpacked body, as a multiple of the length of the compressed one. JSON text is
/// usually 5 to 20 times as long as its compressed form.
const MAX_RATIO: usize = 100;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEncoding {
    Gzip,
    Deflate,
}

impl BodyEncoding {
    /// Returns the encoding that `Content-Encoding` names, `None` for a body that is not compressed.
    ///
    /// # Errors
    /// Returns 415 for any other encoding.
    pub fn of(header: Option<&str>) -> V1Result<Option<Self>> {
        let name = header.unwrap_or_default().trim();
        match name.to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Self::Gzip)),
            "deflate" => Ok(Some(Self::Deflate)),
            _ => {
                let name: String = name.chars().take(MAX_NAME_CHARS).collect();
                let message =
                    format!("Unsupported content encoding '{name}'; supported: gzip, deflate.");
                Err(V1Error::new(415, "unsupported_media_type", message))
            }
        }
    }

    /// Unpacks a body to at most `limit` bytes.
    ///
    /// # Errors
    /// Returns 413 if the unpacked body would be longer, and 400 if the body is not compressed in this way.
    pub fn unpack(self, packed: &[u8], limit: usize) -> V1Result<Vec<u8>> {
        let limit = limit.min(packed.len().saturating_mul(MAX_RATIO));
        let at_most = limit as u64 + 1;
        let mut bytes = Vec::new();
        let read = match self {
            Self::Gzip => MultiGzDecoder::new(packed)
                .take(at_most)
                .read_to_end(&mut bytes),
            Self::Deflate => ZlibDecoder::new(packed)
                .take(at_most)
                .read_to_end(&mut bytes),
        };
        if bytes.len() > limit {
            let message =
                "The unpacked body is larger than 32 MiB, or than 100 times the compressed body.";
            return Err(V1Error::new(413, "too_large", message));
        }
        match read {
            Ok(_) => Ok(bytes),
            Err(_) => {
                let message = "The body is not compressed as `Content-Encoding` says.";
                Err(V1Error::new(400, "invalid_json", message))
            }
        }
    }
}

/// The maximum length of the part of an encoding's name that a message repeats, in characters.
const MAX_NAME_CHARS: usize = 64;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::BodyEncoding;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn packed_bodies_are_unpacked() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(b"{}").unwrap();
        let zlib = zlib.finish().unwrap();

        assert_eq!(BodyEncoding::Gzip.unpack(&gzip(b"{}"), 9).unwrap(), b"{}");
        assert_eq!(BodyEncoding::Deflate.unpack(&zlib, 9).unwrap(), b"{}");
        let broken = BodyEncoding::Gzip.unpack(b"{}", 9).unwrap_err();
        assert_eq!((broken.status, broken.code), (400, "invalid_json"));
    }

    #[test]
    fn a_body_that_unpacks_to_too_much_is_rejected() {
        let zeros = gzip(&vec![0; 1024 * 1024]);
        assert!(zeros.len() * 100 < 1024 * 1024);

        for (packed, limit) in [(zeros, usize::MAX), (gzip(b"0123456789"), 9)] {
            let refused = BodyEncoding::Gzip.unpack(&packed, limit).unwrap_err();
            assert_eq!((refused.status, refused.code), (413, "too_large"));
        }
    }

    #[test]
    fn another_encoding_is_named_in_the_error() {
        assert_eq!(BodyEncoding::of(None).unwrap(), None);
        assert_eq!(
            BodyEncoding::of(Some("GZIP")).unwrap(),
            Some(BodyEncoding::Gzip)
        );
        let refused = BodyEncoding::of(Some("zstd")).unwrap_err();
        assert_eq!(refused.status, 415);
        assert!(refused.message.contains("'zstd'"), "{}", refused.message);
    }
}
