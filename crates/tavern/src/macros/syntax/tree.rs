//! Defines the nodes of a parsed text: plain text, and macros with their arguments and blocks.

use crate::macros::syntax::short_form::ShortForm;

/// A part of a text.
#[derive(Debug)]
pub enum MacroNode<'a> {
    Text(&'a str),
    /// The legacy form of a macro without its brackets: `USER` of `<USER>`.
    Angle(&'a str, usize),
    Macro(MacroCall<'a>),
}

/// `{{name rest::part::part}}` with any name, and the block that it opens.
#[derive(Debug, Default)]
pub struct MacroCall<'a> {
    /// Where it begins in the text, in bytes.
    pub at: usize,
    /// The parts between `::`; the first begins with the name. Not empty after parsing.
    pub parts: Vec<Vec<MacroNode<'a>>>,
    /// What stands between it and its closing tag.
    pub block: Option<Box<MacroBlock<'a>>>,
    /// The number of levels of macros in it, itself included.
    pub levels: usize,
}

/// The text of `{{name}}…{{/name}}`.
#[derive(Debug)]
pub struct MacroBlock<'a> {
    pub nodes: Vec<MacroNode<'a>>,
    /// What follows `{{else}}`; only in an `if`.
    pub otherwise: Option<Vec<MacroNode<'a>>>,
    /// The closing tag without its braces.
    pub end: &'a str,
}

/// The beginning of a macro.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacroHead<'a> {
    /// It closes a block: `{{/name}}`.
    pub is_closing: bool,
    /// The white space of its block is kept: `{{#name}}`.
    pub keeps_space: bool,
    /// The name as written.
    pub name: &'a str,
    /// The text after the name, up to the first `::` or inner macro.
    pub rest: &'a str,
}

impl<'a> MacroNode<'a> {
    /// Returns the number of levels of macros in it.
    pub fn levels(&self) -> usize {
        match self {
            Self::Macro(call) => call.levels,
            Self::Text(_) | Self::Angle(..) => 0,
        }
    }
}

impl<'a> MacroCall<'a> {
    /// Returns the flags and the name.
    pub fn head(&self) -> Option<MacroHead<'a>> {
        let MacroNode::Text(text) = self.parts.first()?.first()? else {
            return None;
        };
        let text = text.trim_start();
        let mut head = MacroHead {
            is_closing: false,
            keeps_space: false,
            name: "",
            rest: "",
        };
        let mut rest = text;
        if let Some(after) = text.strip_prefix('#') {
            (head.keeps_space, rest) = (true, after.trim_start());
        } else if self.is_only_text() && is_comment_end(text) {
            (head.is_closing, rest) = (true, text[1..].trim_start());
        } else if !text.starts_with("//")
            && let Some(after) = text.strip_prefix('/')
        {
            (head.is_closing, rest) = (true, after.trim_start());
        }
        let end = match rest.starts_with("//") {
            true => 2,
            false => rest
                .find(|it: char| it.is_whitespace() || it == ':' || it == '"')
                .unwrap_or(rest.len()),
        };
        (head.name, head.rest) = rest.split_at(end);
        let after = head.rest.trim_start();
        head.rest = after.strip_prefix(':').unwrap_or(after);
        (!head.name.is_empty()).then_some(head)
    }

    /// Parses this macro as the short form of a variable macro; `None` if it is another macro.
    pub fn short_form(&self) -> Option<ShortForm<'a>> {
        match self.parts.first()?.first()? {
            MacroNode::Text(text) => ShortForm::parse(text),
            MacroNode::Angle(..) | MacroNode::Macro(_) => None,
        }
    }

    /// Returns whether something follows a short form.
    pub fn has_value_after(&self, form: &ShortForm<'a>) -> bool {
        !form.rest.trim().is_empty() || !self.is_only_text()
    }

    /// Returns the arguments before the block: the text that each begins with, and its nodes.
    pub fn arguments(&self) -> impl Iterator<Item = (&'a str, &[MacroNode<'a>])> {
        let first = self.parts.first().filter(|_| self.has_first_argument());
        let rest = self.head().map_or("", |it| it.rest);
        let first = first.map(|it| (rest, &it[1..]));
        let others = self.parts.iter().skip(1);
        first
            .into_iter()
            .chain(others.map(|it| ("", it.as_slice())))
    }

    /// Returns whether something follows the name before the first `::`.
    fn has_first_argument(&self) -> bool {
        let has_text = self.head().is_some_and(|it| !it.rest.trim().is_empty());
        has_text || self.parts.first().is_some_and(|it| it.len() > 1)
    }

    /// Returns the number of arguments, its block included.
    pub fn n_args(&self) -> usize {
        let first = usize::from(self.has_first_argument());
        first + self.parts.len().saturating_sub(1) + usize::from(self.block.is_some())
    }

    /// Returns its text if it has neither arguments nor inner macros.
    pub fn only_text(&self) -> Option<&'a str> {
        match self.parts.first()?.first()? {
            MacroNode::Text(text) if self.is_only_text() => Some(text),
            _ => None,
        }
    }

    fn is_only_text(&self) -> bool {
        self.parts.len() == 1 && self.parts[0].len() == 1
    }
}

/// Returns whether the text of a macro is that of `{{///}}`.
fn is_comment_end(text: &str) -> bool {
    let after = text.strip_prefix('/').map(str::trim);
    after == Some("//")
}
