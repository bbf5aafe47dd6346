//! Defines the input and result types of speaker selection, and two functions that the reply orders
//! share: which candidates are eligible, and which is next in rotation. No I/O.
//!
//! The caller loads the input.

use std::collections::HashSet;

use base::ids::MembershipId;

/// A member that may be selected or mentioned: a character, or a person who takes turns.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its membership. Candidates are identified by this id, never by name.
    pub id: MembershipId,
    /// Whether it is a person, whom `natural` selects only if a message mentions them.
    pub is_person: bool,
    /// Position in the roster; equal positions are ordered by id.
    pub position: i64,
    /// The display name first, then the aliases.
    pub names: Vec<String>,
    /// Probability of replying without being mentioned, 0.0 to 1.0.
    pub talkativeness: f64,
    /// `false` for a muted character and for a person who cannot take a turn: never selected, but the name
    /// still claims its matches in a text.
    pub is_schedulable: bool,
}

/// What triggers the selection of a speaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectionTrigger {
    /// A message written by or on behalf of a user.
    Human,
    /// Auto mode: a character has spoken and another may follow.
    Auto,
    /// A user requested a reply without naming a speaker.
    Generate,
}

/// The facts of a conversation on which the choice of the next speaker depends.
#[derive(Clone, Debug, Default)]
pub struct SelectionInput {
    /// The active characters of the space, muted ones included, and the people if they take turns, in any
    /// order.
    pub candidates: Vec<Candidate>,
    /// The author of the newest assistant message that is not hidden. A greeting counts.
    pub last_speaker: Option<MembershipId>,
    /// The author of the newest message that is not hidden, human or character.
    pub newest_author: Option<MembershipId>,
    /// The text of that message; empty if there is none.
    pub newest_text: String,
    /// Members that this message mentions by id, in the given order.
    pub mentions: Vec<MembershipId>,
    /// Members that have spoken since the newest message of role `user`.
    pub speakers_since_last_user_message: HashSet<MembershipId>,
    /// Whether a character may speak twice in a row without a user message in between.
    pub allow_self_responses: bool,
}

/// A selected speaker, and the reason that is shown to users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeakerChoice {
    /// The membership that speaks.
    pub id: MembershipId,
    /// The reason as users read it: `mentioned "Bob"`, `next by position`.
    pub reason: String,
    /// Whether a user forced the choice: the member then speaks even if it is muted.
    pub is_forced: bool,
}

impl SpeakerChoice {
    /// Creates a choice that is not forced.
    pub fn new(id: MembershipId, reason: impl Into<String>) -> Self {
        Self {
            id,
            reason: reason.into(),
            is_forced: false,
        }
    }

    /// Creates a choice forced by the user named `by`.
    pub fn forced(id: MembershipId, by: &str) -> Self {
        Self {
            is_forced: true,
            ..Self::new(id, format!("forced by {by}"))
        }
    }
}

/// Returns the schedulable candidates without `excluded`, in roster order.
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

/// Returns the member of `eligible` (in roster order) after the last speaker, wrapping around.
///
/// A muted last speaker keeps its position in the rotation; if the last speaker has left, the
/// rotation starts from the first.
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
