//! Excludes matching entries so that at most one entry of each inclusion group is active, chosen by
//! score, override or a weighted random draw. Sticky entries always remain.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::lorebook::engine_lorebook::LorebookEntry;
use crate::lorebook::seeded_hash;

/// An entry that passed its checks.
pub struct GroupCandidate<'a> {
    /// Its position by precedence among all entries; lower comes first.
    pub index: usize,
    pub entry: &'a LorebookEntry,
    pub is_sticky: bool,
}

/// The inputs of a group's decision.
pub struct GroupRules<'a> {
    /// Groups that already have an active entry.
    pub decided: &'a HashSet<&'a str>,
    /// Returns the score of an entry: the number of its matched keys.
    pub score: &'a dyn Fn(usize) -> usize,
    /// Whether group scoring applies to entries that do not set it.
    pub scoring: bool,
    pub seed: u64,
}

/// Returns the excluded candidates, each with its group. `candidates` are in order of precedence. A
/// candidate that one group excludes is ignored in the next groups.
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

/// Returns the entries of a group that remain.
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
    // Of equal orders the first entry wins.
    if let Some(first) = overriding.min_by_key(|it| (Reverse(it.entry.order), it.index)) {
        return vec![first.index];
    }
    vec![draw_by_weight(name, &members, rules.seed)]
}

/// Removes entries to which group scoring applies and whose score is not the highest.
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

/// Draws one entry at random by weight.
fn draw_by_weight(name: &str, members: &[&GroupCandidate], seed: u64) -> usize {
    let total: f64 = members.iter().map(|it| it.entry.group_weight).sum();
    let mut rest = seeded_hash::roll(seeded_hash::mix_hash(seed, "group"), name) * total;
    for member in members {
        rest -= member.entry.group_weight;
        if rest < 0.0 {
            return member.index;
        }
    }
    // All weights are 0, or rounding passed the last one.
    members[members.len() - 1].index
}

#[cfg(test)]
#[path = "inclusion_groups_tests.rs"]
mod tests;
