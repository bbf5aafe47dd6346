//! Returns the values of the macros for names, fields of cards and texts of the preset. No I/O.

use tavern::cards::card::Card;
use tavern::macros::bindings::{Bindings, BoundText};
use tavern::presets::complete_preset::PromptSlot;

use crate::prompt::context::{PromptContext, PromptMember};
use crate::spaces::membership::{MembershipKind, MembershipStatus, Participation};

/// Returns the macro values in the card of `owner`. Text of the card is not expanded.
pub fn member_bindings(context: &PromptContext, owner: &PromptMember) -> Bindings {
    let text = |of: fn(&Card) -> &str| owner.card.as_deref().map_or("", of);
    let others = join_names(other_members(context, Some(owner)), &context.user.name);
    Bindings {
        character: owner.display_name().to_owned(),
        is_nicknamed: owner.display_name() != owner.name,
        not_character: others,
        persona: BoundText::OfPerson(context.user.persona.clone()),
        description: text(Card::description).into(),
        personality: text(Card::personality).into(),
        scenario: text(Card::scenario).into(),
        example_messages: text(Card::mes_example).into(),
        ..card_bindings(context, owner.card.as_deref())
    }
}

/// Returns the values of the macros for the speaker of this context, without the fields of cards that
/// several cards may share.
pub fn speaker_bindings(context: &PromptContext) -> Bindings {
    let card = context.character().and_then(|it| it.card.as_deref());
    card_bindings(context, card)
}

/// Returns the macro values that one card has alone.
fn card_bindings(context: &PromptContext, card: Option<&Card>) -> Bindings {
    let text = |of: fn(&Card) -> &str| card.map_or("", of);
    let depth_prompt = card.and_then(Card::depth_prompt);
    Bindings {
        system_prompt: text(Card::system_prompt).into(),
        post_history: text(Card::post_history_instructions).into(),
        depth_prompt: depth_prompt.map_or_else(String::new, |it| it.prompt).into(),
        creator_notes: text(Card::creator_notes).into(),
        greetings: card.map(greetings).unwrap_or_default(),
        version: text(Card::character_version).to_owned(),
        ..prompt_bindings(context)
    }
}

/// Returns the first message of a card and its alternate greetings.
pub fn greetings(card: &Card) -> Vec<String> {
    let alternates = card.alternate_greetings().into_iter();
    let all = std::iter::once(card.first_mes()).chain(alternates);
    all.map(str::to_owned).collect()
}

/// Returns the values of the macros for names, and for the texts of the preset and the author's note.
fn prompt_bindings(context: &PromptContext) -> Bindings {
    let main = context.preset.entry(PromptSlot::Main);
    let (main, own) = (
        main.map_or("", |it| it.text.as_str()),
        main_override(context),
    );
    let note = &context.note;
    Bindings {
        main_prompt: match own {
            Some(own) => own.replace("{{original}}", main).into(),
            None => main.into(),
        },
        preset_main_prompt: main.into(),
        authors_note: BoundText::OfPerson(note.text.clone()),
        speaker_note: BoundText::OfPerson(note.speaker_text.clone()),
        space_note: BoundText::OfPerson(note.space_text.clone()),
        ..name_bindings(context)
    }
}

/// Returns the main prompt of the speaker's card, if it replaces that of the preset.
fn main_override(context: &PromptContext) -> Option<&str> {
    let entry = context.preset.entry(PromptSlot::Main);
    let card = context.find_speaker().and_then(|it| it.card.as_deref())?;
    let own = Some(card.system_prompt()).filter(|it| !it.trim().is_empty());
    own.filter(|_| !entry.is_some_and(|it| it.forbid_overrides))
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
