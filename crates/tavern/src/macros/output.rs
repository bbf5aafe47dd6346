//! Defines `MacroEffect`, the result of one macro, and `ExpansionOutput`, to which the results are
//! written, and which removes the line breaks around `{{trim}}`.

use crate::macros::bindings::{Binding, BoundText};

const LINE_BREAKS: [char; 2] = ['\n', '\r'];

/// The result of one macro.
pub enum MacroEffect<'a> {
    /// A text in which no macro is expanded.
    Plain(String),
    /// A text whose macros are expanded.
    Text(&'a str),
    /// A text whose macros are expanded; the variables that they set are discarded.
    TextOfPerson(&'a str),
    /// Removes the line breaks around it (`{{trim}}`).
    Trim,
    /// Keeps the line breaks before and after it from `{{trim}}` (`{{noop}}`).
    KeepLineBreaks,
}

impl<'a> MacroEffect<'a> {
    /// Returns the effect of a macro whose value is a bound name or text.
    pub fn from_binding(meaning: Binding<'a>) -> Self {
        match meaning {
            Binding::Name(name) => MacroEffect::Plain(name.to_owned()),
            Binding::Text(BoundText::Expanded(text)) => MacroEffect::Plain(text.clone()),
            Binding::Text(BoundText::Source(text)) => MacroEffect::Text(text),
            Binding::Text(BoundText::OfPerson(text)) => MacroEffect::TextOfPerson(text),
        }
    }
}

/// The text written so far.
#[derive(Default)]
pub struct ExpansionOutput {
    pub text: String,
    /// The last item was a `{{trim}}`: line breaks that follow are removed.
    trims_line_breaks: bool,
    /// `{{trim}}` removes nothing before this byte.
    kept: usize,
}

impl ExpansionOutput {
    /// Appends a text.
    pub fn write(&mut self, text: &str) {
        let text = match self.trims_line_breaks {
            true => text.trim_start_matches(LINE_BREAKS),
            false => text,
        };
        self.trims_line_breaks &= text.is_empty();
        self.text.push_str(text);
    }

    /// Removes the line breaks before and after this place.
    pub fn trim(&mut self) {
        let trimmed = self.text.trim_end_matches(LINE_BREAKS).len();
        self.text.truncate(trimmed.max(self.kept));
        self.trims_line_breaks = true;
    }

    /// Keeps the line breaks before and after this place.
    pub fn keep_line_breaks(&mut self) {
        self.kept = self.text.len();
        self.trims_line_breaks = false;
    }
}
