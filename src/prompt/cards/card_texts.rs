//! Selects the cards that a prompt includes, expands the macros in their fields, and joins the same
//! field of several cards into one text. Also returns the macro values for the speaker. No I/O.
//!
//! **Invariant:** `{{char}}` in a card is the card's own character, even if another one speaks.

use base::ids::CharacterId;
use tavern::cards::card::{Card, DepthPrompt};
use tavern::macros::bindings::{Bindings, BoundText};
use tavern::macros::environment::MacroEnvironment;
use tavern::macros::expansion::expand;

use crate::prompt::cards::example_messages::EXAMPLE_START;
use crate::prompt::context::{PromptContext, PromptMember};
use crate::prompt::macro_values::bindings::{member_bindings, speaker_bindings};
use crate::prompt::macro_values::personas;
use crate::prompt::macro_values::personas::PersonaSection;
use crate::spaces::membership::Participation;
use crate::spaces::space::CardHandlingMode;

/// In a prefix or suffix: replaced by the name of the field.
const FIELD_NAME: &str = "<FIELDNAME>";

/// A field that several cards may contain.
struct CardFieldSpec {
    /// The name shown to users.
    name: &'static str,
    text: fn(&Card) -> &str,
}

const DESCRIPTION: CardFieldSpec = CardFieldSpec {
    name: "Description",
    text: Card::description,
};
const PERSONALITY: CardFieldSpec = CardFieldSpec {
    name: "Personality",
    text: Card::personality,
};
const SCENARIO: CardFieldSpec = CardFieldSpec {
    name: "Scenario",
    text: Card::scenario,
};
const EXAMPLES: CardFieldSpec = CardFieldSpec {
    name: "Example Messages",
    text: Card::mes_example,
};

/// The cards of a prompt with their macros expanded.
pub struct CardTexts {
    /// The macro values for the speaker.
    pub bindings: Bindings,
    /// The personality of each card, with the macro values of its owner.
    pub personalities: Vec<(Bindings, String)>,
    /// The depth prompt of each card.
    pub depth_prompts: Vec<DepthText>,
    /// The personas, if each has a section of its own.
    pub personas: Vec<PersonaSection>,
}

/// A card's depth prompt with its macros expanded.
pub struct DepthText {
    /// The display name of the card's character.
    pub owner: String,
    pub prompt: DepthPrompt,
}

/// Expands the cards of a context.
pub fn expand_cards(context: &PromptContext, environment: &MacroEnvironment) -> CardTexts {
    let names = speaker_bindings(context);
    let description = join_field(context, environment, &DESCRIPTION);
    let personalities = expand_field(context, environment, &PERSONALITY);
    let scenario = match context.scenario_override.as_deref().map(str::trim) {
        None | Some("") => join_field(context, environment, &SCENARIO),
        Some(replacement) => {
            environment.set_field("Scenario of the space");
            environment.without_variables(|| expand(replacement, &names, environment))
        }
    };
    let examples = join_field(context, environment, &EXAMPLES);
    environment.set_field("Persona");
    let persona =
        environment.without_variables(|| expand(&context.user.persona, &names, environment));
    let texts: Vec<&str> = personalities.iter().map(|(_, it)| it.as_str()).collect();
    let mut bindings = Bindings {
        persona: BoundText::Expanded(persona.trim().to_owned()),
        description: BoundText::Expanded(description),
        personality: BoundText::Expanded(texts.join("\n")),
        scenario: BoundText::Expanded(scenario.trim().to_owned()),
        example_messages: BoundText::Expanded(examples),
        ..names
    };
    let depth_prompts = depth_prompts(context, environment);
    let personas = personas::expand_sections(context, &bindings, environment);
    bindings.persona_list = personas::list(context, &personas);
    CardTexts {
        bindings,
        personalities,
        depth_prompts,
        personas,
    }
}

/// Returns the characters whose cards are included, by position.
pub fn included_characters(context: &PromptContext) -> Vec<CharacterId> {
    let owners = included_members(context).into_iter();
    owners.filter_map(|it| it.character).collect()
}

/// Returns the members whose cards are included, by position. A muted speaker's own card is
/// included.
pub fn included_members(context: &PromptContext) -> Vec<&PromptMember> {
    let Some(speaker) = context.character() else {
        return Vec::new();
    };
    let enters = |it: &&PromptMember| match context.card_handling {
        CardHandlingMode::Swap => false,
        CardHandlingMode::Append => it.participation == Participation::Active,
        CardHandlingMode::AppendDisabled => true,
    };
    let all = context.members.iter();
    all.filter(|it| it.id == speaker.id || it.is_character() && enters(it))
        .collect()
}

/// Joins one field of all included cards, each on its own line.
fn join_field(context: &PromptContext, world: &MacroEnvironment, field: &CardFieldSpec) -> String {
    let all = expand_field(context, world, field).into_iter();
    all.map(|(_, text)| text).collect::<Vec<_>>().join("\n")
}

/// Returns one field of each included card, without blank ones.
fn expand_field(
    context: &PromptContext,
    world: &MacroEnvironment,
    field: &CardFieldSpec,
) -> Vec<(Bindings, String)> {
    let all = included_members(context).into_iter();
    all.filter_map(|owner| {
        let own = member_bindings(context, owner);
        world.set_field(&format!("{} of {}", field.name, owner.name));
        let body = expand((field.text)(owner.card.as_deref()?), &own, world);
        let body = body.trim();
        (!body.is_empty()).then(|| {
            let text = add_affixes(context, world, field, &own, body);
            (own, text)
        })
    })
    .collect()
}

/// Wraps a field in the space's prefix and suffix. The examples of each card start with `<START>`, before the
/// prefix, so that those of different cards stay separate dialogues.
fn add_affixes(
    context: &PromptContext,
    world: &MacroEnvironment,
    field: &CardFieldSpec,
    own: &Bindings,
    body: &str,
) -> String {
    if context.card_handling == CardHandlingMode::Swap {
        return body.to_owned();
    }
    let (separator, body) = match field.name == EXAMPLES.name {
        true => (format!("{EXAMPLE_START}\n"), strip_example_separator(body)),
        false => (String::new(), body),
    };
    let affix = |text: &str| expand(&text.replace(FIELD_NAME, field.name), own, world);
    let (prefix, suffix) = &context.field_affixes;
    world.without_variables(|| [&separator, &affix(prefix), body, &affix(suffix)].concat())
}

fn strip_example_separator(body: &str) -> &str {
    match body.get(..EXAMPLE_START.len()) {
        Some(separator) if separator.eq_ignore_ascii_case(EXAMPLE_START) => {
            body[EXAMPLE_START.len()..].trim_start()
        }
        _ => body,
    }
}

/// Returns the depth prompts of the speaker's card and, in a joining mode, of active members.
fn depth_prompts(context: &PromptContext, world: &MacroEnvironment) -> Vec<DepthText> {
    let speaker = context.character().map(|it| it.id);
    let owners = included_members(context).into_iter();
    let included =
        owners.filter(|it| Some(it.id) == speaker || it.participation == Participation::Active);
    let depths = included.filter_map(|owner| {
        let mut prompt = owner.card.as_deref()?.depth_prompt()?;
        let own = member_bindings(context, owner);
        world.set_field(&format!("Character's Note of {}", owner.name));
        prompt.prompt = expand(&prompt.prompt, &own, world).trim().to_owned();
        let owner = owner.name.clone();
        (!prompt.prompt.is_empty()).then_some(DepthText { owner, prompt })
    });
    depths.collect()
}
