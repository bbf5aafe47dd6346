//! Converts the active members of a space to candidates for speaker selection: its characters, and its
//! people where they take turns.

use std::collections::HashMap;

use base::ids::{CharacterId, MembershipId};

use crate::spaces::membership;
use crate::spaces::membership::{MembershipKind, MembershipStatus};
use crate::speakers::selection::Candidate;

/// Used when neither the membership nor the card sets a talkativeness.
const DEFAULT_TALKATIVENESS: f64 = 0.5;

/// Returns a candidate for each active character membership, muted ones included, in the given
/// order. `talkativeness` holds the values of the cards.
pub fn candidates(
    memberships: &[membership::Model],
    talkativeness: &HashMap<CharacterId, f64>,
) -> Vec<Candidate> {
    let is_here = |it: &&membership::Model| {
        it.kind == MembershipKind::Character && it.status == MembershipStatus::Active
    };
    let candidate = |it: &membership::Model| Candidate {
        id: it.id,
        is_person: false,
        position: it.position,
        names: names(it),
        talkativeness: talkativeness_of(it, talkativeness),
        is_schedulable: it.can_be_scheduled(),
    };
    memberships.iter().filter(is_here).map(candidate).collect()
}

/// Returns a candidate for each active person, in the given order. Those who cannot take a turn, and
/// `excluded`, cannot be selected.
pub fn people(memberships: &[membership::Model], excluded: Option<MembershipId>) -> Vec<Candidate> {
    let is_here = |it: &&membership::Model| {
        it.kind == MembershipKind::Human && it.status == MembershipStatus::Active
    };
    let candidate = |it: &membership::Model| Candidate {
        id: it.id,
        is_person: true,
        position: it.position,
        names: names(it),
        talkativeness: 0.0,
        is_schedulable: it.can_take_turn() && Some(it.id) != excluded,
    };
    memberships.iter().filter(is_here).map(candidate).collect()
}

fn names(membership: &membership::Model) -> Vec<String> {
    let name = std::iter::once(membership.cached_display_name.clone());
    name.chain(membership.alias_list()).collect()
}

fn talkativeness_of(membership: &membership::Model, of_cards: &HashMap<CharacterId, f64>) -> f64 {
    let of_card = membership.character_id.and_then(|it| of_cards.get(&it));
    let stated = membership.talkativeness.or(of_card.copied());
    stated.unwrap_or(DEFAULT_TALKATIVENESS)
}
