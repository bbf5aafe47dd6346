//! Splits a text into the terms by which memories are found: its words, and for scripts without
//! spaces between words the pairs of neighboring characters.

use std::hash::{DefaultHasher, Hash, Hasher};

use unicode_script::{Script, UnicodeScript};
use unicode_segmentation::UnicodeSegmentation;

use crate::content::folded;
use crate::stemming::{stem, without_possessive};
use crate::stop_words::remove_stop_words;

/// Returns the distinct terms of a text, in the order of their first occurrence, without the stop words
/// of its language and without single letters. If a word occurs in several forms, the first one is
/// returned.
pub fn terms(text: &str) -> Vec<String> {
    let folded = folded(text).replace('’', "'");
    let mut words = words(&folded);
    remove_stop_words(&mut words);
    let mut hashes = Vec::with_capacity(words.len());
    let mut terms = Vec::with_capacity(words.len());
    for word in words {
        let hash = term_hash(word);
        if !hashes.contains(&hash) {
            hashes.push(hash);
            terms.push(word.to_owned());
        }
    }
    terms
}

/// Returns the words of a folded text; for scripts without spaces each pair of neighboring characters.
fn words(folded: &str) -> Vec<&str> {
    let mut words = Vec::new();
    // Where the characters of a script without spaces begin and end.
    let mut run = 0..0;
    for (at, word) in folded.unicode_word_indices() {
        let is_dense = word.chars().next().is_some_and(is_dense);
        if is_dense && at == run.end {
            run.end += word.len();
            continue;
        }
        add_pairs(&mut words, &folded[run]);
        run = match is_dense {
            true => at..at + word.len(),
            false => 0..0,
        };
        let word = without_possessive(word);
        if !is_dense && word.chars().nth(1).is_some() {
            words.push(word);
        }
    }
    add_pairs(&mut words, &folded[run]);
    words
}

/// Adds each pair of neighboring characters; a single character as it is.
fn add_pairs<'a>(words: &mut Vec<&'a str>, run: &'a str) {
    // Where each character begins, and the end.
    let bounds: Vec<usize> = run
        .char_indices()
        .map(|it| it.0)
        .chain([run.len()])
        .collect();
    if let [start, end] = bounds[..] {
        words.push(&run[start..end]);
    }
    words.extend(bounds.windows(3).map(|it| &run[it[0]..it[2]]));
}

/// Returns the hash of a term; all forms of an English word have the same hash. It is not stable
/// between versions of the program.
pub fn term_hash(term: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    stem(term).hash(&mut hasher);
    hasher.finish()
}

/// Returns whether the character is of a script that does not separate words by spaces, or that
/// appends particles to words.
fn is_dense(c: char) -> bool {
    matches!(
        c.script(),
        Script::Han
            | Script::Hiragana
            | Script::Katakana
            | Script::Hangul
            | Script::Thai
            | Script::Lao
            | Script::Khmer
            | Script::Myanmar
    )
}

#[cfg(test)]
mod tests {
    use super::{term_hash, terms};

    #[test]
    fn words_are_folded_and_occur_once() {
        assert_eq!(
            terms("The Lighthouse keeper, LIGHTHOUSE-Keeper! ＫＥＥＰＥＲ"),
            ["lighthouse", "keeper"]
        );
        assert_eq!(terms("Straße STRASSE"), ["strasse"]);
    }

    #[test]
    fn the_forms_of_a_word_are_one_term() {
        assert_eq!(
            terms("Ann’s ships and the ship of Ann, shipped"),
            ["ann", "ships"]
        );
        assert_eq!(term_hash("ships"), term_hash("ship"));
    }

    #[test]
    fn stop_words_and_single_letters_are_no_terms() {
        assert_eq!(terms("What breed is my dog? X"), ["breed", "dog"]);
        assert_eq!(terms(" . , !"), Vec::<String>::new());
    }

    #[test]
    fn words_that_only_form_a_question_are_no_terms() {
        assert_eq!(terms("Do you still know how my dog is called?"), ["dog"]);
        assert_eq!(
            terms("Who’s got the key? Don’t say you’ve lost it"),
            ["key", "lost"]
        );
    }

    #[test]
    fn a_stop_word_of_another_language_is_a_term() {
        assert_eq!(terms("Ann: The war was long."), ["ann", "war", "long"]);
        assert_eq!(terms("War?"), ["war"]);
        assert_eq!(terms("Ann: Es war im Garten."), ["ann", "garten"]);
    }

    #[test]
    fn scripts_without_spaces_are_split_into_pairs() {
        assert_eq!(terms("月亮湖"), ["月亮", "亮湖"]);
        assert_eq!(terms("湖 and 月亮"), ["湖", "月亮"]);
        assert_eq!(terms("カタカナ"), ["カタ", "タカ", "カナ"]);
    }

    #[test]
    fn numbers_are_terms() {
        assert_eq!(
            terms("Room 42 opens in 1999"),
            ["room", "42", "opens", "1999"]
        );
    }
}
