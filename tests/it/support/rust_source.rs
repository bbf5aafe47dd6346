//! Reads Rust source with comments, literals and test modules blanked out; line numbers stay the
//! same.
//!
//! A minimal lexer for the shape rules: blanked text becomes spaces, so that offsets and lines are
//! the same in the result and in the file.

/// One file in the two forms that the rules read.
pub struct RustSource {
    /// Without comments, string and character literals, and without `#[cfg(test)]` items.
    pub code: String,
    /// Without comments and `#[cfg(test)]` items, but with literals, to find SQL.
    pub with_literals: String,
}

/// The kind of a range of text.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

impl RustSource {
    /// Parses a file.
    pub fn parse(text: &str) -> RustSource {
        let bytes = text.as_bytes();
        let kinds = kinds(bytes);
        let mut code = blank(bytes, &kinds, |kind| kind == Kind::Code);
        let mut with_literals = blank(bytes, &kinds, |kind| kind != Kind::Comment);
        for (from, to) in test_items(&code) {
            cover(&mut code, from, to);
            cover(&mut with_literals, from, to);
        }
        RustSource {
            code: String::from_utf8_lossy(&code).into_owned(),
            with_literals: String::from_utf8_lossy(&with_literals).into_owned(),
        }
    }

    /// Returns the line, counted from 1, of an offset in `code` or `with_literals`.
    pub fn line_of(&self, offset: usize) -> usize {
        self.code.as_bytes()[..offset]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            + 1
    }
}

/// Returns the kind of each byte.
fn kinds(bytes: &[u8]) -> Vec<Kind> {
    let mut kinds = vec![Kind::Code; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        let (end, kind) = token(bytes, at);
        kinds[at..end].fill(kind);
        at = end;
    }
    kinds
}

/// Returns the end and the kind of the token at `at`; plain code is one byte.
fn token(bytes: &[u8], at: usize) -> (usize, Kind) {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return (at + find(rest, b"\n").unwrap_or(rest.len()), Kind::Comment);
    }
    if rest.starts_with(b"/*") {
        return (block_comment_end(bytes, at), Kind::Comment);
    }
    if rest[0] == b'"' {
        return (quoted_end(bytes, at + 1, b'"'), Kind::Literal);
    }
    if rest[0] == b'r' && !continues_a_word(bytes, at) {
        let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
        if rest.get(1 + hashes) == Some(&b'"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let body = at + 2 + hashes;
            let end = find(&bytes[body..], close.as_bytes())
                .map_or(bytes.len(), |found| body + found + close.len());
            return (end, Kind::Literal);
        }
    }
    if rest[0] == b'\'' && is_char_literal(rest) {
        return (quoted_end(bytes, at + 1, b'\''), Kind::Literal);
    }
    (at + 1, Kind::Code)
}

/// A quote that does not begin a lifetime: `'a'`, `'\n'`, `'é'`, but not `'a` or `'static`.
fn is_char_literal(rest: &[u8]) -> bool {
    if rest.get(1) == Some(&b'\\') {
        return true;
    }
    let width = match rest.get(1) {
        Some(byte) if *byte >= 0xF0 => 4,
        Some(byte) if *byte >= 0xE0 => 3,
        Some(byte) if *byte >= 0xC0 => 2,
        _ => 1,
    };
    rest.get(1 + width) == Some(&b'\'')
}

/// Returns whether `at` is inside an identifier, where an `r` opens no raw string.
fn continues_a_word(bytes: &[u8], at: usize) -> bool {
    at > 0
        && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_')
        && bytes[at - 1] != b'b'
}

fn quoted_end(bytes: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn block_comment_end(bytes: &[u8], from: usize) -> usize {
    let mut depth = 0;
    let mut at = from;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

fn blank(bytes: &[u8], kinds: &[Kind], keep: impl Fn(Kind) -> bool) -> Vec<u8> {
    let keep_or_blank = |(byte, kind): (&u8, &Kind)| {
        if keep(*kind) || *byte == b'\n' {
            *byte
        } else {
            b' '
        }
    };
    bytes.iter().zip(kinds).map(keep_or_blank).collect()
}

fn cover(bytes: &mut [u8], from: usize, to: usize) {
    bytes[from..to]
        .iter_mut()
        .filter(|byte| **byte != b'\n')
        .for_each(|byte| *byte = b' ');
}

/// Returns the ranges of `#[cfg(test)]` attributes with the item after each.
fn test_items(code: &[u8]) -> Vec<(usize, usize)> {
    let mark = b"#[cfg(test)]";
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(found) = find(&code[at..], mark) {
        let from = at + found;
        let to = item_end(code, from + mark.len());
        items.push((from, to));
        at = to;
    }
    items
}

/// An item ends with its block, or with a semicolon before any block.
fn item_end(code: &[u8], from: usize) -> usize {
    let mut depth = 0;
    for (offset, byte) in code[from..].iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return from + offset + 1;
                }
            }
            b';' if depth == 0 => return from + offset + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::RustSource;

    #[test]
    fn comments_and_literals_are_replaced_by_spaces_in_place() {
        let text = "let a = \"x // y\"; // crate::z\nlet b = 'q'; /* /* */ crate::w */ c";

        let source = RustSource::parse(text);

        assert_eq!(source.code.len(), text.len());
        assert_eq!(
            source.code.split_whitespace().collect::<Vec<_>>(),
            ["let", "a", "=", ";", "let", "b", "=", ";", "c"]
        );
        assert!(source.with_literals.contains("\"x // y\""));
        assert!(!source.with_literals.contains("crate::"));
    }

    #[test]
    fn lifetimes_and_raw_strings_are_recognized() {
        let source = RustSource::parse(
            "fn f<'a>(x: &'a str) { r#\"crate::\"x\"\"#; b'\\''; 'é'; '\"'; g::<'a>() }",
        );

        assert!(source.code.contains("fn f<'a>(x: &'a str)"));
        assert!(source.code.contains("g::<'a>() }"));
        assert!(!source.code.contains("crate"));
    }

    #[test]
    fn test_items_are_blanked_and_line_numbers_are_kept() {
        let source = RustSource::parse(
            "a();\n#[cfg(test)]\nmod tests {\n    fn f() { bad() }\n}\nb();\n#[cfg(test)]\nuse bad;\nc();",
        );

        assert!(!source.code.contains("bad"));
        let offset = source
            .code
            .find("c();")
            .expect("code after a test item is kept");
        assert_eq!(source.line_of(offset), 9);
    }
}
