//! Folds text so that different spellings of a name compare equal, and finds the positions at which
//! a name may begin or end.
//!
//! Folded means: NFKC, case-folded, one space for any white space, one apostrophe for all of them,
//! without invisible marks. Turkish dotted and dotless i count as one letter, because people write
//! `Işık`, `ISIK` or `isik` depending on their keyboard.

use unicode_normalization::UnicodeNormalization;
use unicode_script::{Script, UnicodeScript};
use unicode_segmentation::UnicodeSegmentation;

/// Returns the folded form of `text`.
pub fn fold_text(text: &str) -> String {
    let composed: String = text.nfkc().filter(|it| !is_invisible(*it)).collect();
    let caseless: String = caseless::default_case_fold_str(&composed).nfkc().collect();
    let mut folded = String::with_capacity(caseless.len());
    for letter in caseless.chars() {
        match letter {
            _ if letter.is_whitespace() => {
                if !folded.is_empty() && !folded.ends_with(' ') {
                    folded.push(' ');
                }
            }
            '\u{2018}' | '\u{2019}' | '\u{02BC}' => folded.push('\''),
            'ı' => folded.push('i'),
            '\u{0307}' if folded.ends_with('i') => {} // remainder of a folded capital dotted İ
            _ => folded.push(letter),
        }
    }
    folded.truncate(folded.trim_end().len());
    folded
}

/// Folded text and the positions in it where a name may begin or end.
pub struct FoldedText {
    /// The folded text.
    pub text: String,
    /// For each byte offset: whether a word may begin or end before it.
    edges: Vec<bool>,
}

impl FoldedText {
    /// Folds `text` and finds its word boundaries.
    pub fn new(text: &str) -> Self {
        let text = fold_text(text);
        let edges = edges(&text);
        Self { text, edges }
    }

    /// Returns whether a name may begin at this byte.
    pub fn can_begin_at(&self, at: usize) -> bool {
        self.edges[at]
    }

    /// Returns whether a name may end at this byte. A possessive `'s` after it is accepted.
    pub fn can_end_at(&self, at: usize) -> bool {
        self.edges[at] || (self.text[at..].starts_with("'s") && self.edges[at + 2])
    }
}

/// Returns whether this letter belongs to a script that does not separate words by spaces, or that
/// attaches particles without one.
pub fn continues_word(letter: char) -> bool {
    const LONG_VOWEL: char = 'ー'; // shared by both kana, so its script is "common"
    letter == LONG_VOWEL
        || matches!(
            letter.script(),
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

/// Returns the Unicode word boundaries, and adds positions that readers also see as boundaries:
/// next to a letter for which [`continues_word`] holds (never inside a grapheme), and between a
/// word and its Markdown underscores.
fn edges(text: &str) -> Vec<bool> {
    let mut edges = vec![false; text.len() + 1];
    edges[text.len()] = true;
    for (at, _) in text.split_word_bound_indices() {
        edges[at] = true;
    }
    let mut before = None;
    for (at, grapheme) in text.grapheme_indices(true) {
        let first = grapheme.chars().next();
        if [before, first].into_iter().flatten().any(continues_word) {
            edges[at] = true;
        }
        before = grapheme.chars().next();
    }
    mark_underscores(text, &mut edges);
    edges
}

/// Marks boundaries at underscores that open or close a word: they are emphasis, not part of it.
fn mark_underscores(text: &str, edges: &mut [bool]) {
    let bytes = text.as_bytes();
    for at in 1..=bytes.len() {
        if bytes[at - 1] == b'_' && edges[at - 1] {
            edges[at] = true;
        }
    }
    for at in (0..bytes.len()).rev() {
        if bytes[at] == b'_' && edges[at + 1] {
            edges[at] = true;
        }
    }
}

/// Returns whether the character only affects layout or rendering. Joiners are kept because they
/// combine several emoji into one.
fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{00AD}'
            | '\u{200E}'
            | '\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'
            | '\u{2066}'..='\u{2069}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
    )
}
