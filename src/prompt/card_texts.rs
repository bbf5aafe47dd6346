//! Whose cards enter a prompt, and how several become one text.
//!
//! **Invariant:** `{{char}}` in a card means whoever the card is of, whoever speaks.

use crate::characters::card::{Card, DepthPrompt};
use crate::ids::CharacterId;
use crate::prompt::context::{PromptContext, PromptMember};
use crate::prompt::macros::bindings::{Bindings, BoundText};
use crate::prompt::macros::environment::MacroEnvironment;
use crate::prompt::macros::expansion::expand;
use crate::spaces::membership::{MembershipKind, MembershipStatus, Participation};
use crate::spaces::space::CardHandlingMode;

/// In a prefix or suffix: the name of the field it stands around.
const FIELD_NAME: &str = "<FIELDNAME>";
/// Begins a block of example messages.
pub const EXAMPLE_MARK: &str = "<START>";

/// A field that several cards may fill.
struct CardFieldSpec {
    /// As people know it.
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

/// The cards of a prompt, read: their macros are run.
pub struct CardTexts {
    /// What the macros mean while the speaker speaks.
    pub bindings: Bindings,
    /// Each personality by itself, with what the macros mean for its owner.
    pub personalities: Vec<(Bindings, String)>,
    /// What each card wants inside the history.
    pub depth_prompts: Vec<DepthText>,
}

/// Text that a card wants inside the history, its macros run.
pub struct DepthText {
    /// The display name of the character of this card.
    pub owner: String,
    pub prompt: DepthPrompt,
}

/// Reads the cards of a context.
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
    let speaker = context.character().and_then(|it| it.card.as_ref());
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

/// The characters whose cards enter, by position.
pub fn included_characters(context: &PromptContext) -> Vec<CharacterId> {
    let owners = included_members(context).into_iter();
    owners.filter_map(|it| it.character).collect()
}

/// Whose cards enter, by position. Who is muted may still be made to speak, and then knows itself.
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

/// One field of all cards that enter, one below the other.
fn join_field(context: &PromptContext, world: &MacroEnvironment, field: &CardFieldSpec) -> String {
    let all = expand_field(context, world, field).into_iter();
    all.map(|(_, text)| text).collect::<Vec<_>>().join("\n")
}

/// One field of each card that enters, if it says anything.
fn expand_field(
    context: &PromptContext,
    world: &MacroEnvironment,
    field: &CardFieldSpec,
) -> Vec<(Bindings, String)> {
    let all = included_members(context).into_iter();
    all.filter_map(|owner| {
        let own = member_bindings(context, owner);
        let body = expand((field.text)(owner.card.as_ref()?), &own, world);
        let body = body.trim();
        (!body.is_empty()).then(|| {
            let text = add_affixes(context, world, field, &own, body);
            (own, text)
        })
    })
    .collect()
}

/// A field between what the space wants around it. Examples keep their mark in front of it all:
/// several cards' are told apart by it, so none may be missing.
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

/// The speaker's card always has its say; in a mode that joins, those of all who take part too.
fn depth_prompts(context: &PromptContext, world: &MacroEnvironment) -> Vec<DepthText> {
    let speaker = context.character().map(|it| it.id);
    let owners = included_members(context).into_iter();
    let included =
        owners.filter(|it| Some(it.id) == speaker || it.participation == Participation::Active);
    let depths = included.filter_map(|owner| {
        let mut prompt = owner.card.as_ref()?.depth_prompt()?;
        let own = member_bindings(context, owner);
        prompt.prompt = expand(&prompt.prompt, &own, world).trim().to_owned();
        let owner = owner.name.clone();
        (!prompt.prompt.is_empty()).then_some(DepthText { owner, prompt })
    });
    depths.collect()
}

/// What the macros mean in the card of `owner`.
fn member_bindings(context: &PromptContext, owner: &PromptMember) -> Bindings {
    let text = |of: fn(&Card) -> &str| owner.card.as_ref().map_or("", of);
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

/// What the names mean while the speaker of this context speaks.
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

/// Everybody who is here but this one.
fn other_members<'a>(
    context: &'a PromptContext,
    one: Option<&PromptMember>,
) -> impl Iterator<Item = &'a PromptMember> + use<'a> {
    let one = one.map(|it| it.id);
    let here = context.members.iter();
    here.filter(move |it| it.status == MembershipStatus::Active && Some(it.id) != one)
}

/// Display names, separated by commas; `nobody` when there are none.
fn join_names<'a>(members: impl Iterator<Item = &'a PromptMember>, fallback: &str) -> String {
    let names: Vec<&str> = members.map(|it| it.name.as_str()).collect();
    match names.is_empty() {
        true => fallback.to_owned(),
        false => names.join(", "),
    }
}
