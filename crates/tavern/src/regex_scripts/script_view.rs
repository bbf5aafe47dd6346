//! Shows scripts to people who may read their card or preset.

use serde::Serialize;
use utoipa::ToSchema;

use crate::regex_scripts::script::RegexScript;
use crate::regex_scripts::script_error::ScriptError;
use crate::regex_scripts::script_names::ScriptNames;
use crate::regex_scripts::script_runner;

/// A regex script of a card or a preset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RegexScriptView)]
pub struct RegexScriptView {
    #[serde(flatten)]
    pub script: RegexScript,
    /// Why its pattern is invalid.
    pub error: Option<ScriptErrorView>,
}

/// Why a script has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RegexScriptError)]
pub struct ScriptErrorView {
    pub message: String,
    /// The number of characters of the pattern before the error.
    pub position: Option<usize>,
}

impl From<&ScriptError> for ScriptErrorView {
    fn from(error: &ScriptError) -> Self {
        Self {
            message: error.to_string(),
            position: error.position(),
        }
    }
}

/// Returns the views of scripts.
pub fn views(scripts: Vec<RegexScript>) -> Vec<RegexScriptView> {
    // Other names may make another pattern; these show what is wrong with the pattern itself.
    let names = ScriptNames {
        character: "Character",
        user: "User",
    };
    let view = |script: RegexScript| {
        let error = script_runner::check(&script, &|it| names.expand(it));
        RegexScriptView {
            error: error.as_ref().map(ScriptErrorView::from),
            script,
        }
    };
    scripts.into_iter().map(view).collect()
}
