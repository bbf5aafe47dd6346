//! Expands the macros of scripts where no prompt is built: only names have values, all else is empty.
//! Macros for times are left as they are, because what is shown must not change by itself.

use crate::macros::bindings::Bindings;
use crate::macros::environment::MacroEnvironment;
use crate::macros::expansion::expand;
use crate::regex_scripts::script_error::ScriptError;

/// The names that macros of scripts insert.
#[derive(Clone, Copy, Debug)]
pub struct ScriptNames<'a> {
    /// `{{char}}`
    pub character: &'a str,
    /// `{{user}}`
    pub user: &'a str,
}

impl ScriptNames<'_> {
    /// Expands the macros of a text.
    ///
    /// # Errors
    /// Returns `InvalidMacro` if they exceed a limit.
    pub fn expand(&self, text: &str) -> Result<String, ScriptError> {
        let bindings = Bindings {
            character: self.character.to_owned(),
            group: self.character.to_owned(),
            group_not_muted: self.character.to_owned(),
            user: self.user.to_owned(),
            users: self.user.to_owned(),
            not_character: self.user.to_owned(),
            ..Bindings::default()
        };
        let environment = MacroEnvironment::default();
        let text = expand(text, &bindings, &environment);
        match environment.failure.take() {
            Some(_) => Err(ScriptError::InvalidMacro),
            None => Ok(text),
        }
    }
}
