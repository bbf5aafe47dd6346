//! Parses the replacement of a script: text, groups (`$1`, `$0`, `{{match}}`, `$<name>`) and macros.

/// The name of the macro for the whole match, in lower case.
const MATCH_MACRO: &str = "{{match}}";

/// A parsed replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    pub parts: Vec<ReplacementPart>,
    /// Whether it may contain macros.
    pub has_macros: bool,
    /// The length of its source, in bytes.
    pub n_bytes: usize,
}

/// A part of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplacementPart {
    Text(String),
    /// The whole match.
    Match,
    /// The group with this number of one or two digits: `(1, None)` is `$1`, and `(1, Some(2))` is
    /// `$12`, or `$1` before a `2` if there is no group 12.
    Number(usize, Option<usize>),
    /// The group with this name.
    Name(String),
}

impl Replacement {
    /// Parses a replacement.
    pub fn parse(source: &str) -> Self {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = source;
        while let Some(char) = rest.chars().next() {
            match parse_part(rest) {
                Some((part, length)) => {
                    if !text.is_empty() {
                        parts.push(ReplacementPart::Text(std::mem::take(&mut text)));
                    }
                    parts.push(part);
                    rest = &rest[length..];
                }
                None => {
                    text.push(char);
                    rest = &rest[char.len_utf8()..];
                }
            }
        }
        if !text.is_empty() {
            parts.push(ReplacementPart::Text(text));
        }
        let may_have_macro = |it: &ReplacementPart| match it {
            ReplacementPart::Text(text) => text.contains("{{") || text.contains('<'),
            _ => false,
        };
        Self {
            has_macros: parts.iter().any(may_have_macro),
            parts,
            n_bytes: source.len(),
        }
    }

    /// Returns whether it inserts a capture group.
    pub fn needs_captures(&self) -> bool {
        let is_group = |it: &ReplacementPart| match it {
            ReplacementPart::Number(first, second) => (*first, second.unwrap_or(0)) != (0, 0),
            ReplacementPart::Name(_) => true,
            ReplacementPart::Text(_) | ReplacementPart::Match => false,
        };
        self.parts.iter().any(is_group)
    }
}

/// Returns the group with which a text begins, and the length of its source.
fn parse_part(text: &str) -> Option<(ReplacementPart, usize)> {
    let bytes = text.as_bytes();
    if bytes.len() >= MATCH_MACRO.len()
        && bytes[..MATCH_MACRO.len()].eq_ignore_ascii_case(MATCH_MACRO.as_bytes())
    {
        return Some((ReplacementPart::Match, MATCH_MACRO.len()));
    }
    let after = text.strip_prefix('$')?;
    if let Some(name) = after.strip_prefix('<') {
        let end = name.find('>').filter(|it| *it > 0)?;
        let part = ReplacementPart::Name(name[..end].to_owned());
        return Some((part, "$<>".len() + end));
    }
    let digit = |at: usize| {
        let digit = char::from(*after.as_bytes().get(at)?).to_digit(10)?;
        usize::try_from(digit).ok()
    };
    let first = digit(0)?;
    let second = digit(1);
    let length = if second.is_some() { 3 } else { 2 };
    Some((ReplacementPart::Number(first, second), length))
}

#[cfg(test)]
#[path = "replacement_tests.rs"]
mod tests;
