//! Implements the reply order `natural`: mentioned members speak first. [`select_one`] otherwise
//! returns the next in rotation; [`select_round`] adds others at random, by their talkativeness.

use tavern::seeded_random::SeededRandom;

use crate::speakers::mention;
use crate::speakers::selection::{Candidate, SelectionInput, SpeakerChoice, next_in_rotation};

/// Returns the first of `eligible` that the newest message mentions, else the member after the last
/// speaker.
pub fn select_one(input: &SelectionInput, eligible: &[&Candidate]) -> Option<SpeakerChoice> {
    if let Some(named) = mentioned(input, eligible).next() {
        return Some(named);
    }
    let next = next_in_rotation(input, &characters(eligible))?;
    Some(SpeakerChoice::new(next.id, "next in rotation"))
}

/// Returns the members that the newest message mentions, in text order, then each of the others, in
/// random order, with a probability equal to its talkativeness. If none is selected, returns a
/// random member with talkativeness above 0, or any member if there is none.
pub fn select_round(
    input: &SelectionInput,
    eligible: &[&Candidate],
    dice: &mut SeededRandom,
) -> Vec<SpeakerChoice> {
    let mut chosen: Vec<SpeakerChoice> = mentioned(input, eligible).collect();
    let is_chosen = |it: &Candidate| chosen.iter().any(|choice| choice.id == it.id);
    let mut rest = characters(eligible);
    rest.retain(|it| !is_chosen(it));
    dice.shuffle(&mut rest);
    chosen.extend(
        rest.into_iter()
            .filter_map(|it| roll_talkativeness(it, dice)),
    );
    if chosen.is_empty() {
        chosen.extend(select_fallback(&characters(eligible), dice));
    }
    chosen
}

/// Returns those that are selected without a mention: people are not.
pub fn characters<'a>(eligible: &[&'a Candidate]) -> Vec<&'a Candidate> {
    let all = eligible.iter().copied();
    all.filter(|it| !it.is_person).collect()
}

/// Returns those of `eligible` that the newest message mentions, in text order.
pub fn mentioned(
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
    // `drawn` is never 1, so talkativeness 1 always passes; a draw of 0 must not pass at
    // talkativeness 0, therefore `<` and not `≤`.
    (drawn < candidate.talkativeness).then(|| {
        let because = format!("drew {drawn:.2} ≤ {:.2}", candidate.talkativeness);
        SpeakerChoice::new(candidate.id, because)
    })
}

fn select_fallback(eligible: &[&Candidate], dice: &mut SeededRandom) -> Option<SpeakerChoice> {
    let talkative = eligible.iter().copied();
    let talkative: Vec<&Candidate> = talkative.filter(|it| it.talkativeness > 0.0).collect();
    let drawn = dice.choose(&talkative).or_else(|| dice.choose(eligible))?;
    Some(SpeakerChoice::new(drawn.id, "drawn at random"))
}
