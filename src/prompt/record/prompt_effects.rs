//! Defines what a run stores in addition to its prompt when it succeeds.

use serde_json::Value;
use tavern::macros::variables::VariableChanges;

use crate::prompt::history::history_fit::HistoryEffects;

/// The changes that a run stores when it succeeds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptEffects {
    /// Variables set by macros.
    pub variables: VariableChanges,
    /// Timed effects of the lore.
    pub timed_effects: Option<Value>,
    pub history: HistoryEffects,
}

impl PromptEffects {
    /// Returns the effects of a prompt that ended at an earlier message: its lore and its history say
    /// nothing about the next prompt.
    pub fn variables_only(&self) -> Self {
        Self {
            variables: self.variables.clone(),
            ..Self::default()
        }
    }
}
