//! Reads the pattern of a script: `/pattern/flags`, or a pattern without flags, and inserts macros.

use crate::regex_scripts::script_error::ScriptError;

/// Splits a pattern from its flags. What is not enclosed in slashes, or has other characters after
/// them, is a pattern as a whole.
pub fn split(find_regex: &str) -> (&str, &str) {
    let literal = || {
        let inner = find_regex.strip_prefix('/')?;
        let (source, flags) = inner.rsplit_once('/')?;
        let is_flag = |it: char| "dgimsuvy".contains(it);
        (!source.is_empty() && flags.chars().all(is_flag)).then_some((source, flags))
    };
    literal().unwrap_or((find_regex, ""))
}

/// Inserts the values of macros into a pattern; with `escapes` as literal text. Unknown macros, and all
/// that is no macro (`(?<user>a)`), are left as they are.
///
/// # Errors
/// Returns the error of `expand`.
pub fn insert_macros(
    source: &str,
    escapes: bool,
    expand: &dyn Fn(&str) -> Result<String, ScriptError>,
) -> Result<String, ScriptError> {
    let mut all = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{{") {
        let Some(length) = macro_length(&rest[start..]) else {
            break;
        };
        let (before, from) = rest.split_at(start);
        let (text, after) = from.split_at(length);
        let value = expand(text)?;
        all.push_str(before);
        match escapes && value != text {
            true => push_escaped(&mut all, &value),
            false => all.push_str(&value),
        }
        rest = after;
    }
    all.push_str(rest);
    Ok(all)
}

/// Returns the length of the macro with which a text begins, with the macros in it.
fn macro_length(text: &str) -> Option<usize> {
    let mut level = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"{{") {
            level += 1;
            at += 2;
        } else if rest.starts_with(b"}}") {
            level -= 1;
            at += 2;
            if level == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    None
}

fn push_escaped(pattern: &mut String, text: &str) {
    for char in text.chars() {
        match char {
            '\n' => pattern.push_str("\\n"),
            '\r' => pattern.push_str("\\r"),
            '\t' => pattern.push_str("\\t"),
            '\0' => pattern.push_str("\\0"),
            '.' | '^' | '$' | '*' | '+' | '?' | '{' | '}' | '[' | ']' | '\\' | '/' | '|' | '('
            | ')' => pattern.extend(['\\', char]),
            char => pattern.push(char),
        }
    }
}

#[cfg(test)]
#[path = "find_regex_tests.rs"]
mod tests;
