//! Selects who replies to a message, or who speaks when a reply is forced: builds the input of
//! `speakers::selector` from the conversation's state and calls it.

use base::ids::MembershipId;
use tavern::seeded_random::SeededRandom;

use crate::runs::scheduling::director;
use crate::runs::scheduling::plan::NewSlot;
use crate::runs::scheduling::plan_builder::PlanBuilder;
use crate::runs::store::run;
use crate::spaces::membership::MembershipKind;
use crate::spaces::space::{RepliesPerTurn, ReplyOrder};
use crate::speakers::selection::{SelectionInput, SelectionTrigger, SpeakerChoice};
use crate::speakers::{from_memberships, selector};

/// A message that may trigger replies.
#[derive(Clone, Copy, Debug)]
pub struct TriggerMessage<'a> {
    pub author: MembershipId,
    pub text: &'a str,
    /// Memberships mentioned by id, in addition to names in the text.
    pub mentions: &'a [MembershipId],
}

/// Who gets slots in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnTakers {
    /// The characters, and the people where they take turns.
    All,
    Characters,
}

/// Returns who replies to a message of role user, in order. Its author gets no turn.
pub fn after_user_message(
    builder: &PlanBuilder,
    trigger_message: &TriggerMessage,
    turn_takers: TurnTakers,
) -> Vec<NewSlot> {
    let mut input = trigger_input(builder, trigger_message);
    if turn_takers == TurnTakers::All && builder.people_take_turns(builder.audience.as_ref()) {
        add_people(builder, &mut input);
    }
    // The message starts a new epoch, in which no character has spoken.
    input.speakers_since_last_user_message.clear();
    choose_speakers(builder, SelectionTrigger::Human, &input)
}

/// Returns who replies to the message of a character, in auto mode.
pub fn after_ai_message(builder: &PlanBuilder, trigger_message: &TriggerMessage) -> Vec<NewSlot> {
    let mut input = trigger_input(builder, trigger_message);
    input.last_speaker = Some(trigger_message.author);
    input
        .speakers_since_last_user_message
        .insert(trigger_message.author);
    choose_speakers(builder, SelectionTrigger::Auto, &input)
}

/// Returns who speaks when a reply is forced without naming a speaker. Reads the newest message that all
/// who see the reply see, so that the choice reveals nothing of a whisper.
pub fn for_force_talk(builder: &PlanBuilder) -> Option<NewSlot> {
    let newest = builder.seen_tail();
    let input = SelectionInput {
        newest_author: newest.map(|it| it.space_membership_id),
        newest_text: newest.map(|it| it.content.clone()).unwrap_or_default(),
        ..conversation_input(builder)
    };
    let trigger = SelectionTrigger::Generate;
    if builder.state.space.reply_order == ReplyOrder::Director {
        let slots = director::slots::plan(RepliesPerTurn::One, trigger, &input);
        return slots.into_iter().next();
    }
    choose_speaker(builder, trigger, &input).map(NewSlot::from)
}

fn choose_speakers(
    builder: &PlanBuilder,
    trigger: SelectionTrigger,
    input: &SelectionInput,
) -> Vec<NewSlot> {
    let order = builder.state.space.reply_order;
    let replies = builder.state.space.replies_per_turn;
    if order == ReplyOrder::Director {
        return director::slots::plan(replies, trigger, input);
    }
    let chosen: Vec<SpeakerChoice> = match replies {
        RepliesPerTurn::One => choose_speaker(builder, trigger, input)
            .into_iter()
            .collect(),
        RepliesPerTurn::Activated => selector::select_round(
            order,
            trigger,
            input,
            &mut SeededRandom::from_seed(builder.ids.seed),
        ),
    };
    chosen.into_iter().map(NewSlot::from).collect()
}

fn choose_speaker(
    builder: &PlanBuilder,
    trigger: SelectionTrigger,
    input: &SelectionInput,
) -> Option<SpeakerChoice> {
    let mut dice = SeededRandom::from_seed(builder.ids.seed);
    selector::select_one(builder.state.space.reply_order, trigger, input, &mut dice)
}

fn trigger_input(builder: &PlanBuilder, trigger_message: &TriggerMessage) -> SelectionInput {
    SelectionInput {
        newest_author: Some(trigger_message.author),
        newest_text: trigger_message.text.to_owned(),
        mentions: trigger_message.mentions.to_vec(),
        ..conversation_input(builder)
    }
}

/// Adds the people to the candidates. In the order `list` the turn passes from the author of the newest
/// message, who may be a person.
fn add_people(builder: &PlanBuilder, input: &mut SelectionInput) {
    let people = from_memberships::people(&builder.state.members, input.newest_author);
    input.candidates.extend(people);
    let tail = builder.state.tail.as_ref();
    if let Some(tail) = tail.filter(|_| builder.state.space.reply_order == ReplyOrder::List) {
        input.last_speaker = Some(tail.space_membership_id);
    }
}

fn conversation_input(builder: &PlanBuilder) -> SelectionInput {
    SelectionInput {
        candidates: builder.state.candidates_for(builder.audience.as_ref()),
        last_speaker: builder.state.last_speaker,
        speakers_since_last_user_message: builder.state.spoken_in_epoch.clone(),
        allow_self_responses: builder.state.space.allow_self_responses,
        ..SelectionInput::default()
    }
}

/// Returns the forced speaker, then the chosen ones without that speaker. If the director has not chosen
/// the forced speaker yet, the first chosen character is forced instead; if only people are chosen, the
/// director chooses the forced speaker. A person is never forced.
pub fn with_forced_first(
    builder: &PlanBuilder,
    forced: &run::Model,
    mut chosen: Vec<NewSlot>,
) -> Vec<NewSlot> {
    let first = if let Some(speaker) = forced.speaker_space_membership_id {
        chosen.retain(|it| it.speaker != Some(speaker));
        NewSlot {
            speaker: Some(speaker),
            reason: forced.debug.chosen_because.clone().unwrap_or_default(),
            is_forced: true,
        }
    } else if chosen.is_empty() {
        return chosen;
    } else {
        let of_character = chosen.iter().position(|it| !is_person(builder, it));
        let slot = of_character.map_or_else(director::slots::undecided, |it| chosen.remove(it));
        NewSlot {
            is_forced: true,
            ..slot
        }
    };
    chosen.insert(0, first);
    chosen
}

fn is_person(builder: &PlanBuilder, slot: &NewSlot) -> bool {
    let member = slot.speaker.and_then(|it| builder.member(it));
    member.is_some_and(|it| it.kind == MembershipKind::Human)
}
