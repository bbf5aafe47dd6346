//! Defines `MacroEffect`, the result of one macro: a text used as it is, a text whose macros are
//! expanded, or the removal of the line breaks around the macro.

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
    /// Returns the effect of a macro whose value is a bound name or text.
    pub fn from_binding(meaning: Binding<'a>) -> Self {
        match meaning {
            Binding::Name(name) => MacroEffect::Plain(name.to_owned()),
            Binding::Text(BoundText::Expanded(text)) => MacroEffect::Plain(text.clone()),
            Binding::Text(BoundText::Source(text)) => MacroEffect::Text(text),
        }
    }
}
