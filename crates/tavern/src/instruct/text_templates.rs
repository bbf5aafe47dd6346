//! The templates of one text completion prompt.

use crate::instruct::context_template::ContextTemplate;
use crate::instruct::instruct_template::InstructTemplate;

/// The templates of a prompt that is sent as one text.
#[derive(Clone, Debug, PartialEq)]
pub struct TextTemplates {
    pub instruct: InstructTemplate,
    pub context: ContextTemplate,
}

impl TextTemplates {
    /// Returns the value of the macro with this first name in lower case; empty if it is none of theirs.
    pub fn macro_value(&self, name: &str) -> &str {
        match name {
            "exampleseparator" => &self.context.example_separator,
            "chatstart" => &self.context.chat_start,
            name => self.instruct.macro_value(name).unwrap_or_default(),
        }
    }
}
