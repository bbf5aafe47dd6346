//! Returns whether a JavaScript template literal is open at the end of a line, so that the packer
//! does not change the white space and comments in literals of several lines.

use std::iter::Peekable;
use std::str::Chars;

use anyhow::{Result, bail, ensure};

/// A `/` after one of these begins a regular expression; elsewhere it divides.
const BEFORE_EXPRESSION: &str = "(,=:[!&|?{};+-*%<>~^";

/// Returns whether the text after a line is in a template; `is_in_template` says so for its start.
pub fn ends_in_template(line: &str, is_in_template: bool) -> Result<bool> {
    let mut is_in_template = is_in_template;
    // For each `${` that is open: the number of open braces in it.
    let mut expressions: Vec<usize> = Vec::new();
    let mut before = None;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        if is_in_template {
            match char {
                '\\' => {
                    chars.next();
                }
                '`' => is_in_template = false,
                '$' if chars.peek() == Some(&'{') => {
                    chars.next();
                    expressions.push(0);
                    is_in_template = false;
                }
                _ => {}
            }
            before = Some(char);
            continue;
        }
        match (char, expressions.last_mut()) {
            ('"' | '\'', _) => skip_literal(&mut chars, char)?,
            ('`', _) => is_in_template = true,
            ('{', Some(depth)) => *depth += 1,
            ('}', Some(0)) => {
                expressions.pop();
                is_in_template = true;
            }
            ('}', Some(depth)) => *depth -= 1,
            ('/', _) if chars.peek() == Some(&'/') => break,
            ('/', _) if before.is_none_or(|it| BEFORE_EXPRESSION.contains(it)) => {
                skip_literal(&mut chars, '/')?;
            }
            _ => {}
        }
        if !char.is_whitespace() {
            before = Some(char);
        }
    }
    ensure!(
        expressions.is_empty(),
        "an expression in a template is on one line: {line}"
    );
    Ok(is_in_template)
}

/// Skips the rest of a string or a regular expression, which may contain `end` between brackets.
fn skip_literal(chars: &mut Peekable<Chars>, end: char) -> Result<()> {
    let mut is_in_brackets = false;
    while let Some(char) = chars.next() {
        match char {
            '\\' => {
                chars.next();
            }
            '[' if end == '/' => is_in_brackets = true,
            ']' => is_in_brackets = false,
            _ if char == end && !is_in_brackets => return Ok(()),
            _ => {}
        }
    }
    bail!("a string or regular expression does not end in its line")
}

#[cfg(test)]
mod tests {
    use super::ends_in_template;

    #[test]
    fn only_a_template_that_is_open_at_the_end_of_its_line_continues() {
        for line in [
            "a(`x`)",
            "a(\"`\")",
            "a = /[/`]`/",
            "a = b / c // `",
            "a(`${b({ c: `d` })}`)",
            "a(`\\``)",
        ] {
            assert_eq!(ends_in_template(line, false).ok(), Some(false), "{line}");
        }
        for line in ["a(`", "a = `${b} c", "a(\"`\", `"] {
            assert_eq!(ends_in_template(line, false).ok(), Some(true), "{line}");
        }
        assert_eq!(ends_in_template("` + b", true).ok(), Some(false));
        assert_eq!(ends_in_template("// \"", true).ok(), Some(true));
    }
}
