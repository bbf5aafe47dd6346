//! The keys of texts whose readers are checked: of whispers and of the replies of the model. A key is
//! found in any text that contains it, such as a frame, a response or a prompt.

use std::collections::BTreeSet;

/// The text after the key of a whisper.
const WHISPERS: &str = " whispers";
/// The text before the number of a reply.
const REPLY: &str = "reply";

/// Returns the text of a whisper with this key. `more` makes the texts of one whisper differ.
pub fn whisper(key: &str, more: &str) -> String {
    format!("{key}{WHISPERS} to a few of you{more}")
}

/// Returns the key of the `n`-th reply, which is followed by a space.
pub fn reply(n: usize) -> String {
    format!("{REPLY}{n}")
}

/// Returns the keys of all whispers and replies in a text. A reply that is cut within its key has none.
pub fn keys_in(text: &str) -> BTreeSet<String> {
    let mut keys = whispers_in(text);
    for (at, word) in text.match_indices(REPLY) {
        let rest = &text[at + word.len()..];
        let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if n_digits > 0 && rest[n_digits..].starts_with(' ') {
            keys.insert(format!("{REPLY}{}", &rest[..n_digits]));
        }
    }
    keys
}

/// Returns the keys of all whispers in a text.
pub fn whispers_in(text: &str) -> BTreeSet<String> {
    let places = text.match_indices(WHISPERS);
    places
        .filter_map(|(at, _)| {
            let before = &text[..at];
            let is_part = |it: char| it.is_ascii_digit() || it == '-';
            let key = before.trim_end_matches(is_part);
            let key = before[key.len()..].contains('-').then_some(key)?;
            key.ends_with('c')
                .then(|| before[key.len() - 1..].to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{keys_in, whisper, whispers_in};

    #[test]
    fn a_key_is_found_in_a_frame_a_snippet_and_a_prompt() {
        let text = whisper("c1-12", ", again");

        for text in [
            &text,
            &format!("{{\"a\":\"x\\n{text}\"}}"),
            &format!("Bace: {text}"),
        ] {
            assert_eq!(whispers_in(text).into_iter().collect::<Vec<_>>(), ["c1-12"]);
        }
        let both = format!("{text} reply7 the lamp");
        assert_eq!(
            keys_in(&both).into_iter().collect::<Vec<_>>(),
            ["c1-12", "reply7"]
        );
    }

    #[test]
    fn a_key_that_is_cut_or_of_another_text_is_not_found() {
        for text in [
            "c1-12 whis",
            "c1-12 says whispers",
            "a reply",
            "\"reply1\"",
            "whispers c1-2",
        ] {
            assert!(keys_in(text).is_empty(), "{text}");
        }
    }
}
