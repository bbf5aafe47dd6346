//! The content of a memory: one line of limited length, and the hash by which equal contents are
//! recognized.

use caseless::default_case_fold_str;
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

/// The maximum length of a memory, in characters.
pub const MAX_CONTENT_CHARS: usize = 2_000;

/// Returns the text as one line, with single spaces and without control characters. Returns `None`
/// if nothing is left, or if it is longer than [`MAX_CONTENT_CHARS`].
///
/// One line, because each memory is one line of the block in the prompt: a text with line breaks
/// could imitate the end of the block.
pub fn one_line(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|it| !it.is_empty()).collect();
    let line = words.join(" ");
    let n_chars = line.chars().count();
    (1..=MAX_CONTENT_CHARS).contains(&n_chars).then_some(line)
}

/// Returns the text in the form in which texts are compared: NFKC, case folded.
pub fn folded(text: &str) -> String {
    let normalized: String = text.nfkc().collect();
    // Folding may create sequences that are not normalized.
    default_case_fold_str(&normalized).nfkc().collect()
}

/// Returns the hash of a content, which ignores case, compatibility forms and the amount of white
/// space. 64 hexadecimal digits.
pub fn content_hash(content: &str) -> String {
    let folded = folded(content);
    let words: Vec<&str> = folded.split_whitespace().collect();
    let digest = Sha256::digest(words.join(" ").as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{MAX_CONTENT_CHARS, content_hash, one_line};

    #[test]
    fn a_content_is_one_line() {
        assert_eq!(
            one_line(" My dog\r\n\tis\u{2028}called\0Pixel. ").as_deref(),
            Some("My dog is called Pixel.")
        );
        assert_eq!(one_line(" \n "), None);
    }

    #[test]
    fn the_length_limit_counts_characters() {
        assert!(one_line(&"é".repeat(MAX_CONTENT_CHARS)).is_some());
        assert_eq!(one_line(&"é".repeat(MAX_CONTENT_CHARS + 1)), None);
    }

    #[test]
    fn case_white_space_and_compatibility_forms_do_not_change_the_hash() {
        let hash = content_hash("My dog is called Pixel");

        assert_eq!(hash.len(), 64);
        assert_eq!(content_hash("  MY dog\nis called ｐixel "), hash);
        assert_ne!(content_hash("My dog is called Pixels"), hash);
    }
}
