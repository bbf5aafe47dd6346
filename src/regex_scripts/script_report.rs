//! Defines what scripts did to the texts of a prompt or a reply, for people who inspect it.

use serde::{Deserialize, Serialize};
use tavern::regex_scripts::script_error::ScriptError;
use utoipa::ToSchema;

/// What a script did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = AppliedScript)]
pub struct AppliedScript {
    /// The name; blank if the script has none, or if the caller may not read its card.
    pub name: String,
    /// Whether it changed a text.
    pub changed: bool,
    /// Why it left a text as it was: its pattern is invalid, or it exceeded a limit.
    pub error: Option<String>,
    /// Whether it comes from a card.
    #[serde(default)]
    pub of_card: bool,
}

impl AppliedScript {
    /// Records that the script left a text as it was.
    pub fn record_error(&mut self, error: &ScriptError) {
        self.error.get_or_insert_with(|| error.to_string());
    }
}

/// Removes the names of scripts of cards, which only those may read who may read the card.
pub fn withhold_names(scripts: &mut [AppliedScript]) {
    for script in scripts.iter_mut().filter(|it| it.of_card) {
        script.name.clear();
        script.error = script.error.take().map(|_| "has no effect".to_owned());
    }
}
