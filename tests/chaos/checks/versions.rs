//! Checks the swipes of a message, the first messages of a branch, and that every accepted request
//! for either was fulfilled.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::checks::check::{Check, by_run};
use crate::record::{Evidence, Line, Writing};

pub fn swipes_are_numbered(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "V1",
        "the swipes of a message are numbered 0, 1, 2 …, and it shows one of them",
    );
    let mut texts: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for it in &evidence.versions {
        texts.entry(it.message).or_default().push(it.position);
    }
    for (message, mut positions) in texts {
        positions.sort_unstable();
        let numbered = positions.iter().copied().eq(0..positions.len() as i64);
        check.expect(numbered, || {
            format!("message {message} has the swipes {positions:?}")
        });
        check.expect(!evidence.wrong_texts.contains(&message), || {
            format!("message {message} shows a text that is none of its swipes")
        });
    }
    check
}

/// A conversation after one step: the text of each number, `None` if it is hidden.
type Timeline = BTreeMap<i64, Option<(String, String)>>;

pub fn a_branch_begins_with_what_was_there(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "V2",
        "a branch begins with all visible messages of its origin up to the branch point",
    );
    let homes: HashMap<i64, i64> = evidence
        .writings
        .iter()
        .map(|it| (it.message, it.conversation))
        .collect();
    let mut clones: HashMap<(i64, i64), Vec<&Writing>> = HashMap::new();
    for it in evidence.writings.iter().filter(|it| is_clone(it)) {
        clones.entry((it.tx, it.conversation)).or_default().push(it);
    }
    let mut stages: HashMap<i64, Timeline> = HashMap::new();
    for it in &evidence.writings {
        let group = clones.remove(&(it.tx, it.conversation));
        if let Some(group) = group.filter(|_| is_clone(it)) {
            let parent = homes.get(&it.origin).and_then(|it| stages.get(it));
            let copied = stages
                .get(&it.conversation)
                .and_then(|it| it.last_key_value());
            let after = copied.map_or(0, |(seq, _)| *seq);
            let shown = parent.map_or_else(Vec::new, |parent| shown(parent, after, &group));
            let cloned: Vec<Line> = group.iter().map(|it| line(it)).collect();
            check.expect(shown == cloned, || {
                let differs = shown.iter().zip(&cloned).find(|(a, b)| a != b);
                format!(
                    "branch {} begins with {} messages, its origin showed {}; {differs:?}",
                    it.conversation,
                    cloned.len(),
                    shown.len()
                )
            });
        }
        let shows = (!it.hidden).then(|| (it.role.clone(), it.content.clone()));
        let stage = stages.entry(it.conversation).or_default();
        stage.insert(it.seq, shows);
    }
    check
}

fn is_clone(it: &Writing) -> bool {
    it.is_new && it.origin != 0
}

fn line(it: &Writing) -> Line {
    (it.seq, it.role.clone(), it.content.clone())
}

/// The messages that the origin shows after this number, up to the last clone. A long branch is
/// copied in batches, each as its messages are at that instant.
fn shown(parent: &Timeline, after: i64, clones: &[&Writing]) -> Vec<Line> {
    let last = clones.iter().map(|it| it.seq).max().unwrap_or_default();
    let places = parent.range(after + 1..=last);
    places
        .filter_map(|(seq, it)| it.clone().map(|(role, content)| (*seq, role, content)))
        .collect()
}

pub fn promised_texts_exist(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "V3",
        "an accepted swipe or branch exists, or its run shows why not",
    );
    let runs = by_run(evidence);
    let branches: BTreeSet<i64> = evidence.heads.keys().copied().collect();
    for promise in &evidence.promises {
        let runs_there = promise.run.is_empty() || runs.contains_key(promise.run.as_str());
        let there = branches.contains(&promise.conversation) && runs_there;
        check.expect(there, || format!("{promise:?}"));
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::good;
    use crate::record::{PromisedText, Version};

    fn broken(check: fn(&Evidence) -> Check, spoil: impl FnOnce(&mut Evidence)) -> usize {
        let mut evidence = good();
        spoil(&mut evidence);
        check(&evidence).broken.len()
    }

    fn texts(positions: &[i64]) -> Vec<Version> {
        let text = |position: &i64| Version {
            message: 12,
            position: *position,
            ..Version::default()
        };
        positions.iter().map(text).collect()
    }

    #[test]
    fn a_gap_a_duplicate_and_an_unknown_text_are_detected() {
        let check = swipes_are_numbered;

        assert_eq!(broken(check, |it| it.versions = texts(&[1, 0, 2])), 0);
        assert_eq!(broken(check, |it| it.versions = texts(&[0, 2])), 1);
        assert_eq!(broken(check, |it| it.versions = texts(&[0, 1, 1])), 1);
        let strange = |it: &mut Evidence| {
            it.versions = texts(&[0, 1]);
            it.wrong_texts = vec![12];
        };
        assert_eq!(broken(check, strange), 1);
    }

    /// Adds a branch to the good record.
    fn branch(it: &mut Evidence) {
        for row in it.writings.clone() {
            let mut clone = row.clone();
            (clone.n, clone.tx, clone.conversation) = (20 + row.seq, 20, 2);
            (clone.message, clone.origin) = (20 + row.seq, row.message);
            it.writings.push(clone);
        }
    }

    #[test]
    fn an_incomplete_or_changed_branch_is_detected() {
        let lacks = |it: &mut Evidence| {
            branch(it);
            it.writings.remove(2);
        };
        let differs = |it: &mut Evidence| {
            branch(it);
            it.writings[3].content = "no".to_owned();
        };
        let hidden = |it: &mut Evidence| {
            let mut again = it.writings[0].clone();
            (again.is_new, again.hidden) = (false, true);
            branch(it);
            it.writings.insert(2, again);
        };
        let in_batches = |it: &mut Evidence| {
            branch(it);
            it.writings.last_mut().unwrap().tx = 21;
        };
        let left_out = |it: &mut Evidence| {
            hidden(it);
            it.writings.remove(3);
        };

        let check = a_branch_begins_with_what_was_there;
        assert_eq!(broken(check, branch), 0);
        assert_eq!(broken(check, in_batches), 0);
        assert_eq!(broken(check, lacks), 1);
        assert_eq!(broken(check, differs), 1);
        assert_eq!(broken(check, hidden), 1);
        assert_eq!(broken(check, left_out), 0);
    }

    #[test]
    fn an_accepted_request_without_a_result_is_detected() {
        let promise = |run: &'static str, conversation| {
            move |it: &mut Evidence| {
                it.promises.push(PromisedText {
                    what: "another text",
                    run: run.to_owned(),
                    conversation,
                });
            }
        };

        let check = promised_texts_exist;
        assert_eq!(broken(check, promise("r1", 1)), 0);
        assert_eq!(broken(check, promise("", 1)), 0);
        assert_eq!(broken(check, promise("r9", 1)), 1);
        assert_eq!(broken(check, promise("", 9)), 1);
    }
}
