//! Changes what a character's model has written before it is stored.

use std::sync::Arc;

use base::message_text;
use tavern::regex_scripts::script_names::ScriptNames;
use tavern::regex_scripts::script_runner::ScriptRunner;
use tavern::regex_scripts::script_use::{ScriptPlacement, ScriptPurpose, ScriptUse};

use crate::regex_scripts::speaker_scripts::SpeakerScripts;

/// The metadata key of a text before scripts have changed it.
pub const UNSCRIPTED_KEY: &str = "unscripted";
/// The same for the reasoning.
pub const UNSCRIPTED_REASONING_KEY: &str = "unscripted_reasoning";

/// The scripts of the character that writes.
#[derive(Clone, Debug)]
pub struct WriterScripts {
    pub scripts: Arc<SpeakerScripts>,
    /// `{{user}}`
    pub user: String,
}

/// A text before it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenText {
    /// `None`: no script changed it.
    pub changed: Option<String>,
    /// The names of the scripts that left it as it was because they are invalid or exceed a limit.
    pub failed_scripts: Vec<String>,
}

impl WriterScripts {
    /// Returns a text after the scripts. A change of which nothing visible is left is discarded. Blocks
    /// for up to a second.
    pub fn change(
        &self,
        placement: ScriptPlacement,
        purpose: ScriptPurpose,
        text: &str,
    ) -> WrittenText {
        let of_text = ScriptUse {
            placement,
            purpose,
            depth: None,
        };
        let mut runner = ScriptRunner::default();
        let user = &self.user;
        let done = (self.scripts).apply(&mut runner, of_text, text, &|it, text| {
            let character = &it.character;
            ScriptNames { character, user }.expand(text)
        });
        let name = |index: &usize| self.scripts.all()[*index].script.name.clone();
        WrittenText {
            failed_scripts: done.failures.iter().map(|(it, _)| name(it)).collect(),
            changed: done
                .text
                // PostgreSQL does not store NUL.
                .map(|it| it.replace('\0', ""))
                .filter(|it| !message_text::is_blank(it) && it != text),
        }
    }
}
