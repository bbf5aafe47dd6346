//! Decides which scripts act on a text.

use crate::regex_scripts::script::RegexScript;

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScriptPlacement {
    /// The message of a person.
    UserInput,
    /// The message of an AI.
    AiOutput,
    /// An entry of a lorebook.
    WorldInfo,
    /// What an AI thought before its message.
    Reasoning,
}

impl ScriptPlacement {
    /// Returns the number in files.
    pub fn number(self) -> i64 {
        match self {
            Self::UserInput => 1,
            Self::AiOutput => 2,
            Self::WorldInfo => 5,
            Self::Reasoning => 6,
        }
    }
}

/// What the changed text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScriptPurpose {
    /// It is sent to a model.
    Prompt,
    /// It is shown.
    Display,
    /// It is stored, after a model has written it.
    Store,
    /// It is stored, after somebody has edited it.
    Edit,
}

/// A text on which scripts act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptUse {
    pub placement: ScriptPlacement,
    pub purpose: ScriptPurpose,
    /// The number of messages after it; `None`: bounds of the depth do not apply.
    pub depth: Option<i64>,
}

impl ScriptUse {
    /// Returns whether a script acts on the text.
    pub fn includes(&self, script: &RegexScript) -> bool {
        !script.disabled
            && !script.find_regex.is_empty()
            && script.placement.contains(&self.placement.number())
            && self.has_purpose_of(script)
            && self.is_in_depth_of(script)
    }

    fn has_purpose_of(&self, script: &RegexScript) -> bool {
        // The stored text of a person never changes: such a script acts on what is sent and shown.
        let is_stored = script.changes_stored_text();
        let is_of_person = is_stored && self.placement == ScriptPlacement::UserInput;
        let is_of_model = matches!(
            self.placement,
            ScriptPlacement::AiOutput | ScriptPlacement::Reasoning
        );
        match self.purpose {
            ScriptPurpose::Prompt => script.prompt_only || is_of_person,
            ScriptPurpose::Display => script.markdown_only || is_of_person,
            ScriptPurpose::Store => is_stored && is_of_model,
            ScriptPurpose::Edit => is_stored && is_of_model && script.run_on_edit,
        }
    }

    fn is_in_depth_of(&self, script: &RegexScript) -> bool {
        let Some(depth) = self.depth else {
            return true;
        };
        script.min_depth.is_none_or(|it| depth >= it)
            && script.max_depth.is_none_or(|it| depth <= it)
    }
}

#[cfg(test)]
#[path = "script_use_tests.rs"]
mod tests;
