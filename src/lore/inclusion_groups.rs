//! Inclusion groups: of the entries of one group that are awake, one enters.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::lore::engine_lorebook::LorebookEntry;
use crate::lore::probability;

/// An entry that would enter.
pub struct GroupCandidate<'a> {
    /// Its place among all entries: lower comes first.
    pub index: usize,
    pub entry: &'a LorebookEntry,
    pub is_sticky: bool,
}

/// What the groups go by.
pub struct GroupRules<'a> {
    /// Groups of which an entry is in already.
    pub decided: &'a HashSet<&'a str>,
    /// How many keys of an entry are found.
    pub score: &'a dyn Fn(usize) -> usize,
    /// Does the score count where an entry does not say it?
    pub scoring: bool,
    pub seed: u64,
}

/// Which candidates lose, and in which group. `candidates` are in order, and each loses once at
/// most: who has lost in one group has no say in the next.
pub fn excluded_entries(
    candidates: &[GroupCandidate],
    rules: &GroupRules,
) -> HashMap<usize, String> {
    let mut names: Vec<&str> = Vec::new();
    for name in candidates.iter().flat_map(|it| &it.entry.groups) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut excluded = HashMap::new();
    for name in names {
        let members: Vec<&GroupCandidate> = candidates
            .iter()
            .filter(|it| it.entry.groups.iter().any(|group| group == name))
            .filter(|it| !excluded.contains_key(&it.index))
            .collect();
        let stay = remaining_entries(name, &members, rules);
        let losing = members.iter().filter(|it| !stay.contains(&it.index));
        excluded.extend(losing.map(|it| (it.index, name.to_owned())));
    }
    excluded
}

/// Who of a group stays.
fn remaining_entries(name: &str, members: &[&GroupCandidate], rules: &GroupRules) -> Vec<usize> {
    let sticky: Vec<usize> = members
        .iter()
        .filter(|it| it.is_sticky)
        .map(|it| it.index)
        .collect();
    if !sticky.is_empty() {
        return sticky;
    }
    if rules.decided.contains(name) {
        return Vec::new();
    }
    let members = highest_scored(members, rules);
    if members.len() <= 1 {
        return members.iter().map(|it| it.index).collect();
    }
    let overriding = members.iter().filter(|it| it.entry.group_override);
    // Of equals the one that comes first.
    if let Some(first) = overriding.min_by_key(|it| (Reverse(it.entry.order), it.index)) {
        return vec![first.index];
    }
    vec![draw_by_weight(name, &members, rules.seed)]
}

/// Leaves out those for which the score counts and is not the highest.
fn highest_scored<'a>(
    members: &[&'a GroupCandidate<'a>],
    rules: &GroupRules,
) -> Vec<&'a GroupCandidate<'a>> {
    let counts = |it: &GroupCandidate| it.entry.group_scoring.unwrap_or(rules.scoring);
    if !members.iter().any(|it| counts(it)) {
        return members.to_vec();
    }
    let best = members.iter().map(|it| (rules.score)(it.index)).max();
    let stay = |it: &&&GroupCandidate| !counts(it) || Some((rules.score)(it.index)) == best;
    members.iter().filter(stay).copied().collect()
}

/// One of them, by weight.
fn draw_by_weight(name: &str, members: &[&GroupCandidate], seed: u64) -> usize {
    let total: f64 = members.iter().map(|it| it.entry.group_weight).sum();
    let mut rest = probability::roll(probability::mix_hash(seed, "group"), name) * total;
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
#[path = "inclusion_groups_tests.rs"]
mod tests;
