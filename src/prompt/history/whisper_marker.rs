//! The marker before the text of a whisper in a prompt: `(whispered to Ann, Vera) `. It is in the text,
//! because no model API has a field for it. A reply that begins with one loses it, as it loses the name of
//! its speaker.

use crate::prompt::context::{PromptContext, Whisper};

/// How each marker begins.
pub const BEGIN: &str = "(whispered to ";

/// Returns the marker before a text, or, if the text begins with a quotation, the line before it.
pub fn before(whisper: Option<&Whisper>, has_quote: bool) -> String {
    let Some(whisper) = whisper else {
        return String::new();
    };
    let end = if has_quote { '\n' } else { ' ' };
    let to: Vec<&str> = whisper.to.iter().map(String::as_str).collect();
    format!("{BEGIN}{}){end}", to.join(", "))
}

/// Returns how the markers in a prompt begin; `None` if it has none, so that a reply with these words
/// keeps them.
pub fn find_in(context: &PromptContext) -> Option<&'static str> {
    let mut lines = context.history.iter();
    lines.any(|it| it.whisper.is_some()).then_some(BEGIN)
}

#[cfg(test)]
mod tests {
    use base::ids::MembershipId;

    use super::before;
    use crate::conversations::audience::message_audience::Audience;
    use crate::prompt::context::Whisper;

    #[test]
    fn the_marker_names_who_heard_the_whisper() {
        let whisper = Whisper {
            audience: Audience::new([1, 2, 3].map(MembershipId)).unwrap(),
            to: vec!["Ann".to_owned(), "Vera".to_owned()],
        };

        assert_eq!(before(Some(&whisper), false), "(whispered to Ann, Vera) ");
        assert_eq!(before(Some(&whisper), true), "(whispered to Ann, Vera)\n");
        assert_eq!(before(None, true), "");
    }
}
