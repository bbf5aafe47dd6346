//! Chooses the speakers of a space that is requested as a model, from the items of the history and
//! the input. No I/O.
//!
//! The `metadata` of an item names its speaker. Clients send items back, possibly changed, so it
//! counts only if it refers to an existing membership.

use base::ids::MembershipId;
use responses_api::request::items::item_view::{ItemContent, ItemView, MessageRole};
use serde_json::{Value, json};
use tavern::seeded_random::SeededRandom;

use crate::responses::persona_models::model_names;
use crate::spaces::space::RepliesPerTurn;
use crate::spaces::{membership, space};
use crate::speakers::selection::{Candidate, SelectionInput, SelectionTrigger, SpeakerChoice};
use crate::speakers::selector;

/// Longer speaker names in items are truncated.
const MAX_NAME_CHARS: usize = 100;

/// A requested space, with everything that the choice of its speakers needs.
#[derive(Clone, Debug)]
pub struct SpaceRequest<'a> {
    pub space: &'a space::Model,
    /// The active memberships, in roster order.
    pub memberships: &'a [membership::Model],
    pub candidates: Vec<Candidate>,
    /// The membership of the requester.
    pub requester_id: MembershipId,
}

/// Returns the metadata for the items of a speaker.
pub fn speaker_metadata(membership: &membership::Model, because: &str) -> Value {
    json!({
        "speaker": membership.cached_display_name,
        "speaker_id": membership.character_id.map(model_names::format),
        "membership_id": membership.id,
        "chosen_because": because,
    })
}

/// Returns the speaker's name of an item, if it has one.
pub fn speaker_name(item: &ItemView) -> Option<String> {
    let name = item.metadata?.get("speaker")?.as_str()?.trim();
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    (!name.is_empty()).then_some(name)
}

/// Chooses the speakers that answer these items, in order; empty if no character can speak.
pub fn choose(
    request: &SpaceRequest<'_>,
    items: &[&Value],
    dice: &mut SeededRandom,
) -> Vec<SpeakerChoice> {
    let items: Vec<ItemView> = items.iter().map(|it| ItemView::of(it)).collect();
    let items = items.as_slice();
    if let Some(continuing) = continuing_speaker(request, items) {
        return vec![continuing];
    }
    let (input, order) = (selection_input(request, items), request.space.reply_order);
    let mut chosen = match request.space.replies_per_turn {
        RepliesPerTurn::One => {
            let one = selector::select_one(order, SelectionTrigger::Human, &input, dice);
            one.into_iter().collect()
        }
        RepliesPerTurn::Activated => {
            selector::select_round(order, SelectionTrigger::Human, &input, dice)
        }
    };
    if chosen.is_empty() {
        chosen.extend(selector::select_one(
            order,
            SelectionTrigger::Generate,
            &input,
            dice,
        ));
    }
    chosen
}

/// Returns the speaker that called a tool if the newest item is its output: that speaker continues.
fn continuing_speaker(request: &SpaceRequest<'_>, items: &[ItemView]) -> Option<SpeakerChoice> {
    let newest = items.iter().rposition(|it| !is_silent(it))?;
    if !is_output(&items[newest]) {
        return None;
    }
    let before = items[..newest].iter().rev();
    let mut spoken = before.take_while(|it| !is_by_user(it));
    let last = spoken.find(|it| membership_of(request, it).is_some())?;
    let membership = membership_of(request, last)?;
    let candidates = &request.candidates;
    let may_speak = candidates
        .iter()
        .any(|it| it.id == membership && it.is_schedulable);
    let because = last.metadata.and_then(|it| it.get("chosen_because"));
    let because = because.and_then(Value::as_str);
    let because: String = because.unwrap_or("continues").chars().take(200).collect();
    may_speak.then(|| SpeakerChoice::new(membership, because))
}

fn selection_input(request: &SpaceRequest<'_>, items: &[ItemView]) -> SelectionInput {
    let trigger = items.iter().rposition(|it| is_by_user(it));
    let of = |item: &ItemView| membership_of(request, item);
    let is_speech = |it: &&ItemView| is_by_user(it) || role(it) == Some(MessageRole::Assistant);
    let newest = items.iter().rev().find(is_speech);
    let newest_author = newest.and_then(|it| match is_by_user(it) {
        true => Some(request.requester_id),
        false => of(it),
    });
    let epoch = trigger.map_or(items, |at| &items[at + 1..]);
    SelectionInput {
        candidates: request.candidates.clone(),
        last_speaker: items.iter().rev().find_map(of),
        newest_author,
        newest_text: trigger.map_or_else(String::new, |at| text(&items[at])),
        mentions: Vec::new(),
        speakers_since_last_user_message: epoch.iter().filter_map(of).collect(),
        allow_self_responses: request.space.allow_self_responses,
    }
}

/// Returns the membership that wrote a model-side item: by its id, else by its character.
fn membership_of(request: &SpaceRequest<'_>, item: &ItemView) -> Option<MembershipId> {
    if is_by_user(item) {
        return None;
    }
    let metadata = item.metadata?;
    let number = metadata.get("membership_id").and_then(Value::as_i64);
    let id = metadata.get("speaker_id").and_then(Value::as_str);
    let character = |it: &membership::Model| it.character_id.map(model_names::format);
    let mut memberships = request.memberships.iter();
    let by_number = memberships.find(|it| Some(it.id.0) == number && it.character_id.is_some());
    let by_character = || {
        let mut memberships = request.memberships.iter();
        memberships.find(|it| id.is_some() && character(it).as_deref() == id)
    };
    by_number.or_else(by_character).map(|it| it.id)
}

/// Returns whether an item belongs to no speaker: system messages and reasoning.
fn is_silent(item: &ItemView) -> bool {
    let is_system = matches!(
        role(item),
        Some(MessageRole::System | MessageRole::Developer)
    );
    is_system || matches!(item.content, ItemContent::Reasoning(_))
}

fn is_by_user(item: &ItemView) -> bool {
    role(item) == Some(MessageRole::User)
}

/// Returns the author of a message.
fn role(item: &ItemView) -> Option<MessageRole> {
    match &item.content {
        ItemContent::Message(message) => Some(message.role),
        _ => None,
    }
}

fn is_output(item: &ItemView) -> bool {
    matches!(
        item.content,
        ItemContent::Output(_) | ItemContent::ApprovalResponse(_)
    )
}

fn text(item: &ItemView) -> String {
    match &item.content {
        ItemContent::Message(message) => message.text(),
        _ => String::new(),
    }
}

#[cfg(test)]
#[path = "speaker_selection_tests.rs"]
mod tests;
