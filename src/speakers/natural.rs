//! `natural`: whoever is named answers. If nobody is, the next in rotation; or, where several may
//! speak, whoever feels like it.

use crate::speakers::candidates::Candidate;
use crate::speakers::candidates::Choice;
use crate::speakers::candidates::Scene;
use crate::speakers::candidates::next_in_circle;
use crate::speakers::mention;
use crate::speakers::seeded_random::SeededRandom;

/// The first of `eligible` whom the newest message names, else the next after the last speaker.
pub fn choose(scene: &Scene, eligible: &[&Candidate]) -> Option<Choice> {
    if let Some(named) = mentioned(scene, eligible).next() {
        return Some(named);
    }
    let next = next_in_circle(scene, eligible)?;
    Some(Choice::new(next.id, "next in rotation"))
}

/// Those whom the newest message names, in the order of its text; then each of the others, in an
/// order that is drawn, as often as it is talkative. If that leaves nobody, one of those who ever
/// join in unasked; if there is none, anybody.
pub fn activate(scene: &Scene, eligible: &[&Candidate], dice: &mut SeededRandom) -> Vec<Choice> {
    let mut chosen: Vec<Choice> = mentioned(scene, eligible).collect();
    let is_chosen = |it: &Candidate| chosen.iter().any(|choice| choice.id == it.id);
    let mut rest: Vec<&Candidate> = eligible.to_vec();
    rest.retain(|it| !is_chosen(it));
    dice.shuffle(&mut rest);
    chosen.extend(rest.into_iter().filter_map(|it| joins_in(it, dice)));
    if chosen.is_empty() {
        chosen.extend(breaks_the_silence(eligible, dice));
    }
    chosen
}

fn mentioned(scene: &Scene, eligible: &[&Candidate]) -> impl Iterator<Item = Choice> {
    let mentions = mention::find(&scene.newest_text, &scene.mentions, &scene.candidates);
    mentions
        .into_iter()
        .filter(|it| eligible.iter().any(|candidate| candidate.id == it.id))
        .map(|it| Choice::new(it.id, format!("mentioned \"{}\"", it.name)))
}

fn joins_in(it: &Candidate, dice: &mut SeededRandom) -> Option<Choice> {
    let drawn = dice.unit();
    // Never equal to 1, and a draw of 0 must not wake who never joins in: so less, not equal.
    (drawn < it.talkativeness).then(|| {
        let because = format!("drew {drawn:.2} ≤ {:.2}", it.talkativeness);
        Choice::new(it.id, because)
    })
}

fn breaks_the_silence(eligible: &[&Candidate], dice: &mut SeededRandom) -> Option<Choice> {
    let talkers = eligible.iter().copied();
    let talkers: Vec<&Candidate> = talkers.filter(|it| it.talkativeness > 0.0).collect();
    let drawn = dice.choose(&talkers).or_else(|| dice.choose(eligible))?;
    Some(Choice::new(drawn.id, "drawn at random"))
}
