//! Text made comparable: two spellings of one name become the same letters, and the places where a
//! word may begin or end are known.
//!
//! Folded means: NFKC, case-folded, one space for any white space, one apostrophe for all of them,
//! without invisible marks. Turkish dotted and dotless i count as one letter, because the same
//! person writes `Işık`, `ISIK` and `isik` depending on the keyboard at hand.

use unicode_normalization::UnicodeNormalization;
use unicode_script::{Script, UnicodeScript};
use unicode_segmentation::UnicodeSegmentation;

/// `text` as it is compared.
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
            '\u{0307}' if folded.ends_with('i') => {} // what is left of a capital dotted i
            _ => folded.push(letter),
        }
    }
    folded.truncate(folded.trim_end().len());
    folded
}

/// Folded text and the places in it where a name may begin or end.
pub struct FoldedText {
    /// The text as it is compared.
    pub text: String,
    /// For each byte: may a word begin or end before it?
    edges: Vec<bool>,
}

impl FoldedText {
    /// Folds `text` and finds its edges.
    pub fn new(text: &str) -> Self {
        let text = fold_text(text);
        let edges = edges(&text);
        Self { text, edges }
    }

    /// May a name begin at this byte?
    pub fn can_begin_at(&self, at: usize) -> bool {
        self.edges[at]
    }

    /// May a name end at this byte? A possessive ending does not hide it.
    pub fn can_end_at(&self, at: usize) -> bool {
        self.edges[at] || (self.text[at..].starts_with("'s") && self.edges[at + 2])
    }
}

/// Does this letter belong to a script whose words are not set apart by spaces, or take their
/// particles without one?
pub fn continues_word(letter: char) -> bool {
    const LONG_VOWEL: char = 'ー'; // shared by both kana, so its own script is "common"
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

/// Unicode word boundaries, and three kinds of places where a reader sees one too: beside a letter
/// that runs on (never inside a grapheme), and between a word and its Markdown underscores.
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

/// A run of underscores that opens or closes a word is emphasis, not a part of the word.
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

/// Marks that change how text is laid out or drawn, but not what it says. Joiners stay: they make
/// one emoji of several.
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
