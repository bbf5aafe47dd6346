//! Compares the names of personas, and finds the persona that the beginning of a text names. No I/O.

use unicode_normalization::UnicodeNormalization;

/// The first character of a text that names its persona.
const PREFIX: char = '=';

/// No name is longer than this in any case, in characters, so that the rest of a text is not compared.
const MAX_CHARS: usize = 400;

/// Returns the form in which names are compared: equal for names that differ only in case.
pub fn name_key(name: &str) -> String {
    let composed: String = name.nfkc().collect();
    caseless::default_case_fold_str(&composed)
}

/// Returns whether a text may begin with the name of a persona.
pub fn may_have_prefix(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// Returns the index of the name in the text's prefix `=name `, and the text after it. If several names
/// fit, the longest one is meant.
pub fn find_prefix(
    text: &str,
    names: impl IntoIterator<Item = impl AsRef<str>>,
) -> Option<(usize, &str)> {
    let rest = text.strip_prefix(PREFIX)?;
    let fits = |(at, name): (usize, _)| {
        let after = strip_name(rest, AsRef::<str>::as_ref(&name))?;
        Some((at, after))
    };
    let fitting = names.into_iter().enumerate().filter_map(fits);
    fitting.min_by_key(|(_, after)| after.len())
}

/// Returns the text after `name` and the white space that follows it; `None` if the text begins with
/// something else.
fn strip_name<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let key = name_key(name);
    // Names in other cases may have other lengths, but the same end in the text.
    let limit = text.char_indices().nth(MAX_CHARS).map(|(at, _)| at);
    let begin = &text[..limit.unwrap_or(text.len())];
    let ends = begin.char_indices().filter(|(_, it)| it.is_whitespace());
    let end = limit.is_none().then_some(text.len());
    for end in ends.map(|(at, _)| at).chain(end) {
        let begin = name_key(&text[..end]);
        if begin == key {
            return Some(text[end..].trim_start());
        }
        if begin.len() > key.len() {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::find_prefix;

    const NAMES: [&str; 4] = ["Ann", "Ann Lee", "Zoë", "STRASSE"];

    #[test]
    fn the_prefix_names_a_persona_in_any_case() {
        assert_eq!(find_prefix("=Ann Hi there.", NAMES), Some((0, "Hi there.")));
        assert_eq!(find_prefix("=ann\nHi.", NAMES), Some((0, "Hi.")));
        assert_eq!(find_prefix("=ZOË  Hi.", NAMES), Some((2, "Hi.")));
        assert_eq!(find_prefix("=stra\u{df}e Hi.", NAMES), Some((3, "Hi.")));
    }

    #[test]
    fn the_longest_name_wins() {
        assert_eq!(find_prefix("=ann lee hi", NAMES), Some((1, "hi")));
        assert_eq!(find_prefix("=ann leeway", NAMES), Some((0, "leeway")));
    }

    #[test]
    fn a_name_without_a_text_leaves_nothing() {
        assert_eq!(find_prefix("=Ann", NAMES), Some((0, "")));
        assert_eq!(find_prefix("=Ann  ", NAMES), Some((0, "")));
    }

    #[test]
    fn any_other_text_has_no_prefix() {
        for text in [
            "=",
            "=Bob Hi.",
            "Ann Hi.",
            " =Ann Hi.",
            "= Ann Hi.",
            "=Anna Hi.",
        ] {
            assert_eq!(find_prefix(text, NAMES), None, "{text:?}");
        }
    }
}
