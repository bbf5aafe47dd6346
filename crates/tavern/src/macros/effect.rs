//! What one macro is replaced by: plain text, a text with further macros, or a trim.

use crate::macros::bindings::{Binding, BoundText};

/// The result of one macro.
pub enum MacroEffect<'a> {
    /// A text in which no macro is expanded.
    Plain(String),
    /// A text whose macros are expanded.
    Text(&'a str),
    /// Removes the line breaks around it (`{{trim}}`).
    Trim,
}

impl<'a> MacroEffect<'a> {
    /// The effect of a macro that stands for a bound name or text.
    pub fn from_binding(meaning: Binding<'a>) -> Self {
        match meaning {
            Binding::Name(name) => MacroEffect::Plain(name.to_owned()),
            Binding::Text(BoundText::Expanded(text)) => MacroEffect::Plain(text.clone()),
            Binding::Text(BoundText::Source(text)) => MacroEffect::Text(text),
        }
    }
}
