//! Holds the scripts that act on the texts of one speaker: those of the card, then those of the preset,
//! and applies them.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use tavern::regex_scripts::script::RegexScript;
use tavern::regex_scripts::script_error::ScriptError;
use tavern::regex_scripts::script_runner::ScriptRunner;
use tavern::regex_scripts::script_use::ScriptUse;

use crate::regex_scripts::script_report::AppliedScript;

/// The scripts of a speaker, in their order.
#[derive(Clone, Debug, Default)]
pub struct SpeakerScripts(Vec<OwnedScript>);

/// A script that may run.
#[derive(Clone, Debug)]
pub struct OwnedScript {
    pub script: RegexScript,
    /// Whether it comes from a card, not from a preset.
    pub is_of_card: bool,
    /// `{{char}}` in it.
    pub character: Arc<str>,
    /// The hash of all of this.
    pub fingerprint: [u8; 32],
}

/// A text after the scripts.
#[derive(Clone, Debug, Default)]
pub struct ScriptedText {
    /// `None`: no script changed it.
    pub text: Option<String>,
    /// Whether a script of a card changed it.
    pub has_card_text: bool,
    /// The indexes of the scripts that changed it.
    pub changed_by: Vec<usize>,
    /// The scripts that left it as it was, with the reason.
    pub failures: Vec<(usize, ScriptError)>,
}

/// Expands the macros of a text of a script.
pub type ExpandScript<'a> = dyn Fn(&OwnedScript, &str) -> Result<String, ScriptError> + 'a;

impl SpeakerScripts {
    /// Adds scripts with the same origin.
    pub fn add(&mut self, scripts: &[RegexScript], is_of_card: bool, character: &Arc<str>) {
        let owned = scripts.iter().map(|script| OwnedScript {
            fingerprint: fingerprint(script, is_of_card, character),
            script: script.clone(),
            is_of_card,
            character: character.clone(),
        });
        self.0.extend(owned);
    }

    /// Adds the scripts of another speaker, except those that are equal to one of these.
    pub fn add_missing(&mut self, others: &[RegexScript], character: &Arc<str>) {
        for other in others {
            if !self.0.iter().any(|it| it.is_of_card && it.script == *other) {
                self.add(std::slice::from_ref(other), true, character);
            }
        }
    }

    /// Returns all scripts.
    pub fn all(&self) -> &[OwnedScript] {
        &self.0
    }

    /// Returns the scripts that act on a text, with their indexes.
    pub fn active(&self, of_text: ScriptUse) -> impl Iterator<Item = (usize, &OwnedScript)> {
        let all = self.0.iter().enumerate();
        all.filter(move |(_, it)| of_text.includes(&it.script))
    }

    /// Applies the scripts to a text.
    pub fn apply(
        &self,
        runner: &mut ScriptRunner,
        of_text: ScriptUse,
        text: &str,
        expand: &ExpandScript<'_>,
    ) -> ScriptedText {
        let mut done = ScriptedText::default();
        for (index, it) in self.active(of_text) {
            let now = done.text.as_deref().unwrap_or(text);
            match runner.apply(&it.script, now, &|text| expand(it, text)) {
                Ok(Some(new)) if new != now => {
                    done.has_card_text |= it.is_of_card;
                    done.changed_by.push(index);
                    done.text = Some(new);
                }
                Ok(_) => {}
                Err(error) => done.failures.push((index, error)),
            }
        }
        done
    }

    /// Returns an empty report of these scripts.
    pub fn new_report(&self) -> Vec<AppliedScript> {
        let reports = self.0.iter().map(|it| AppliedScript {
            name: it.script.name.clone(),
            of_card: it.is_of_card,
            ..AppliedScript::default()
        });
        reports.collect()
    }
}

impl ScriptedText {
    /// Adds what the scripts did to a report of the same scripts.
    pub fn record(&self, report: &mut [AppliedScript]) {
        for index in &self.changed_by {
            report[*index].changed = true;
        }
        for (index, error) in &self.failures {
            report[*index].record_error(error);
        }
    }
}

fn fingerprint(script: &RegexScript, is_of_card: bool, character: &str) -> [u8; 32] {
    let text = serde_json::json!([script, is_of_card, character]).to_string();
    Sha256::digest(text).into()
}
