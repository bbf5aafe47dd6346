//! The facts a choice of speaker needs, and what a choice is.
//!
//! Whoever decides loads these once and hands them in; nothing here reads or writes.

use std::collections::HashSet;

use crate::ids::MembershipId;

/// A character that has a seat and may be called.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its seat. Everything is matched by this, never by name.
    pub id: MembershipId,
    /// Its place in the roster; equal places are ordered by id.
    pub position: i64,
    /// What it answers to: the display name first, then the aliases.
    pub names: Vec<String>,
    /// How readily it joins in unasked, 0.0 to 1.0.
    pub talkativeness: f64,
    /// `false` for a muted one: never chosen, but known, so that its name is nobody else's.
    pub is_schedulable: bool,
}

/// One moment of a conversation, as far as it matters for who speaks next.
#[derive(Clone, Debug, Default)]
pub struct SelectionInput {
    /// The characters of the space, muted ones too, in any order.
    pub candidates: Vec<Candidate>,
    /// The author of the newest assistant message that is not hidden. A greeting counts.
    pub last_speaker: Option<MembershipId>,
    /// The author of the newest message that is not hidden, whoever it is.
    pub newest_author: Option<MembershipId>,
    /// The text of that message; empty when there is none.
    pub newest_text: String,
    /// Whom that message names by id beside its text, in the order given.
    pub mentions: Vec<MembershipId>,
    /// Who has spoken since the newest message of role user.
    pub speakers_since_last_user_message: HashSet<MembershipId>,
    /// May one AI speak twice in a row without a human between?
    pub allow_self_responses: bool,
}

/// Who speaks, and why: the reason is shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeakerChoice {
    /// The seat that speaks.
    pub id: MembershipId,
    /// The reason, as a person reads it: `mentioned "Bob"`, `next by position`.
    pub reason: String,
    /// A person forced it: the member may speak although it is muted.
    pub is_forced: bool,
}

impl SpeakerChoice {
    /// A choice with its reason.
    pub fn new(id: MembershipId, reason: impl Into<String>) -> Self {
        Self {
            id,
            reason: reason.into(),
            is_forced: false,
        }
    }

    /// Somebody was made to speak by the person named `by`.
    pub fn forced(id: MembershipId, by: &str) -> Self {
        Self {
            is_forced: true,
            ..Self::new(id, format!("forced by {by}"))
        }
    }
}

/// The candidates that may be chosen, without the one who is `barred`, in the order of the roster.
pub fn eligible_candidates(
    candidates: &[Candidate],
    excluded: Option<MembershipId>,
) -> Vec<&Candidate> {
    let mut eligible: Vec<&Candidate> = candidates
        .iter()
        .filter(|it| it.is_schedulable && Some(it.id) != excluded)
        .collect();
    eligible.sort_by_key(|it| (it.position, it.id));
    eligible
}

/// The one of `eligible` (in roster order) who comes after the last speaker, wrapping.
///
/// A muted last speaker keeps its place in the circle; one who has left has none, and the circle
/// begins anew.
pub fn next_in_rotation<'a>(
    input: &SelectionInput,
    eligible: &[&'a Candidate],
) -> Option<&'a Candidate> {
    let last = input
        .candidates
        .iter()
        .find(|it| Some(it.id) == input.last_speaker);
    let after = last.and_then(|last| {
        eligible
            .iter()
            .find(|it| (it.position, it.id) > (last.position, last.id))
    });
    after.or(eligible.first()).copied()
}
