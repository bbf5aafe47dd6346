//! Tests texts with invalid encodings, and encoded texts that must arrive unchanged.

use std::env;
use std::fmt::Write;

/// One in this many strings is tried in one place, the next one in the next place: all of them in
/// every place last minutes, which is for `bin/test --slow`.
const SHARES: usize = 5;

/// The share of a corpus that one place gets.
pub fn share<T>(corpus: &[T], place: usize) -> impl Iterator<Item = &T> {
    let is_long = env::var("TROUPE_SLOW_TESTS").is_ok_and(|value| value == "1");
    let n = if is_long { 1 } else { SHARES };
    corpus.iter().skip(place % n).step_by(n)
}

/// JSON strings that stand for no text: halves of pairs, and escapes that are none. Whole tokens.
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

/// Pieces of an address in which the encoding itself is the attack.
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

/// The same text inside of an address, every byte but letters and digits encoded.
pub fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => out.push(byte.into()),
            _ => write!(out, "%{byte:02X}").expect("a String takes everything"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{percent_encoded, share};

    #[test]
    fn an_address_holds_only_what_may_stand_there() {
        assert_eq!(percent_encoded("a/é \0"), "a%2F%C3%A9%20%00");
    }

    #[test]
    fn places_share_the_corpus_and_nothing_is_left_out() {
        let corpus: Vec<usize> = (0..23).collect();

        let mut tried: Vec<_> = (0..5).flat_map(|it| share(&corpus, it)).collect();

        tried.sort();
        tried.dedup();
        assert_eq!(tried, corpus.iter().collect::<Vec<_>>());
    }
}
