//! Applies the scripts of the speaker to the messages and the lore of one prompt. No I/O.
//!
//! **Invariant:** a text into which a script of a card, or a macro, may have put text of a card is
//! marked like one.

use std::cell::RefCell;
use std::sync::Arc;

use tavern::macros::bindings::Bindings;
use tavern::macros::card_use::CardUse;
use tavern::macros::environment::MacroEnvironment;
use tavern::macros::expansion::expand;
use tavern::regex_scripts::script::RegexScript;
use tavern::regex_scripts::script_error::ScriptError;
use tavern::regex_scripts::script_runner::ScriptRunner;
use tavern::regex_scripts::script_use::{ScriptPlacement, ScriptPurpose, ScriptUse};

use crate::conversations::message::MessageRole;
use crate::prompt::blocks::{BlockKind, BlockOrigin, PromptBlock};
use crate::prompt::context::PromptContext;
use crate::prompt::lore::PromptLore;
use crate::regex_scripts::script_report::AppliedScript;
use crate::regex_scripts::speaker_scripts::SpeakerScripts;

/// The scripts of one prompt, and what they did so far.
pub struct ScriptPass<'a>(Option<ActivePass<'a>>);

struct ActivePass<'a> {
    scripts: Arc<SpeakerScripts>,
    bindings: &'a Bindings,
    environment: MacroEnvironment,
    runner: RefCell<ScriptRunner>,
    report: RefCell<Vec<AppliedScript>>,
}

/// A text that scripts have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedText {
    pub text: String,
    pub card_use: CardUse,
    pub has_summary: bool,
}

impl<'a> ScriptPass<'a> {
    /// Creates the pass of a prompt; macros have the values of its other texts.
    pub fn new(
        context: &PromptContext,
        bindings: &'a Bindings,
        environment: &MacroEnvironment,
    ) -> Self {
        let scripts = context.scripts.of(context.character().map(|it| it.id));
        Self(scripts.map(|scripts| ActivePass {
            report: RefCell::new(scripts.new_report()),
            scripts,
            bindings,
            environment: environment.clone(),
            runner: RefCell::default(),
        }))
    }

    /// Returns the text of a message as it is sent; `None` if no script changes it. The newest message
    /// has the depth 0.
    pub fn message(&self, role: MessageRole, depth: usize, text: &str) -> Option<PassedText> {
        let placement = match role {
            MessageRole::User => ScriptPlacement::UserInput,
            MessageRole::Assistant => ScriptPlacement::AiOutput,
            MessageRole::System => return None,
        };
        self.0.as_ref()?.apply(placement, Some(depth), text)
    }

    /// Changes the lore among the blocks of a prompt. A block of which nothing is left is removed.
    pub fn change_lore(&self, blocks: &mut Vec<PromptBlock>, lore: &PromptLore) {
        let Some(pass) = &self.0 else {
            return;
        };
        for block in blocks.iter_mut().filter(|it| it.kind == BlockKind::Lore) {
            let depth = match block.origin {
                BlockOrigin::Lore(n) => lore.depth_of(n),
                _ => None,
            };
            if let Some(new) = pass.apply(ScriptPlacement::WorldInfo, depth, &block.text) {
                block.text = new.text;
                block.card_use = block.card_use.max(new.card_use);
                block.has_summary |= new.has_summary;
            }
        }
        blocks.retain(|it| it.kind != BlockKind::Lore || !it.text.trim().is_empty());
    }

    /// Returns what the scripts that act on prompts did.
    pub fn into_report(self) -> Vec<AppliedScript> {
        let Some(pass) = self.0 else {
            return Vec::new();
        };
        let reports = pass.report.into_inner().into_iter();
        let all = reports.zip(pass.scripts.all());
        let acting = all.filter(|(_, it)| acts_on_prompts(&it.script));
        acting.map(|(report, _)| report).collect()
    }
}

impl ActivePass<'_> {
    fn apply(
        &self,
        placement: ScriptPlacement,
        depth: Option<usize>,
        text: &str,
    ) -> Option<PassedText> {
        let of_text = ScriptUse {
            placement,
            purpose: ScriptPurpose::Prompt,
            depth: depth.map(|it| i64::try_from(it).unwrap_or(i64::MAX)),
        };
        let environment = &self.environment;
        environment.take_card_use();
        environment.take_summary_use();
        let mut runner = self.runner.borrow_mut();
        let expand = |text: &str| self.expand(text);
        let done = (self.scripts).apply(&mut runner, of_text, text, &|_, text| expand(text));
        done.record(&mut self.report.borrow_mut());
        let inserted = environment.take_card_use();
        let of_card = match done.has_card_text {
            true => CardUse::Entered,
            false => CardUse::None,
        };
        Some(PassedText {
            text: done.text?,
            card_use: inserted.max(of_card),
            has_summary: environment.take_summary_use(),
        })
    }

    /// Expands macros. A text that exceeds a limit affects only its script, not the prompt.
    fn expand(&self, text: &str) -> Result<String, ScriptError> {
        let environment = &self.environment;
        environment.macro_use.take();
        let text = environment.without_variables(|| expand(text, self.bindings, environment));
        match environment.failure.take() {
            Some(_) => Err(ScriptError::InvalidMacro),
            None => Ok(text),
        }
    }
}

fn acts_on_prompts(script: &RegexScript) -> bool {
    let person = ScriptPlacement::UserInput.number();
    let acts_on_people = script.changes_stored_text() && script.placement.contains(&person);
    !script.disabled && (script.prompt_only || acts_on_people)
}
