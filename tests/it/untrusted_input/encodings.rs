//! Tests texts with invalid encodings, and encoded texts that must arrive unchanged.

use std::env;
use std::fmt::Write;

/// Each field gets one string in this many, the next field the next ones. All strings in all fields
/// take minutes and run only with `bin/test --slow`.
const SHARES: usize = 5;

/// The share of a corpus that the field with this index gets.
pub fn share<T>(corpus: &[T], index: usize) -> impl Iterator<Item = &T> {
    let is_slow_run = env::var("TROUPE_SLOW_TESTS").is_ok_and(|value| value == "1");
    let n = if is_slow_run { 1 } else { SHARES };
    corpus.iter().skip(index % n).step_by(n)
}

/// Invalid JSON strings, as tokens: lone surrogates and malformed escapes.
pub const BROKEN_TOKENS: &[&str] = &[
    r#""\ud800""#,
    r#""\udc00""#,
    r#""\ud83d""#,
    r#""\ude00\ud83d""#,
    r#""\ud800\ud800""#,
    r#""\ud800A""#,
    r#""\x41""#,
    r#""\u12""#,
    r#""\uZZZZ""#,
    "\"a\nb\"",
    "\"\u{1}\"",
    "'single'",
    "\"open",
];

/// URL path segments in which the encoding itself is the attack.
pub const BROKEN_PERCENTS: &[&str] = &[
    "%",
    "%0",
    "%zz",
    "%00",
    "a%00b",
    "%ff%fe",
    "%c0%af",
    "%c0%80",
    "%ed%a0%80",
    "%f4%90%80%80",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..%2f..%2fetc%2fpasswd",
    "..%5c..%5cboot.ini",
    "..;/..;/etc/passwd",
    "%252e%252e%252f",
    "%u0041",
    "1%20OR%201=1",
    "1%27",
    "1%3B%20DROP%20TABLE%20users",
    "%0d%0aX-Injected:%201",
    "1;a=b",
    "1,2,3",
    "1+1",
    "~",
    "*",
];

/// Percent-encodes every byte but letters, digits and hyphens.
pub fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => out.push(byte.into()),
            _ => write!(out, "%{byte:02X}").expect("writing to a String does not fail"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{percent_encoded, share};

    #[test]
    fn percent_encoding_escapes_all_but_letters_digits_and_hyphens() {
        assert_eq!(percent_encoded("a/é \0"), "a%2F%C3%A9%20%00");
    }

    #[test]
    fn the_shares_of_a_corpus_together_contain_every_item() {
        let corpus: Vec<usize> = (0..23).collect();

        let mut tried: Vec<_> = (0..5).flat_map(|it| share(&corpus, it)).collect();

        tried.sort();
        tried.dedup();
        assert_eq!(tried, corpus.iter().collect::<Vec<_>>());
    }
}
