//! Defines `MessageText`, a message text with a visible character, at most 64 KiB and no NUL:
//! parses it, and returns the error code of a rejected text and the schema for the API document.

use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Maximum length of a text, in bytes of UTF-8.
pub const MAX_BYTES: usize = 64 * 1024;

/// A text with visible content within the maximum length, unchanged from the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageText(String);

/// Why a text was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageTextError {
    #[error("The text must not be blank.")]
    Blank,
    #[error("A message can have at most 64 KiB.")]
    TooLong,
    #[error("The text must not contain NUL characters.")]
    Nul,
}

impl MessageTextError {
    /// Returns the stable error code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Blank => "blank_message",
            Self::TooLong => "too_long",
            Self::Nul => "invalid_value",
        }
    }
}

impl MessageText {
    /// Validates a text.
    ///
    /// # Errors
    /// Returns `TooLong` if it exceeds [`MAX_BYTES`], `Nul` if it contains a NUL character, which
    /// PostgreSQL cannot store, and `Blank` if nothing in it is visible.
    pub fn parse(text: &str) -> Result<Self, MessageTextError> {
        if text.len() > MAX_BYTES {
            return Err(MessageTextError::TooLong);
        }
        if text.contains('\0') {
            return Err(MessageTextError::Nul);
        }
        if is_blank(text) {
            return Err(MessageTextError::Blank);
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the text.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Returns whether a text is out of character by itself: all of it is enclosed in `((` and `))`, apart
/// from white space around.
pub fn is_out_of_character(text: &str) -> bool {
    let text = text.trim();
    let inner = text.strip_prefix("((").and_then(|it| it.strip_suffix("))"));
    // `((a)) b ((c))` is enclosed in parts.
    inner.is_some_and(|it| {
        it.find("))")
            .is_none_or(|end| !it[end + 2..].contains("(("))
    })
}

/// The schema in the API document; its pattern describes what [`MessageText::parse`] accepts.
impl PartialSchema for MessageText {
    fn schema() -> RefOr<Schema> {
        let seen = concat!(
            "^[^\\u0000]*[^\\u0000- \\u007f-\\u00a0\\u00ad\\u034f\\u061c\\u1680\\u180e\\u2000-\\u200f",
            "\\u2028-\\u202f\\u205f-\\u206f\\u3000\\ufe00-\\ufe0f\\ufeff][^\\u0000]*$",
        );
        let about = "A text with at least one visible character, at most 64 KiB in UTF-8.";
        ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(MAX_BYTES))
            .pattern(Some(seen))
            .description(Some(about))
            .into()
    }
}

impl ToSchema for MessageText {}

/// Returns whether nothing in the text is visible.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(is_invisible)
}

/// Returns whether the character is white space, a control character or has no width.
fn is_invisible(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}'
                | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}'
        )
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, MessageText, MessageTextError, is_out_of_character};

    #[test]
    fn an_invisible_text_is_blank() {
        for blank in ["", " \n\t", "\u{200b}\u{feff}", "\u{2060} \u{ad}"] {
            assert_eq!(
                MessageText::parse(blank),
                Err(MessageTextError::Blank),
                "{blank:?}"
            );
        }
    }

    #[test]
    fn a_valid_text_is_not_changed() {
        let text = "  *waves* \n\n👩‍🚀 ";

        assert_eq!(
            MessageText::parse(text).map(MessageText::into_string),
            Ok(text.to_owned())
        );
    }

    #[test]
    fn a_text_has_a_maximum_length() {
        assert!(MessageText::parse(&"a".repeat(MAX_BYTES)).is_ok());
        assert_eq!(
            MessageText::parse(&"a".repeat(MAX_BYTES + 1)),
            Err(MessageTextError::TooLong)
        );
    }

    #[test]
    fn a_text_that_is_enclosed_in_double_parentheses_is_out_of_character() {
        for text in [
            "((brb))",
            " \n((brb :) ))\t",
            "(( f(g(x)) ))",
            "(((no)))",
            "(())",
        ] {
            assert!(is_out_of_character(text), "{text:?}");
        }
        for text in [
            "(brb)",
            "((brb)) she said",
            "Well, ((brb))",
            "((a)) b ((c))",
            "(()",
            "",
        ] {
            assert!(!is_out_of_character(text), "{text:?}");
        }
    }

    #[test]
    fn a_text_with_nul_is_refused() {
        assert_eq!(MessageText::parse("a\0b"), Err(MessageTextError::Nul));
    }
}
