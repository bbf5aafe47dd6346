//! The local embedding `troupe-ngram-256`: converts a text to a vector of its character n-grams,
//! without a model, a network or state.
//!
//! **Invariant:** a text has the same vector on every platform and in every version, because stored
//! vectors are compared with new ones. Sums are in `f64` and in a fixed order, and no function of
//! the platform's mathematical library is called. A golden test fixes twenty vectors; a
//! change of one requires another name of the model.
//!
#![doc = include_str!("../README.md")]

use std::borrow::Cow;
use std::f64::consts::LN_2;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};
use unicode_script::{Script, UnicodeScript};

/// The name of the model, stored with each of its vectors.
pub const MODEL_NAME: &str = "troupe-ngram-256";

/// The number of components of a vector.
pub const DIMENSIONS: usize = 256;

/// The cosines of two texts that count as scores of 0 and 1.
pub const COSINE_RANGE: (f32, f32) = (0.05, 0.55);

/// The marks before and after a word. Neither can be part of a word.
const WORD_START: char = '<';
const WORD_END: char = '>';

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Returns the vector of a text, with [`DIMENSIONS`] components and the length 1.
///
/// The vector of a text without words, such as the empty text, is all zeros.
pub fn embed(text: &str) -> Vec<f32> {
    let folded = fold(text);
    let mut hashes = Vec::with_capacity(3 * folded.len());
    let mut letters = Vec::new();
    for word in words(&folded) {
        letters.clear();
        letters.push(WORD_START);
        letters.extend(word.text.chars().filter(|it| !is_invisible(*it)));
        letters.push(WORD_END);
        match word.writing {
            Writing::Spaced => push_hashes(&letters, 3, 5, &mut hashes),
            // Without marks: such a word is a phrase or a sentence, and its edges mean little.
            Writing::Dense => push_hashes(&letters[1..letters.len() - 1], 1, 2, &mut hashes),
        }
    }
    hashes.sort_unstable();
    normalize(&sum_weights(&hashes))
}

/// How a script is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writing {
    /// In words with many letters.
    Spaced,
    /// In syllables or ideographs, mostly without spaces. Includes emoji.
    Dense,
}

/// Successive characters of the same writing.
struct Word<'a> {
    text: &'a str,
    writing: Writing,
}

/// Removes differences of width, composition and case.
fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let folded = caseless::default_case_fold_str(&compose(text));
    // Folding may leave a letter and a mark that can be composed.
    compose(&folded).into_owned()
}

/// Returns the NFKC form.
fn compose(text: &str) -> Cow<'_, str> {
    match is_nfkc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        IsNormalized::No | IsNormalized::Maybe => Cow::Owned(text.nfkc().collect()),
    }
}

/// Splits a folded text. Spaces and punctuation separate words.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut current: Option<(usize, Writing)> = None;
    for (at, letter) in text.char_indices() {
        let previous = current.map(|(_, writing)| writing);
        let writing = writing_of(letter, previous);
        if writing == previous {
            continue;
        }
        if let Some((start, writing)) = current {
            let text = &text[start..at];
            words.push(Word { text, writing });
        }
        current = writing.map(|writing| (at, writing));
    }
    if let Some((start, writing)) = current {
        let text = &text[start..];
        words.push(Word { text, writing });
    }
    words
}

/// Returns the writing of a character after one of the writing `previous`, or `None` if it separates
/// words.
fn writing_of(letter: char, previous: Option<Writing>) -> Option<Writing> {
    if letter.is_ascii() {
        return letter.is_ascii_alphanumeric().then_some(Writing::Spaced);
    }
    if is_combining_mark(letter) || is_invisible(letter) {
        return previous;
    }
    if is_dense(letter) {
        return Some(Writing::Dense);
    }
    letter.is_alphanumeric().then_some(Writing::Spaced)
}

fn is_dense(letter: char) -> bool {
    const FIRST_THAI: char = '\u{0E00}';
    const LONG_VOWEL: char = 'ー'; // shared by both kana, so its script is "common"
    if letter < FIRST_THAI {
        return false;
    }
    // Arrows, technical and geometric signs and emoji, each of which is a word by itself.
    if matches!(letter, '\u{2190}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}') {
        return true;
    }
    let is_listed = matches!(
        letter.script(),
        Script::Han
            | Script::Hiragana
            | Script::Katakana
            | Script::Hangul
            | Script::Thai
            | Script::Lao
            | Script::Khmer
            | Script::Myanmar
    );
    letter == LONG_VOWEL || (is_listed && letter.is_alphanumeric())
}

/// Returns whether a character only affects layout or joins others.
fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{00AD}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{2069}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
    )
}

/// Adds the hash of each n-gram of `min` to `max` letters.
fn push_hashes(letters: &[char], min: usize, max: usize, hashes: &mut Vec<u64>) {
    for start in 0..letters.len() {
        let mut hash = FNV_OFFSET;
        for (i, letter) in letters[start..].iter().take(max).enumerate() {
            for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
            }
            if i + 1 >= min {
                hashes.push(hash);
            }
        }
    }
}

/// Adds the weights of all n-grams to their dimensions, in the order of their hashes.
fn sum_weights(sorted_hashes: &[u64]) -> [f64; DIMENSIONS] {
    let mut sums = [0.0; DIMENSIONS];
    for same in sorted_hashes.chunk_by(u64::eq) {
        // Each bit of FNV-1a depends only on lower bits, and few of the high bits on the last
        // byte. Its authors therefore fold a hash to the size that is needed.
        let folded = same[0] ^ (same[0] >> 32);
        let folded = (folded ^ (folded >> 16)).to_le_bytes();
        let weight = 1.0 + ln(same.len());
        let is_negative = folded[1] & 1 == 1;
        sums[usize::from(folded[0])] += if is_negative { -weight } else { weight };
    }
    sums
}

/// Returns the natural logarithm of a count, which is at least 1.
///
/// It uses only operations that IEEE 754 defines exactly: the logarithm of the standard library may differ in its last bit
/// between platforms.
fn ln(count: usize) -> f64 {
    const N_TERMS: u32 = 20; // the last one is below 1e-19
    let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
    let exponent = count.ilog2();
    let mantissa = f64::from(count) / f64::from(1_u32 << exponent);
    // ln(mantissa) = 2 artanh((mantissa - 1) / (mantissa + 1)), as a series.
    let base = (mantissa - 1.0) / (mantissa + 1.0);
    let (mut power, mut sum) = (base, 0.0);
    for i in 0..N_TERMS {
        sum += power / f64::from(2 * i + 1);
        power *= base * base;
    }
    f64::from(exponent) * LN_2 + 2.0 * sum
}

/// Scales a vector to the length 1. A vector of zeros stays as it is.
fn normalize(sums: &[f64; DIMENSIONS]) -> Vec<f32> {
    let squares = sums.iter().fold(0.0, |total, it| total + it * it);
    if squares == 0.0 {
        return vec![0.0; DIMENSIONS];
    }
    let length = squares.sqrt();
    sums.iter().map(|it| (it / length) as f32).collect()
}

#[cfg(test)]
#[path = "local_embedding_tests.rs"]
mod tests;
