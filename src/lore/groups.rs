//! Inclusion groups: of the entries of one group that are awake, one enters.

use crate::lore::book::Entry;
use crate::lore::dice;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::HashSet;

/// An entry that would enter.
pub struct Candidate<'a> {
    /// Its place among all entries: lower comes first.
    pub index: usize,
    pub entry: &'a Entry,
    pub is_sticky: bool,
}

/// What the groups go by.
pub struct Rules<'a> {
    /// Groups of which an entry is in already.
    pub settled: &'a HashSet<&'a str>,
    /// How many keys of an entry are found.
    pub score: &'a dyn Fn(usize) -> usize,
    /// Does the score count where an entry does not say it?
    pub scoring: bool,
    pub seed: u64,
}

/// Which candidates lose, and in which group. `candidates` are in order, and each loses once at
/// most: who has lost in one group has no say in the next.
pub fn losers(candidates: &[Candidate], rules: &Rules) -> HashMap<usize, String> {
    let mut names: Vec<&str> = Vec::new();
    for name in candidates.iter().flat_map(|it| &it.entry.groups) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut lost = HashMap::new();
    for name in names {
        let members: Vec<&Candidate> = candidates
            .iter()
            .filter(|it| it.entry.groups.iter().any(|group| group == name))
            .filter(|it| !lost.contains_key(&it.index))
            .collect();
        let stay = staying(name, &members, rules);
        let losing = members.iter().filter(|it| !stay.contains(&it.index));
        lost.extend(losing.map(|it| (it.index, name.to_owned())));
    }
    lost
}

/// Who of a group stays.
fn staying(name: &str, members: &[&Candidate], rules: &Rules) -> Vec<usize> {
    let sticky: Vec<usize> = members
        .iter()
        .filter(|it| it.is_sticky)
        .map(|it| it.index)
        .collect();
    if !sticky.is_empty() {
        return sticky;
    }
    if rules.settled.contains(name) {
        return Vec::new();
    }
    let members = best_scored(members, rules);
    if members.len() <= 1 {
        return members.iter().map(|it| it.index).collect();
    }
    let overriding = members.iter().filter(|it| it.entry.group_override);
    // Of equals the one that comes first.
    if let Some(first) = overriding.min_by_key(|it| (Reverse(it.entry.order), it.index)) {
        return vec![first.index];
    }
    vec![drawn(name, &members, rules.seed)]
}

/// Leaves out those for which the score counts and is not the highest.
fn best_scored<'a>(members: &[&'a Candidate<'a>], rules: &Rules) -> Vec<&'a Candidate<'a>> {
    let counts = |it: &Candidate| it.entry.group_scoring.unwrap_or(rules.scoring);
    if !members.iter().any(|it| counts(it)) {
        return members.to_vec();
    }
    let best = members.iter().map(|it| (rules.score)(it.index)).max();
    let stay = |it: &&&Candidate| !counts(it) || Some((rules.score)(it.index)) == best;
    members.iter().filter(stay).copied().collect()
}

/// One of them, by weight.
fn drawn(name: &str, members: &[&Candidate], seed: u64) -> usize {
    let total: f64 = members.iter().map(|it| it.entry.group_weight).sum();
    let mut rest = dice::throw(dice::mix(seed, "group"), name) * total;
    for member in members {
        rest -= member.entry.group_weight;
        if rest < 0.0 {
            return member.index;
        }
    }
    // All weights are 0, or the last one got lost in rounding.
    members[members.len() - 1].index
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;
