//! Counts the tokens of a text with the o200k vocabulary, and cuts a text at a number of tokens. For
//! a text over 100 kB, the count is estimated from samples.
//!
//! Other model families count slightly differently; the budget of a prompt has a reserve for this.
//! Counting is CPU work, about a millisecond for 20 kB: count long texts in a blocking task.
//!
//! The vocabulary is a finite-state map that `build.rs` writes. It is searched in the binary's
//! memory pages, so nothing of it is copied or built at the start.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::LazyLock;

use fst::Map;
use regex::Regex;

static VOCABULARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.fst"));

/// Splits a text into pieces: a token never spans two of them. This is the pattern of o200k without
/// `\s+(?!\S)`, for which [`pieces`] shortens the piece.
const PIECE: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"|\s*[\r\n]+",
    r"|\s+",
);

/// Marks the start of a part that was merged with the part before it.
const MERGED: usize = usize::MAX;

/// Longer texts are estimated, because an exact count of megabytes would delay other tasks.
const MAX_COUNTED_BYTES: usize = 100_000;

/// Returns the number of tokens of a text. Never negative, 0 only for the empty text.
pub fn count(text: &str) -> i64 {
    if text.is_empty() {
        return 0;
    }
    if text.len() > MAX_COUNTED_BYTES {
        return estimate(text);
    }
    let n_tokens = count_exactly(text);
    i64::try_from(n_tokens).expect("a text of 100 kB has fewer tokens than bytes")
}

/// Returns the longest beginning of a text that has at most `max_tokens` tokens and at most 100 kB,
/// up to a character or two.
pub fn cut(text: &str, max_tokens: usize) -> &str {
    // A token has at least one byte.
    if text.len() <= max_tokens {
        return text;
    }
    let text = &text[..text.floor_char_boundary(MAX_COUNTED_BYTES)];
    let vocabulary = Map::new(VOCABULARY).expect("build.rs writes a valid map");
    let mut remaining = max_tokens;
    let mut n_bytes = 0;
    for piece in pieces(text) {
        let n_tokens = count_in_piece(&vocabulary, piece.as_bytes());
        if n_tokens > remaining {
            n_bytes += cut_piece(&vocabulary, piece, remaining);
            return &text[..n_bytes];
        }
        remaining -= n_tokens;
        n_bytes += piece.len();
    }
    text
}

/// Returns the length of a beginning of a piece that has at most `max_tokens` tokens. A piece may be
/// long: in languages without spaces it is a whole sentence.
fn cut_piece(vocabulary: &Map<&[u8]>, piece: &str, max_tokens: usize) -> usize {
    let (mut fits, mut exceeds) = (0_usize, piece.len());
    loop {
        let middle = piece.floor_char_boundary(fits.midpoint(exceeds));
        if middle <= fits {
            return fits;
        }
        if count_in_piece(vocabulary, &piece.as_bytes()[..middle]) <= max_tokens {
            fits = middle;
        } else {
            exceeds = middle;
        }
    }
}

/// Estimates the count from evenly spaced samples of the text.
fn estimate(text: &str) -> i64 {
    const N_SAMPLES: usize = 10;
    let sample_bytes = MAX_COUNTED_BYTES / N_SAMPLES;
    let mut n_bytes = 0;
    let mut n_tokens = 0;
    for i in 0..N_SAMPLES {
        let start = text.floor_char_boundary(text.len() / N_SAMPLES * i);
        let end = text.floor_char_boundary(start + sample_bytes);
        n_bytes += end - start;
        n_tokens += count_exactly(&text[start..end]);
    }
    // Rounded up: an estimate that is too high only costs some history, one that is too low costs
    // the reply.
    i64::try_from((n_tokens * text.len()).div_ceil(n_bytes.max(1))).unwrap_or(i64::MAX)
}

fn count_exactly(text: &str) -> usize {
    let vocabulary = Map::new(VOCABULARY).expect("build.rs writes a valid map");
    pieces(text)
        .map(|piece| count_in_piece(&vocabulary, piece.as_bytes()))
        .sum()
}

/// Splits a text. Spaces before a word are one piece without the last space, which belongs to the
/// word.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    static PATTERN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(PIECE).expect("the pattern is valid"));
    let mut start = 0;
    std::iter::from_fn(move || {
        let found = PATTERN.find_at(text, start)?;
        let mut end = found.end();
        let last = found.as_str().chars().next_back()?;
        let is_blank = last.is_whitespace() && last != '\n' && last != '\r';
        if is_blank && end < text.len() && found.len() > last.len_utf8() {
            end -= last.len_utf8();
        }
        start = end;
        Some(&text[found.start()..end])
    })
}

/// Returns the number of tokens of a piece: as long as two neighbouring parts form a token, the
/// pair of the lowest rank becomes one part, the leftmost first.
fn count_in_piece(vocabulary: &Map<&[u8]>, piece: &[u8]) -> usize {
    if vocabulary.contains_key(piece) {
        return 1;
    }
    let mut pairs = BinaryHeap::new();
    let find_pair = |start: usize, end: usize| {
        let rank = vocabulary.get(&piece[start..end])?;
        Some(Reverse((rank, start, end)))
    };
    // For the part that begins at an index: where the next part and the previous part begin.
    let mut next: Vec<usize> = (1..=piece.len()).collect();
    let mut previous: Vec<usize> = (0..piece.len())
        .map(|start| start.saturating_sub(1))
        .collect();
    pairs.extend((2..=piece.len()).filter_map(|end| find_pair(end - 2, end)));
    let mut n_parts = piece.len();
    while let Some(Reverse((_, start, end))) = pairs.pop() {
        let middle = next[start];
        if next.get(middle) != Some(&end) {
            // One of the two parts was merged with another one.
            continue;
        }
        next[start] = end;
        next[middle] = MERGED;
        n_parts -= 1;
        if let Some(previous_of_end) = previous.get_mut(end) {
            *previous_of_end = start;
            pairs.extend(find_pair(start, next[end]));
        }
        if start > 0 {
            pairs.extend(find_pair(previous[start], end));
        }
    }
    n_parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MAX_COUNTED_BYTES, count, cut};

    #[track_caller]
    fn assert_counted_like_the_library(text: &str) {
        let expected = tiktoken_rs::o200k_base_singleton().count_ordinary(text);
        assert_eq!(count(text), i64::try_from(expected).unwrap(), "{text:?}");
    }

    #[test]
    fn texts_are_counted_like_the_library_counts_them() {
        let texts = [
            include_str!("tokens.rs"),
            include_str!("../README.md"),
            include_str!("../../../LICENSE-APACHE"),
            "Spaces  before   words, \t tabs\t\tand \u{a0}\u{a0}others\u{3000}\u{3000}x   ",
            "Lines\n\n  \n  indented\r\n\r\n x \n",
            "It's WE'RE I'lL can'ſ 12345678 a/b//\n/",
            "漢字かな交じり文、中文標點。한국어 ไทย हिन्दी",
            "👩‍👩‍👧‍👦🇩🇪 e\u{301}\u{301}\u{301}",
        ];
        for text in texts {
            assert_counted_like_the_library(text);
        }
        for unit in ["a", "漢", " ", " \n", "!?", "xq", "\u{1f468}\u{200d}"] {
            assert_counted_like_the_library(&unit.repeat(5_000));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_counted_like_the_library_counts_it(
            text in r"(\PC|\s|[ \n\r\t'a-zA-Z0-9/.,!]|[\u{4e00}-\u{4eff}]){0,60}"
        ) {
            let expected = tiktoken_rs::o200k_base_singleton().count_ordinary(&text);
            prop_assert_eq!(count(&text), i64::try_from(expected).unwrap());
        }
    }

    #[test]
    fn tokens_are_counted_with_the_vocabulary() {
        assert_eq!(count(""), 0);
        assert_eq!(count("hello world"), 2);
        assert!(
            count("<|endoftext|>") > 1,
            "text is never read as a control token"
        );
    }

    #[test]
    fn a_text_is_cut_at_the_number_of_tokens() {
        let words = "A keeper lights the lamp. ".repeat(20);
        let ideographs = "漢字仮名交文章".repeat(20);
        for text in [words.as_str(), &ideographs, &"x".repeat(500)] {
            for max_tokens in [0, 1, 7, 50] {
                let start = cut(text, max_tokens);

                let max = i64::try_from(max_tokens).unwrap();
                assert!(text.starts_with(start));
                assert!(count(start) <= max, "{} of {max}", count(start));
                assert!(count(start) + 3 >= max, "{} of {max}", count(start));
            }
            assert_eq!(cut(text, 1_000), text);
        }
    }

    #[test]
    fn a_long_text_is_estimated_near_its_true_count() {
        let sentence = "The quick brown fox jumps over the lazy dog. ";
        let text = sentence.repeat(MAX_COUNTED_BYTES / sentence.len() * 3);

        let estimated = count(&text);

        let n_more = count(&sentence.repeat(2)) - count(sentence);
        let expected = n_more * i64::try_from(text.len() / sentence.len()).unwrap();
        assert!(
            (estimated - expected).abs() * 20 < expected,
            "{estimated} for {expected}"
        );
    }

    #[test]
    fn a_long_text_of_wide_characters_is_cut_between_characters() {
        assert!(count(&"漢".repeat(MAX_COUNTED_BYTES)) > 0);
    }
}
