//! Converts the active characters among a space's memberships to candidates for speaker selection.

use std::collections::HashMap;

use base::ids::CharacterId;

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
        position: it.position,
        names: std::iter::once(it.cached_display_name.clone())
            .chain(it.alias_list())
            .collect(),
        talkativeness: talkativeness_of(it, talkativeness),
        is_schedulable: it.can_be_scheduled(),
    };
    memberships.iter().filter(is_here).map(candidate).collect()
}

fn talkativeness_of(membership: &membership::Model, of_cards: &HashMap<CharacterId, f64>) -> f64 {
    let of_card = membership.character_id.and_then(|it| of_cards.get(&it));
    let stated = membership.talkativeness.or(of_card.copied());
    stated.unwrap_or(DEFAULT_TALKATIVENESS)
}
