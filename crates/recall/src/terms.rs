//! Splits a text into the terms by which memories are found: its words, and for scripts without
//! spaces between words the pairs of neighboring characters.

use std::hash::{DefaultHasher, Hash, Hasher};

use unicode_script::{Script, UnicodeScript};
use unicode_segmentation::UnicodeSegmentation;

use crate::content::folded;
use crate::stemming::{stem, without_possessive};
use crate::stop_words::is_stop_word;

/// Returns the distinct terms of a text, in the order of their first occurrence, without stop words
/// and without single letters. If a word occurs in several forms, the first one is returned.
pub fn terms(text: &str) -> Vec<String> {
    let folded = folded(text).replace('’', "'");
    let mut found = DistinctTerms::default();
    let mut run = String::new();
    let mut run_end = 0;
    for (at, word) in folded.unicode_word_indices() {
        let is_dense = word.chars().next().is_some_and(is_dense);
        if !run.is_empty() && (!is_dense || at != run_end) {
            found.add_pairs(&run);
            run.clear();
        }
        if is_dense {
            run.push_str(word);
            run_end = at + word.len();
            continue;
        }
        let word = without_possessive(word);
        if word.chars().nth(1).is_some() {
            found.add(word);
        }
    }
    found.add_pairs(&run);
    found.terms
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

#[derive(Default)]
struct DistinctTerms {
    terms: Vec<String>,
    hashes: Vec<u64>,
}

impl DistinctTerms {
    fn add(&mut self, term: &str) {
        if is_stop_word(term) {
            return;
        }
        let hash = term_hash(term);
        if !self.hashes.contains(&hash) {
            self.hashes.push(hash);
            self.terms.push(term.to_owned());
        }
    }

    /// Adds each pair of neighboring characters; a single character as it is.
    fn add_pairs(&mut self, run: &str) {
        let chars: Vec<char> = run.chars().collect();
        if let [single] = chars[..] {
            self.add(&single.to_string());
        }
        for pair in chars.windows(2) {
            self.add(&pair.iter().collect::<String>());
        }
    }
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
