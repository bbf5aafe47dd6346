//! Selects the cards that a prompt includes, expands the macros in their fields, and joins the same
//! field of several cards into one text. Also returns the macro values for the speaker. No I/O.
//!
//! **Invariant:** `{{char}}` in a card is the card's own character, even if another one speaks.

use base::ids::CharacterId;
use tavern::cards::card::{Card, DepthPrompt};
use tavern::macros::bindings::{Bindings, BoundText};
use tavern::macros::environment::MacroEnvironment;
use tavern::macros::expansion::expand;

use crate::prompt::context::{PromptContext, PromptMember};
use crate::spaces::membership::{MembershipKind, MembershipStatus, Participation};
use crate::spaces::space::CardHandlingMode;

/// In a prefix or suffix: replaced by the name of the field.
const FIELD_NAME: &str = "<FIELDNAME>";
/// Starts a block of example messages.
pub const EXAMPLE_MARK: &str = "<START>";

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
}

/// A card's depth prompt with its macros expanded.
pub struct DepthText {
    /// The display name of the card's character.
    pub owner: String,
    pub prompt: DepthPrompt,
}

/// Expands the cards of a context.
pub fn expand_cards(context: &PromptContext, environment: &MacroEnvironment) -> CardTexts {
    let names = name_bindings(context);
    let description = join_field(context, environment, &DESCRIPTION);
    let personalities = expand_field(context, environment, &PERSONALITY);
    let scenario = match context.scenario_override.as_deref().map(str::trim) {
        None | Some("") => join_field(context, environment, &SCENARIO),
        Some(replacement) => {
            environment.without_variables(|| expand(replacement, &names, environment))
        }
    };
    let examples = join_field(context, environment, &EXAMPLES);
    let persona =
        environment.without_variables(|| expand(&context.user.persona, &names, environment));
    let texts: Vec<&str> = personalities.iter().map(|(_, it)| it.as_str()).collect();
    let speaker = context.character().and_then(|it| it.card.as_deref());
    let meanings = Bindings {
        persona: BoundText::Expanded(persona.trim().to_owned()),
        description: BoundText::Expanded(description),
        personality: BoundText::Expanded(texts.join("\n")),
        scenario: BoundText::Expanded(scenario.trim().to_owned()),
        example_messages: BoundText::Expanded(examples),
        system_prompt: speaker.map_or("", Card::system_prompt).into(),
        post_history: speaker.map_or("", Card::post_history_instructions).into(),
        version: speaker.map_or("", Card::character_version).to_owned(),
        ..names
    };
    CardTexts {
        bindings: meanings,
        personalities,
        depth_prompts: depth_prompts(context, environment),
    }
}

/// Returns the characters whose cards are included, by position.
pub fn included_characters(context: &PromptContext) -> Vec<CharacterId> {
    let owners = included_members(context).into_iter();
    owners.filter_map(|it| it.character).collect()
}

/// Returns the members whose cards are included, by position. A muted speaker's own card is
/// included.
fn included_members(context: &PromptContext) -> Vec<&PromptMember> {
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
        let body = expand((field.text)(owner.card.as_deref()?), &own, world);
        let body = body.trim();
        (!body.is_empty()).then(|| {
            let text = add_affixes(context, world, field, &own, body);
            (own, text)
        })
    })
    .collect()
}

/// Wraps a field in the space's prefix and suffix. Each card's examples start with the mark, before
/// the prefix, because the mark separates the examples of different cards.
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
    let (mark, body) = match field.name == EXAMPLES.name {
        true => (format!("{EXAMPLE_MARK}\n"), strip_example_mark(body)),
        false => (String::new(), body),
    };
    let affix = |text: &str| expand(&text.replace(FIELD_NAME, field.name), own, world);
    let (prefix, suffix) = &context.field_affixes;
    world.without_variables(|| mark + &affix(prefix) + body + &affix(suffix))
}

fn strip_example_mark(body: &str) -> &str {
    match body.get(..EXAMPLE_MARK.len()) {
        Some(mark) if mark.eq_ignore_ascii_case(EXAMPLE_MARK) => {
            body[EXAMPLE_MARK.len()..].trim_start()
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
        prompt.prompt = expand(&prompt.prompt, &own, world).trim().to_owned();
        let owner = owner.name.clone();
        (!prompt.prompt.is_empty()).then_some(DepthText { owner, prompt })
    });
    depths.collect()
}

/// Returns the macro values in the card of `owner`.
fn member_bindings(context: &PromptContext, owner: &PromptMember) -> Bindings {
    let text = |of: fn(&Card) -> &str| owner.card.as_deref().map_or("", of);
    let others = join_names(other_members(context, Some(owner)), &context.user.name);
    Bindings {
        character: owner.display_name().to_owned(),
        is_nicknamed: owner.display_name() != owner.name,
        not_character: others,
        persona: context.user.persona.as_str().into(),
        description: text(Card::description).into(),
        personality: text(Card::personality).into(),
        scenario: text(Card::scenario).into(),
        example_messages: text(Card::mes_example).into(),
        system_prompt: text(Card::system_prompt).into(),
        post_history: text(Card::post_history_instructions).into(),
        version: text(Card::character_version).to_owned(),
        ..name_bindings(context)
    }
}

/// Returns the values of the name macros for the speaker of this context.
fn name_bindings(context: &PromptContext) -> Bindings {
    let character = context.character();
    let character_name = character.map_or(context.user.name.as_str(), PromptMember::display_name);
    let not_muted = context.characters();
    let not_muted = not_muted.filter(|it| it.participation == Participation::Active);
    let people = context.members.iter();
    let people = people
        .filter(|it| it.kind == MembershipKind::Human && it.status == MembershipStatus::Active);
    Bindings {
        character: character_name.to_owned(),
        is_nicknamed: character.is_some_and(|it| it.display_name() != it.name),
        user: context.user.name.clone(),
        users: join_names(people, &context.user.name),
        group: join_names(context.characters(), character_name),
        group_not_muted: join_names(not_muted, character_name),
        not_character: join_names(other_members(context, character), &context.user.name),
        ..Bindings::default()
    }
}

/// Returns the active members except this one.
fn other_members<'a>(
    context: &'a PromptContext,
    one: Option<&PromptMember>,
) -> impl Iterator<Item = &'a PromptMember> + use<'a> {
    let one = one.map(|it| it.id);
    let members = context.members.iter();
    members.filter(move |it| it.status == MembershipStatus::Active && Some(it.id) != one)
}

/// Joins display names with commas; `fallback` if there are none.
fn join_names<'a>(members: impl Iterator<Item = &'a PromptMember>, fallback: &str) -> String {
    let names: Vec<&str> = members.map(|it| it.name.as_str()).collect();
    match names.is_empty() {
        true => fallback.to_owned(),
        false => names.join(", "),
    }
}
