//! Expands the personas of the people who speak, each in a section that its name delimits. No I/O.

use tavern::macros::bindings::{Bindings, BoundText};
use tavern::macros::card_use::CardUse;
use tavern::macros::environment::MacroEnvironment;
use tavern::macros::expansion::expand;
use tavern::personas::persona_placement::{PersonaPlacement, PersonaPosition};
use tavern::presets::preset_texts::PresetTexts;

use crate::prompt::context::PromptContext;

/// The section of a persona.
pub struct PersonaSection {
    /// Where it is in the prompt.
    pub placement: PersonaPlacement,
    /// Whether it is that of the user.
    pub is_user: bool,
    /// The newest message of the persona in the history; 0 if it has none there.
    pub last_seq: i64,
    /// Empty: it has no text.
    pub text: String,
    /// Whether macros inserted text of a card, and the summary.
    pub card_use: CardUse,
    pub has_summary: bool,
}

/// Returns a section for each persona in a space with several people, or if one person speaks under
/// several personas. What the macros of the other texts have recorded is kept.
pub fn expand_sections(
    context: &PromptContext,
    bindings: &Bindings,
    environment: &MacroEnvironment,
) -> Vec<PersonaSection> {
    if !context.has_several_personas() {
        return Vec::new();
    }
    let format = &context.preset.texts.persona_format;
    // The default names the persona too; the lines around the section do it here.
    let is_default = *format == PresetTexts::default().persona_format;
    let format = if is_default { "{{persona}}" } else { format };
    let (card_use, has_summary) = (environment.take_card_use(), environment.take_summary_use());
    let sections = context.personas.iter().map(|persona| {
        let names = Bindings {
            user: persona.name.clone(),
            ..bindings.clone()
        };
        environment.set_field(&format!("Persona of {}", persona.name));
        let text = environment.without_variables(|| expand(&persona.text, &names, environment));
        let of_section = Bindings {
            persona: BoundText::Expanded(text.trim().to_owned()),
            ..names
        };
        let mut text = expand(format, &of_section, environment).trim().to_owned();
        if !text.is_empty() && !format.to_lowercase().contains("{{user}}") {
            let name = &persona.name;
            text = format!("[Persona of {name}]\n{text}\n[End of {name}]");
        }
        PersonaSection {
            placement: persona.placement,
            is_user: persona.is_user,
            last_seq: persona.last_seq,
            text,
            card_use: environment.take_card_use(),
            has_summary: environment.take_summary_use(),
        }
    });
    let sections = sections.collect();
    environment.card_use.set(card_use);
    environment.has_used_summary.set(has_summary);
    sections
}

/// Returns the value of `{{persona_list}}`: the sections, or the persona of the user in its format, that
/// are where the preset has the persona.
pub fn list(context: &PromptContext, sections: &[PersonaSection]) -> BoundText {
    let is_listed = |it: &PersonaPlacement| it.position == PersonaPosition::InPrompt;
    if context.has_several_personas() {
        let listed = sections.iter().filter(|it| is_listed(&it.placement));
        let texts = listed.map(|it| it.text.as_str());
        let texts: Vec<&str> = texts.filter(|it| !it.is_empty()).collect();
        return BoundText::Expanded(texts.join("\n"));
    }
    match context.user.persona.trim().is_empty() || !is_listed(&context.user.placement) {
        true => BoundText::default(),
        false => context.preset.texts.persona_format.as_str().into(),
    }
}
