//! `natural`: whoever is named answers. If nobody is, the next in rotation; or, where several may
//! speak, whoever feels like it.

use crate::speakers::mention;
use crate::speakers::seeded_random::SeededRandom;
use crate::speakers::selection::{Candidate, SelectionInput, SpeakerChoice, next_in_rotation};

/// The first of `eligible` whom the newest message names, else the next after the last speaker.
pub fn select_one(input: &SelectionInput, eligible: &[&Candidate]) -> Option<SpeakerChoice> {
    if let Some(named) = mentioned(input, eligible).next() {
        return Some(named);
    }
    let next = next_in_rotation(input, eligible)?;
    Some(SpeakerChoice::new(next.id, "next in rotation"))
}

/// Those whom the newest message names, in the order of its text; then each of the others, in an
/// order that is drawn, as often as it is talkative. If that leaves nobody, one of those who ever
/// join in unasked; if there is none, anybody.
pub fn select_round(
    input: &SelectionInput,
    eligible: &[&Candidate],
    dice: &mut SeededRandom,
) -> Vec<SpeakerChoice> {
    let mut chosen: Vec<SpeakerChoice> = mentioned(input, eligible).collect();
    let is_chosen = |it: &Candidate| chosen.iter().any(|choice| choice.id == it.id);
    let mut rest: Vec<&Candidate> = eligible.to_vec();
    rest.retain(|it| !is_chosen(it));
    dice.shuffle(&mut rest);
    chosen.extend(
        rest.into_iter()
            .filter_map(|it| roll_talkativeness(it, dice)),
    );
    if chosen.is_empty() {
        chosen.extend(select_fallback(eligible, dice));
    }
    chosen
}

fn mentioned(
    input: &SelectionInput,
    eligible: &[&Candidate],
) -> impl Iterator<Item = SpeakerChoice> {
    let mentions = mention::find(&input.newest_text, &input.mentions, &input.candidates);
    mentions
        .into_iter()
        .filter(|it| eligible.iter().any(|candidate| candidate.id == it.id))
        .map(|it| SpeakerChoice::new(it.id, format!("mentioned \"{}\"", it.name)))
}

fn roll_talkativeness(candidate: &Candidate, dice: &mut SeededRandom) -> Option<SpeakerChoice> {
    let drawn = dice.unit();
    // Never equal to 1, and a draw of 0 must not wake who never joins in: so less, not equal.
    (drawn < candidate.talkativeness).then(|| {
        let because = format!("drew {drawn:.2} ≤ {:.2}", candidate.talkativeness);
        SpeakerChoice::new(candidate.id, because)
    })
}

fn select_fallback(eligible: &[&Candidate], dice: &mut SeededRandom) -> Option<SpeakerChoice> {
    let talkers = eligible.iter().copied();
    let talkers: Vec<&Candidate> = talkers.filter(|it| it.talkativeness > 0.0).collect();
    let drawn = dice.choose(&talkers).or_else(|| dice.choose(eligible))?;
    Some(SpeakerChoice::new(drawn.id, "drawn at random"))
}
