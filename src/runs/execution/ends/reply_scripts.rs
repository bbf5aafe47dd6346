//! Runs the scripts that change the text of a reply before it is stored. What was streamed is not
//! changed.

use agent::outcome::GenerationOutcome;
use serde_json::{Value, json};
use tavern::regex_scripts::script_use::{ScriptPlacement, ScriptPurpose};
use tokio::task::JoinError;

use crate::conversations::message;
use crate::prompt::context::PromptContext;
use crate::regex_scripts::writer_scripts::{
    UNSCRIPTED_KEY, UNSCRIPTED_REASONING_KEY, WriterScripts, WrittenText,
};
use crate::runs::services::RunServices;

/// The texts of a reply before the scripts.
#[derive(Clone, Debug, Default)]
pub struct UnscriptedReply {
    /// `None`: the text was not changed.
    text: Option<String>,
    /// `None`: the reasoning was not changed.
    reasoning: Option<String>,
    /// The names of the scripts that failed.
    pub failed_scripts: Vec<String>,
}

impl UnscriptedReply {
    /// Adds the texts before the scripts to the metadata of a text; `new` is its part that the model
    /// wrote in this run, and `continued` the message that this part continues.
    pub fn record(&self, metadata: &mut Value, new: &str, continued: Option<&message::Model>) {
        if let Some(reasoning) = &self.reasoning {
            metadata[UNSCRIPTED_REASONING_KEY] = json!(reasoning);
        }
        let earlier = continued.map(|it| (it.content.as_str(), it.metadata.get(UNSCRIPTED_KEY)));
        let (before, was_changed) = match earlier {
            Some((_, Some(Value::String(unscripted)))) => (unscripted.as_str(), true),
            Some((content, _)) => (content, false),
            None => ("", false),
        };
        if was_changed || self.text.is_some() {
            let own = self.text.as_deref().unwrap_or(new);
            metadata[UNSCRIPTED_KEY] = json!(format!("{before}{own}"));
        }
    }
}

/// Returns the scripts that change what the speaker of a prompt writes; `None` for a user, whose texts no
/// script changes.
pub fn of_prompt(prompt: &PromptContext) -> Option<WriterScripts> {
    if prompt.is_impersonation() {
        return None;
    }
    let scripts = prompt.scripts.of(prompt.character().map(|it| it.id))?;
    Some(WriterScripts {
        scripts,
        user: prompt.user.name.clone(),
    })
}

/// Returns the outcome with changed texts, and the texts before that. The scripts run on a blocking
/// thread.
///
/// # Errors
/// Returns an error if that thread has ended without a result.
pub async fn apply(
    context: &RunServices,
    scripts: Option<WriterScripts>,
    mut outcome: GenerationOutcome,
) -> Result<(GenerationOutcome, UnscriptedReply), JoinError> {
    let Some(scripts) = scripts else {
        return Ok((outcome, UnscriptedReply::default()));
    };
    let changing = context.shutdown.main().spawn_blocking(move || {
        let unscripted = change(&scripts, &mut outcome);
        (outcome, unscripted)
    });
    changing.await
}

fn change(scripts: &WriterScripts, outcome: &mut GenerationOutcome) -> UnscriptedReply {
    let (GenerationOutcome::Succeeded {
        text, reasoning, ..
    }
    | GenerationOutcome::Canceled {
        text, reasoning, ..
    }) = outcome
    else {
        return UnscriptedReply::default();
    };
    let mut unscripted = UnscriptedReply::default();
    let mut change = |placement, text: &mut String| {
        let WrittenText {
            changed,
            failed_scripts,
        } = scripts.change(placement, ScriptPurpose::Store, text);
        unscripted.failed_scripts.extend(failed_scripts);
        changed.map(|it| std::mem::replace(text, it))
    };
    let before = change(ScriptPlacement::AiOutput, text);
    let reasoning = reasoning.as_mut();
    let reasoning = reasoning.and_then(|it| change(ScriptPlacement::Reasoning, &mut it.text));
    (unscripted.text, unscripted.reasoning) = (before, reasoning);
    unscripted
}
