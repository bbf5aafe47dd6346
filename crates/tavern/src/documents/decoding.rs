//! Decodes the bytes of a file as UTF-8. Invalid bytes become U+FFFD, and a warning names the first.

use std::borrow::Cow;

use crate::import_warning::ImportWarning;

/// The byte order mark that some programs write at the start of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The text of a file.
#[derive(Debug)]
pub struct DecodedText<'a> {
    pub text: Cow<'a, str>,
    /// Names the first byte that is not valid UTF-8.
    pub warning: Option<ImportWarning>,
}

/// Decodes a file. A byte order mark is not part of the text.
pub fn decode(bytes: &[u8]) -> DecodedText<'_> {
    let content = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let skipped = bytes.len() - content.len();
    match str::from_utf8(content) {
        Ok(text) => DecodedText {
            text: Cow::Borrowed(text),
            warning: None,
        },
        Err(error) => DecodedText {
            text: String::from_utf8_lossy(content),
            warning: Some(invalid_utf8(skipped + error.valid_up_to())),
        },
    }
}

fn invalid_utf8(offset: usize) -> ImportWarning {
    let sentence = format!(
        "The file is not valid UTF-8: the first invalid byte is at offset {offset}. Invalid bytes \
         were replaced by U+FFFD."
    );
    ImportWarning::new("invalid_encoding", sentence).with("offset", offset)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn invalid_bytes_are_replaced_and_the_first_is_named() {
        let decoded = decode(b"\xEF\xBB\xBFa\xFFb\xC3");

        assert_eq!(decoded.text, "a\u{FFFD}b\u{FFFD}");
        let warning = decoded.warning.expect("a warning");
        assert_eq!(
            (warning.code.as_ref(), warning.params["offset"].as_u64()),
            ("invalid_encoding", Some(4))
        );
    }

    #[test]
    fn valid_text_is_unchanged() {
        let decoded = decode("\u{FEFF}né\r\n".as_bytes());

        assert_eq!(decoded.text, "né\r\n");
        assert_eq!(decoded.warning, None);
    }
}
