//! Checks the copilot: it writes at most as many texts as it has steps, and each text costs one.

use std::collections::HashMap;

use crate::checks::check::Check;
use crate::record::{Evidence, Writing};

/// One event of a membership.
enum Happened<'a> {
    Set(i64),
    Spoke(&'a Writing),
}

pub fn a_copilot_ends(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "A7",
        "a copilot writes no more texts than it has steps, and each costs one",
    );
    let mut spent: HashMap<(i64, i64), i64> = HashMap::new();
    let mut left: HashMap<i64, Left> = HashMap::new();
    for it in &evidence.copilot_changes {
        spent.insert((it.tx, it.membership), it.steps);
    }
    for (membership, happened) in in_order(evidence) {
        let left = left.entry(membership).or_default();
        match happened {
            // A text that was being written when the copilot was turned off may still be finished.
            Happened::Set(0) => left.is_on = false,
            Happened::Set(steps) => *left = Left { is_on: true, steps },
            Happened::Spoke(text) => {
                left.steps -= 1;
                let paid = spent.get(&(text.tx, membership)) == Some(&left.steps);
                check.expect(left.steps >= 0 && (paid || !left.is_on), || {
                    format!(
                        "membership {membership} has {} steps after message {}, counted: {paid}",
                        left.steps, text.message
                    )
                });
            }
        }
    }
    check
}

#[derive(Default)]
struct Left {
    is_on: bool,
    steps: i64,
}

/// Orders the events of all memberships; a change by the transaction of a text is part of the text.
fn in_order(evidence: &Evidence) -> Vec<(i64, Happened<'_>)> {
    let texts = evidence
        .writings
        .iter()
        .filter(|it| it.is_new && it.origin == 0 && it.role == "user" && !it.run.is_empty());
    let texts: Vec<&Writing> = texts.collect();
    let by_text: HashMap<(i64, i64), i64> = texts
        .iter()
        .map(|it| ((it.tx, it.membership), it.n))
        .collect();
    let moves = evidence.copilot_changes.iter();
    let by_hand = moves.filter(|it| !by_text.contains_key(&(it.tx, it.membership)));
    let mut all: Vec<(i64, i64, Happened)> = by_hand
        .map(|it| (it.n, it.membership, Happened::Set(it.steps)))
        .collect();
    all.extend(
        texts
            .into_iter()
            .map(|it| (it.n, it.membership, Happened::Spoke(it))),
    );
    all.sort_by_key(|it| it.0);
    all.into_iter()
        .map(|(_, membership, it)| (membership, it))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::{good, writing};
    use crate::record::CopilotChange;

    fn change(n: i64, tx: i64, steps: i64) -> CopilotChange {
        CopilotChange {
            n,
            tx,
            membership: 5,
            steps,
        }
    }

    fn text(n: i64, tx: i64) -> Writing {
        Writing {
            run: format!("c{n}"),
            membership: 5,
            ..writing(n, tx, n, "user", "reply of a copilot")
        }
    }

    fn broken(copilot_changes: Vec<CopilotChange>, texts: Vec<Writing>) -> usize {
        let mut evidence = good();
        evidence.copilot_changes = copilot_changes;
        evidence.writings.extend(texts);
        a_copilot_ends(&evidence).broken.len()
    }

    #[test]
    fn two_steps_allow_two_texts() {
        let copilot_changes = || vec![change(10, 10, 2), change(12, 11, 1), change(14, 12, 0)];

        assert_eq!(
            broken(copilot_changes(), vec![text(11, 11), text(13, 12)]),
            0
        );
        let third = vec![text(11, 11), text(13, 12), text(15, 13)];
        assert_eq!(broken(copilot_changes(), third), 1);
    }

    #[test]
    fn a_text_that_costs_no_step_is_detected() {
        let copilot_changes = vec![change(10, 10, 2)];

        assert_eq!(broken(copilot_changes, vec![text(11, 11)]), 1);
    }

    #[test]
    fn one_unfinished_text_may_be_stored_after_the_copilot_was_turned_off() {
        let copilot_changes = || vec![change(10, 10, 1), change(11, 11, 0)];

        assert_eq!(broken(copilot_changes(), vec![text(12, 12)]), 0);
        assert_eq!(
            broken(copilot_changes(), vec![text(12, 12), text(13, 13)]),
            1
        );
    }

    #[test]
    fn a_text_of_a_copilot_that_was_never_on_is_detected() {
        assert_eq!(broken(vec![], vec![text(11, 11)]), 1);
    }
}
