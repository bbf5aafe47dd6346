//! Shortens a message to the line with which a reply quotes it.

use base::ids::MessageId;
use serde::Serialize;
use utoipa::ToSchema;

/// The maximum length of a quotation, in characters.
pub const MAX_CHARS: usize = 200;

/// The message that a reply answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ReplyTo)]
pub struct QuoteView {
    pub id: MessageId,
    pub seq: i64,
    /// The name under which it was posted: that of the persona, else that of the member.
    pub author_name: String,
    /// Its first 200 characters in one line; empty if it is hidden.
    pub excerpt: String,
    /// Whether it was deleted for everyone.
    pub hidden: bool,
}

/// Returns the first [`MAX_CHARS`] characters of a text in one line: line breaks become spaces.
pub fn excerpt(content: &str) -> String {
    let joined = content.trim().replace("\r\n", " ");
    let line = joined.chars().take(MAX_CHARS);
    line.map(|it| if is_line_break(it) { ' ' } else { it })
        .collect()
}

/// Returns the line that quotes a message in a prompt, with its line break.
pub fn prompt_line(name: &str, content: &str) -> String {
    format!("> {name}: {}\n", excerpt(content))
}

fn is_line_break(it: char) -> bool {
    matches!(
        it,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

#[cfg(test)]
mod tests {
    use super::{MAX_CHARS, excerpt, prompt_line};

    #[test]
    fn line_breaks_become_spaces() {
        assert_eq!(excerpt("\na\r\nb\rc\nd\u{2028}e\n"), "a b c d e");
    }

    #[test]
    fn a_quotation_has_at_most_200_characters() {
        assert_eq!(excerpt(&"ä".repeat(500)).chars().count(), MAX_CHARS);
    }

    #[test]
    fn a_prompt_names_the_author_of_the_quoted_message() {
        assert_eq!(prompt_line("Ann", "Hi\nthere"), "> Ann: Hi there\n");
    }
}
