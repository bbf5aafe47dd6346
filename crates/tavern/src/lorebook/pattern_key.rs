//! Translates keys that are regular expressions in JavaScript syntax (`/pattern/flags`), compiles
//! and caches them, and returns whether they match a text.
//!
//! **Invariant:** patterns are untrusted: their size, their steps and their input are limited.
//! Patterns with lookaround or backreferences run in an engine that counts its steps; all others in
//! one with linear time.

use std::sync::{Arc, LazyLock};

use moka::sync::Cache;

/// The maximum length of a pattern, in bytes.
const MAX_LENGTH: usize = 4 * 1024;
/// The maximum size of a compiled pattern in memory, in bytes.
const MAX_SIZE: usize = 64 * 1024;
/// The maximum number of backtracking steps of a search.
const MAX_BACKTRACKS: usize = 50_000;
/// The number of scan steps charged per byte for a backtracking pattern.
const STEPS_PER_BACKTRACKING_BYTE: u64 = 8;
/// The number of scan steps charged for an aborted search.
pub const STEPS_CHARGED_ON_ABORT: u64 = 2 * 1024 * 1024;
/// The number of compiled patterns in the cache.
const MAX_CACHED: u64 = 2_000;

/// A compiled pattern.
pub enum Pattern {
    /// Has neither lookaround nor backreferences.
    Linear(regex::Regex),
    Backtracking(Box<fancy_regex::Regex>),
}

/// Why a search failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// It took too many steps.
    TooSlow,
}

impl Pattern {
    /// Returns the number of scan steps charged for a search in this many bytes.
    pub fn n_steps(&self, n_bytes: usize) -> u64 {
        match self {
            Self::Linear(_) => n_bytes as u64,
            Self::Backtracking(_) => n_bytes as u64 * STEPS_PER_BACKTRACKING_BYTE,
        }
    }

    /// Returns whether the pattern matches in `text`.
    pub fn is_match(&self, text: &str) -> Result<bool, PatternError> {
        match self {
            Self::Linear(pattern) => Ok(pattern.is_match(text)),
            Self::Backtracking(pattern) => {
                pattern.is_match(text).map_err(|_| PatternError::TooSlow)
            }
        }
    }
}

/// Splits a key of the form `/pattern/flags`; returns `None` for other keys.
pub fn parse_literal(key: &str) -> Option<(&str, &str)> {
    let inner = key.strip_prefix('/')?;
    let end = inner.rfind('/')?;
    let (body, flags) = (&inner[..end], &inner[end + 1..]);
    let is_flag = |it: char| "gimsuy".contains(it);
    let is_one = !body.is_empty() && flags.chars().all(is_flag) && !has_bare_slash(body);
    is_one.then_some((body, flags))
}

fn has_bare_slash(body: &str) -> bool {
    let mut is_escaped = false;
    body.chars().any(|it| {
        let is_bare = it == '/' && !is_escaped;
        is_escaped = it == '\\' && !is_escaped;
        is_bare
    })
}

/// Escapes a pattern so that it can be written between slashes.
pub fn escape_slashes(body: &str) -> String {
    let mut escaped = String::with_capacity(body.len());
    let mut is_escaped = false;
    for sign in body.chars() {
        if sign == '/' && !is_escaped {
            escaped.push('\\');
        }
        escaped.push(sign);
        is_escaped = sign == '\\' && !is_escaped;
    }
    escaped
}

/// Returns a compiled pattern, from the cache if possible, or `None` if it is invalid or too large.
pub fn compile(body: &str, flags: &str) -> Option<Arc<Pattern>> {
    static COMPILED: LazyLock<Cache<String, Option<Arc<Pattern>>>> =
        LazyLock::new(|| Cache::new(MAX_CACHED));
    if body.len() > MAX_LENGTH {
        return None;
    }
    let key = format!("{flags}/{body}");
    COMPILED.get_with(key, || compile_uncached(body, flags).map(Arc::new))
}

fn compile_uncached(body: &str, flags: &str) -> Option<Pattern> {
    let mut pattern = String::new();
    for (flag, set) in [('i', "(?i)"), ('m', "(?m)"), ('s', "(?s)")] {
        if flags.contains(flag) {
            pattern.push_str(set);
        }
    }
    // A sticky pattern matches only at the start of the text.
    if flags.contains('y') {
        pattern.push_str(r"\A");
    }
    pattern.push_str("(?:");
    translate(body, &mut pattern);
    pattern.push(')');
    if needs_backtracking(body) {
        let pattern = fancy_regex::RegexBuilder::new(&pattern)
            .backtrack_limit(MAX_BACKTRACKS)
            .delegate_size_limit(MAX_SIZE)
            .build();
        return pattern.ok().map(Box::new).map(Pattern::Backtracking);
    }
    let pattern = regex::RegexBuilder::new(&pattern)
        .size_limit(MAX_SIZE)
        .nest_limit(64)
        .build();
    pattern.ok().map(Pattern::Linear)
}

/// Returns whether a pattern has lookaround or backreferences.
fn needs_backtracking(body: &str) -> bool {
    let looks = ["(?=", "(?!", "(?<=", "(?<!", r"\k<"];
    looks.iter().any(|it| body.contains(it)) || has_back_reference(body)
}

fn has_back_reference(body: &str) -> bool {
    let mut is_escaped = false;
    body.chars().any(|it| {
        let is_one = is_escaped && matches!(it, '1'..='9');
        is_escaped = it == '\\' && !is_escaped;
        is_one
    })
}

/// Translates a JavaScript pattern to the syntax of our engines: classes and word boundaries are
/// ASCII, and characters that are literal only in JavaScript are escaped.
fn translate(body: &str, out: &mut String) {
    let mut in_class = false;
    let mut rest = body;
    while let Some(next) = rest.chars().next() {
        let after = &rest[next.len_utf8()..];
        rest = match next {
            '\\' => escape(after, in_class, out),
            '[' if in_class => {
                out.push_str(r"\[");
                after
            }
            '[' => {
                in_class = true;
                open_class(after, out, &mut in_class)
            }
            ']' => {
                in_class = false;
                out.push(']');
                after
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(next);
                after
            }
            '{' if !in_class && !is_repetition(after) => {
                out.push_str(r"\{");
                after
            }
            _ => {
                out.push(next);
                after
            }
        };
    }
}

/// Translates an escape sequence; returns the remaining pattern.
fn escape<'a>(after: &'a str, in_class: bool, out: &mut String) -> &'a str {
    let Some(letter) = after.chars().next() else {
        out.push_str(r"\\");
        return after;
    };
    let rest = &after[letter.len_utf8()..];
    match letter {
        'w' if in_class => out.push_str("0-9A-Za-z_"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        'd' if in_class => out.push_str("0-9"),
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        'b' if in_class => out.push_str(r"\x08"),
        'b' => out.push_str(r"(?-u:\b)"),
        '0' => out.push_str(r"\x00"),
        '/' | '-' | '#' | ' ' | '&' | '~' if !in_class => {
            out.push_str(&regex::escape(&letter.to_string()));
        }
        '/' => out.push('/'),
        _ if letter.is_ascii_punctuation() && !matches!(letter, '<' | '>') => {
            out.push('\\');
            out.push(letter);
        }
        _ if letter.is_ascii_alphanumeric() => {
            out.push('\\');
            out.push(letter);
        }
        _ => out.push(letter),
    }
    rest
}

/// Translates the start of a class; in JavaScript `[]` matches nothing and `[^]` anything.
fn open_class<'a>(after: &'a str, out: &mut String, in_class: &mut bool) -> &'a str {
    if let Some(rest) = after.strip_prefix("^]") {
        *in_class = false;
        out.push_str(r"[\s\S]");
        return rest;
    }
    if let Some(rest) = after.strip_prefix(']') {
        *in_class = false;
        out.push_str(r"[^\s\S]");
        return rest;
    }
    out.push('[');
    match after.strip_prefix('^') {
        Some(rest) => {
            out.push('^');
            rest
        }
        None => after,
    }
}

/// Returns whether the text after a brace is a repetition: `3}`, `3,}` or `3,5}`.
fn is_repetition(after: &str) -> bool {
    let Some(end) = after.find('}') else {
        return false;
    };
    let (min, max) = after[..end].split_once(',').unwrap_or((&after[..end], ""));
    let is_number = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    !min.is_empty() && is_number(min) && is_number(max)
}

#[cfg(test)]
#[path = "pattern_key_tests.rs"]
mod tests;
