//! Reduces a word to its stem, so that "dogs" is found by "dog" and "Ann's" by "Ann". Only common English
//! endings are removed, because each further rule would also conflate words that are unrelated.

use std::borrow::Cow;

/// The minimum number of letters of a stem.
const MIN_STEM_CHARS: usize = 3;

/// Returns a folded word without the ending of an English possessive.
pub fn without_possessive(word: &str) -> &str {
    word.strip_suffix("'s").unwrap_or(word)
}

/// Returns the stem of a folded word without a possessive ending. It need not be a valid word.
pub fn stem(word: &str) -> Cow<'_, str> {
    if !word.bytes().all(|it| it.is_ascii_lowercase()) {
        return word.into();
    }
    let singular = without_plural(word);
    let stem = match without_verb_ending(singular) {
        Some(stem) => stem,
        None => stripped(singular, "e").unwrap_or(singular),
    };
    match stripped(stem, "y") {
        // As in "story" and "stories".
        Some(start) => format!("{start}i").into(),
        None => stem.into(),
    }
}

fn without_plural(word: &str) -> &str {
    let is_singular = ["ss", "us", "is"].iter().any(|it| word.ends_with(it));
    match stripped(word, "s") {
        Some(singular) if !is_singular => singular,
        _ => word,
    }
}

/// Returns a word without "ing" or "ed", and without the consonant that is doubled before it.
fn without_verb_ending(word: &str) -> Option<&str> {
    let start = ["ing", "ed"].iter().find_map(|it| stripped(word, it))?;
    let has_vowel = start.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    let mut last = start.bytes().rev();
    let is_doubled = match (last.next()?, last.next()?) {
        // "fall", "miss", "buzz", "see" and "play" are written so without the ending, too.
        (b'l' | b's' | b'z' | b'a' | b'e' | b'i' | b'o' | b'u' | b'y', _) => false,
        (one, other) => one == other,
    };
    has_vowel.then(|| &start[..start.len() - usize::from(is_doubled)])
}

/// Returns a word of ASCII letters without this ending, if enough letters are left.
fn stripped<'a>(word: &'a str, ending: &str) -> Option<&'a str> {
    let stem = word.strip_suffix(ending)?;
    (stem.len() >= MIN_STEM_CHARS).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::{stem, without_possessive};

    #[track_caller]
    fn assert_same(words: &[&str]) {
        let stems: Vec<_> = words.iter().map(|it| stem(it)).collect();
        assert!(stems.iter().all(|it| *it == stems[0]), "{stems:?}");
    }

    #[test]
    fn singular_and_plural_have_the_same_stem() {
        for (one, many) in [
            ("dog", "dogs"),
            ("box", "boxes"),
            ("dish", "dishes"),
            ("house", "houses"),
            ("story", "stories"),
            ("movie", "movies"),
            ("boy", "boys"),
            ("bus", "buses"),
        ] {
            assert_same(&[one, many]);
        }
    }

    #[test]
    fn the_forms_of_a_verb_have_the_same_stem() {
        assert_same(&["call", "calls", "called", "calling"]);
        assert_same(&["bake", "bakes", "baked", "baking"]);
        assert_same(&["stop", "stops", "stopped", "stopping"]);
        assert_same(&["study", "studies", "studied", "studying"]);
    }

    #[test]
    fn a_short_word_and_a_word_of_another_script_stay_as_they_are() {
        for word in [
            "gas",
            "red",
            "used",
            "bring",
            "glass",
            "chess",
            "größe",
            "меняет",
            "42s",
        ] {
            assert_eq!(stem(word), word);
        }
    }

    #[test]
    fn the_ending_of_a_possessive_is_removed() {
        for word in ["jonas's", "jonas"] {
            assert_eq!(without_possessive(word), "jonas");
        }
        assert_eq!(without_possessive("o'brien"), "o'brien");
    }
}
