//! Counts the tokens of a text with the o200k vocabulary.
//!
//! Other model families count slightly differently; the budget of a prompt has a reserve for this.
//! Counting is CPU work: about a millisecond for 20 kB, and a quarter of a second for the first
//! count, which loads the vocabulary. Call [`warm`] and count long texts in a blocking task.

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
    let n_tokens = tiktoken_rs::o200k_base_singleton().count_ordinary(text);
    i64::try_from(n_tokens).expect("a text of 100 kB has fewer tokens than bytes")
}

/// Loads the vocabulary, so that no later count has to wait for it.
pub fn warm() {
    tiktoken_rs::o200k_base_singleton();
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
        n_tokens += tiktoken_rs::o200k_base_singleton().count_ordinary(&text[start..end]);
    }
    // Rounded up: an estimate that is too high only costs some history, one that is too low costs
    // the reply.
    i64::try_from((n_tokens * text.len()).div_ceil(n_bytes.max(1))).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{MAX_COUNTED_BYTES, count};

    #[test]
    fn words_are_counted_as_the_vocabulary_has_them() {
        assert_eq!(count(""), 0);
        assert_eq!(count("hello world"), 2);
        assert!(
            count("<|endoftext|>") > 1,
            "text is never read as a control token"
        );
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
