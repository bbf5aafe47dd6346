//! Whose cards enter a prompt, and how several become one text.
//!
//! **Invariant:** `{{char}}` in a card means whoever the card is of, whoever speaks.

use crate::characters::card::Card;
use crate::characters::card::DepthPrompt;
use crate::ids::CharacterId;
use crate::prompt::context::Context;
use crate::prompt::context::Member;
use crate::prompt::macros::bindings::Bindings;
use crate::prompt::macros::bindings::BoundText;
use crate::prompt::macros::environment::MacroEnvironment;
use crate::prompt::macros::expansion::expand;
use crate::spaces::membership::MembershipKind;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership::Participation;
use crate::spaces::space::CardHandlingMode;

/// In a prefix or suffix: the name of the field it stands around.
const FIELD_NAME: &str = "<FIELDNAME>";
/// Begins a block of example messages.
pub const EXAMPLE_MARK: &str = "<START>";

/// A field that several cards may fill.
struct Part {
    /// As people know it.
    name: &'static str,
    of: fn(&Card) -> &str,
}

const DESCRIPTION: Part = Part {
    name: "Description",
    of: Card::description,
};
const PERSONALITY: Part = Part {
    name: "Personality",
    of: Card::personality,
};
const SCENARIO: Part = Part {
    name: "Scenario",
    of: Card::scenario,
};
const EXAMPLES: Part = Part {
    name: "Example Messages",
    of: Card::mes_example,
};

/// The cards of a prompt, read: their macros are run.
pub struct Cards {
    /// What the macros mean while the speaker speaks.
    pub meanings: Bindings,
    /// Each personality by itself, with what the macros mean for its owner.
    pub personalities: Vec<(Bindings, String)>,
    /// What each card wants inside the history.
    pub depth_prompts: Vec<Depth>,
}

/// Text that a card wants inside the history, its macros run.
pub struct Depth {
    /// The display name of the character of this card.
    pub owner: String,
    pub prompt: DepthPrompt,
}

/// Reads the cards of a context.
pub fn read(context: &Context, world: &MacroEnvironment) -> Cards {
    let names = names(context);
    let description = joined(context, world, &DESCRIPTION);
    let personalities = each(context, world, &PERSONALITY);
    let scenario = match context.scenario_override.as_deref().map(str::trim) {
        None | Some("") => joined(context, world, &SCENARIO),
        Some(instead) => world.without_variables(|| expand(instead, &names, world)),
    };
    let examples = joined(context, world, &EXAMPLES);
    let persona = world.without_variables(|| expand(&context.user.persona, &names, world));
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
    Cards {
        meanings,
        personalities,
        depth_prompts: depth_prompts(context, world),
    }
}

/// The characters whose cards enter, by position.
pub fn entered(context: &Context) -> Vec<CharacterId> {
    let owners = owners(context).into_iter();
    owners.filter_map(|it| it.character).collect()
}

/// Whose cards enter, by position. Who is muted may still be made to speak, and then knows itself.
fn owners(context: &Context) -> Vec<&Member> {
    let Some(speaker) = context.character() else {
        return Vec::new();
    };
    let enters = |it: &&Member| match context.card_handling {
        CardHandlingMode::Swap => false,
        CardHandlingMode::Append => it.participation == Participation::Active,
        CardHandlingMode::AppendDisabled => true,
    };
    let all = context.cast.iter();
    all.filter(|it| it.id == speaker.id || it.is_character() && enters(it))
        .collect()
}

/// One field of all cards that enter, one below the other.
fn joined(context: &Context, world: &MacroEnvironment, part: &Part) -> String {
    let all = each(context, world, part).into_iter();
    all.map(|(_, text)| text).collect::<Vec<_>>().join("\n")
}

/// One field of each card that enters, if it says anything.
fn each(context: &Context, world: &MacroEnvironment, part: &Part) -> Vec<(Bindings, String)> {
    let all = owners(context).into_iter();
    all.filter_map(|owner| {
        let own = meanings_of(context, owner);
        let body = expand((part.of)(owner.card.as_ref()?), &own, world);
        let body = body.trim();
        (!body.is_empty()).then(|| {
            let text = between_affixes(context, world, part, &own, body);
            (own, text)
        })
    })
    .collect()
}

/// A field between what the space wants around it. Examples keep their mark in front of it all:
/// several cards' are told apart by it, so none may be missing.
fn between_affixes(
    context: &Context,
    world: &MacroEnvironment,
    part: &Part,
    own: &Bindings,
    body: &str,
) -> String {
    if context.card_handling == CardHandlingMode::Swap {
        return body.to_owned();
    }
    let (mark, body) = match part.name == EXAMPLES.name {
        true => (format!("{EXAMPLE_MARK}\n"), without_mark(body)),
        false => (String::new(), body),
    };
    let affix = |text: &str| expand(&text.replace(FIELD_NAME, part.name), own, world);
    let (prefix, suffix) = &context.join;
    world.without_variables(|| mark + &affix(prefix) + body + &affix(suffix))
}

fn without_mark(body: &str) -> &str {
    match body.get(..EXAMPLE_MARK.len()) {
        Some(mark) if mark.eq_ignore_ascii_case(EXAMPLE_MARK) => {
            body[EXAMPLE_MARK.len()..].trim_start()
        }
        _ => body,
    }
}

/// The speaker's card always has its say; in a mode that joins, those of all who take part too.
fn depth_prompts(context: &Context, world: &MacroEnvironment) -> Vec<Depth> {
    let speaker = context.character().map(|it| it.id);
    let owners = owners(context).into_iter();
    let heard =
        owners.filter(|it| Some(it.id) == speaker || it.participation == Participation::Active);
    let depths = heard.filter_map(|owner| {
        let mut prompt = owner.card.as_ref()?.depth_prompt()?;
        let own = meanings_of(context, owner);
        prompt.prompt = expand(&prompt.prompt, &own, world).trim().to_owned();
        let owner = owner.name.clone();
        (!prompt.prompt.is_empty()).then_some(Depth { owner, prompt })
    });
    depths.collect()
}

/// What the macros mean in the card of `owner`.
fn meanings_of(context: &Context, owner: &Member) -> Bindings {
    let text = |of: fn(&Card) -> &str| owner.card.as_ref().map_or("", of);
    let others = listed(others(context, Some(owner)), &context.user.name);
    Bindings {
        character: owner.called().to_owned(),
        is_nicknamed: owner.called() != owner.name,
        not_character: others,
        persona: context.user.persona.as_str().into(),
        description: text(Card::description).into(),
        personality: text(Card::personality).into(),
        scenario: text(Card::scenario).into(),
        example_messages: text(Card::mes_example).into(),
        system_prompt: text(Card::system_prompt).into(),
        post_history: text(Card::post_history_instructions).into(),
        version: text(Card::character_version).to_owned(),
        ..names(context)
    }
}

/// What the names mean while the speaker of this context speaks.
fn names(context: &Context) -> Bindings {
    let character = context.character();
    let called = character.map_or(context.user.name.as_str(), Member::called);
    let not_muted = context.characters();
    let not_muted = not_muted.filter(|it| it.participation == Participation::Active);
    let people = context.cast.iter();
    let people = people
        .filter(|it| it.kind == MembershipKind::Human && it.status == MembershipStatus::Active);
    Bindings {
        character: called.to_owned(),
        is_nicknamed: character.is_some_and(|it| it.called() != it.name),
        user: context.user.name.clone(),
        users: listed(people, &context.user.name),
        group: listed(context.characters(), called),
        group_not_muted: listed(not_muted, called),
        not_character: listed(others(context, character), &context.user.name),
        ..Bindings::default()
    }
}

/// Everybody who is here but this one.
fn others<'a>(
    context: &'a Context,
    one: Option<&Member>,
) -> impl Iterator<Item = &'a Member> + use<'a> {
    let one = one.map(|it| it.id);
    let here = context.cast.iter();
    here.filter(move |it| it.status == MembershipStatus::Active && Some(it.id) != one)
}

/// Display names, separated by commas; `nobody` when there are none.
fn listed<'a>(members: impl Iterator<Item = &'a Member>, nobody: &str) -> String {
    let names: Vec<&str> = members.map(|it| it.name.as_str()).collect();
    match names.is_empty() {
        true => nobody.to_owned(),
        false => names.join(", "),
    }
}
