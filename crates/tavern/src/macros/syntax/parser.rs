//! Parses a text into plain text and macros, which may be nested.
//!
//! One pass over the text: the nodes of all open macros are in one list, and a macro that is closed
//! removes its nodes from it. A macro that is never closed is text, and its nodes stay where they
//! are. `blocks` then joins the macros of each list that form a block.
//!
//! **Invariant:** the time and the memory are proportional to the delimiters, and both their number
//! and the nesting depth are limited.

use crate::macros::limits::{MAX_DELIMITERS, MAX_LEVELS, MacroLimit};
use crate::macros::syntax::blocks;
use crate::macros::syntax::tree::{MacroCall, MacroNode};

/// Parses a text.
///
/// # Errors
/// `Delimiters` or `Levels` when the text exceeds that limit.
pub fn parse(text: &str) -> Result<Vec<MacroNode<'_>>, MacroLimit> {
    let mut parser = Parser {
        text,
        nodes: Vec::new(),
        open: Vec::new(),
        separators: Vec::new(),
        n_delimiters: 0,
    };
    parser.read()?;
    blocks::join(parser.nodes)
}

struct Parser<'a> {
    text: &'a str,
    /// The nodes of the text and of all open macros, in the order of the text.
    nodes: Vec<MacroNode<'a>>,
    /// The open macros, outermost first.
    open: Vec<OpenMacro>,
    /// The positions of the `::` of all open macros in `nodes`.
    separators: Vec<usize>,
    n_delimiters: usize,
}

/// A macro whose end was not found yet.
#[derive(Clone, Copy)]
struct OpenMacro {
    /// Where its braces are in the text, and in `nodes`.
    at: usize,
    node: usize,
    /// How many separators outer macros have.
    first_separator: usize,
}

impl<'a> Parser<'a> {
    fn read(&mut self) -> Result<(), MacroLimit> {
        let (mut from, mut at) = (0, 0);
        while let Some(found) = self.text[at..].find(['{', '}', ':', '<', '\\']) {
            at += found;
            let Some(length) = self.delimiter_length(at) else {
                at += 1;
                continue;
            };
            self.n_delimiters += 1;
            if self.n_delimiters > MAX_DELIMITERS {
                return Err(MacroLimit::Delimiters);
            }
            self.push_text(from, at);
            from = self.read_delimiter(at, length)?;
            at += length;
        }
        self.push_text(from, self.text.len());
        Ok(())
    }

    /// Returns the length of the delimiter that begins here; `None`: it is text.
    fn delimiter_length(&self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        let is_open = !self.open.is_empty();
        match rest.as_bytes()[0] {
            b'{' => begins_macro(rest).then_some(2),
            b'}' => (is_open && rest.starts_with("}}")).then_some(2),
            b':' => (is_open && rest.starts_with("::")).then_some(2),
            b'<' => angle_name(rest).map(|it| it.len() + 2),
            _ => rest[1..].starts_with(['{', '}']).then_some(2),
        }
    }

    /// Returns where the text after the delimiter begins.
    fn read_delimiter(&mut self, at: usize, length: usize) -> Result<usize, MacroLimit> {
        let end = at + length;
        match self.text.as_bytes()[at] {
            b'{' => {
                self.open.push(OpenMacro {
                    at,
                    node: self.nodes.len(),
                    first_separator: self.separators.len(),
                });
                self.push_text(at, end);
            }
            b'}' => self.close()?,
            b':' => {
                self.separators.push(self.nodes.len());
                self.push_text(at, end);
            }
            b'<' => {
                let name = &self.text[at + 1..end - 1];
                self.nodes.push(MacroNode::Angle(name, at));
            }
            // The brace after the backslash is text.
            _ => return Ok(at + 1),
        }
        Ok(end)
    }

    fn push_text(&mut self, from: usize, to: usize) {
        if from < to {
            self.nodes.push(MacroNode::Text(&self.text[from..to]));
        }
    }

    /// Ends the innermost open macro.
    fn close(&mut self) -> Result<(), MacroLimit> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let mut parts = Vec::new();
        for separator in self.separators.drain(open.first_separator..).rev() {
            let mut part = self.nodes.split_off(separator);
            part.remove(0); // the `::`
            parts.push(blocks::join(part)?);
        }
        let mut first = self.nodes.split_off(open.node);
        first.remove(0); // the braces
        parts.push(blocks::join(first)?);
        parts.reverse();
        let inner = parts.iter().flatten().map(MacroNode::levels).max();
        let levels = inner.unwrap_or(0) + 1;
        if levels > MAX_LEVELS {
            return Err(MacroLimit::Levels);
        }
        parts.shrink_to_fit();
        self.nodes.push(MacroNode::Macro(MacroCall {
            at: open.at,
            parts,
            block: None,
            levels,
        }));
        Ok(())
    }
}

/// Returns whether a macro begins here: two braces, white space, flags and then a name. Of more
/// braces only the last two can begin a macro.
fn begins_macro(rest: &str) -> bool {
    let Some(inside) = rest.strip_prefix("{{") else {
        return false;
    };
    let first = inside.trim_start().chars().next();
    first.is_some_and(|it| it.is_alphanumeric() || "_/#.$!?~>".contains(it))
}

/// Returns the name of `<USER>` and similar at the start of a text.
fn angle_name(rest: &str) -> Option<&str> {
    const NAMES: [&str; 5] = ["user", "bot", "char", "group", "charifnotgroup"];
    let inside = rest.strip_prefix('<')?;
    NAMES.iter().find_map(|name| {
        let found = inside.get(..name.len())?;
        let is_it = found.eq_ignore_ascii_case(name) && inside[name.len()..].starts_with('>');
        is_it.then_some(found)
    })
}
