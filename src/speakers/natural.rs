//! `natural`: whoever is named answers; if nobody is, the next in rotation.

use crate::speakers::candidates::Candidate;
use crate::speakers::candidates::Choice;
use crate::speakers::candidates::Scene;
use crate::speakers::candidates::next_in_circle;
use crate::speakers::mention;

/// The first of `eligible` whom the newest message names, else the next after the last speaker.
pub fn choose(scene: &Scene, eligible: &[&Candidate]) -> Option<Choice> {
    let mentions = mention::find(&scene.newest_text, &scene.mentions, &scene.candidates);
    let named = mentions
        .into_iter()
        .find(|it| eligible.iter().any(|candidate| candidate.id == it.id));
    if let Some(named) = named {
        return Some(Choice::new(
            named.id,
            format!("mentioned \"{}\"", named.name),
        ));
    }
    let next = next_in_circle(scene, eligible)?;
    Some(Choice::new(next.id, "next in rotation"))
}
