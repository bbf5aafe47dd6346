//! Checks the copilot: it speaks no more often than it has steps, and each text costs one.

use std::collections::HashMap;

use crate::checks::check::Check;
use crate::record::{Evidence, Writing};

/// One thing that happened to a seat, in order.
enum Happened<'a> {
    Set(i64),
    Spoke(&'a Writing),
}

pub fn a_copilot_ends(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "A7",
        "a copilot writes no more texts than it has steps, and each spends one",
    );
    let mut spent: HashMap<(i64, i64), i64> = HashMap::new();
    let mut left: HashMap<i64, Left> = HashMap::new();
    for it in &evidence.seats {
        spent.insert((it.tx, it.seat), it.steps);
    }
    for (seat, happened) in in_order(evidence) {
        let left = left.entry(seat).or_default();
        match happened {
            // Turned off, what is under way may still come to its end.
            Happened::Set(0) => left.is_on = false,
            Happened::Set(steps) => *left = Left { is_on: true, steps },
            Happened::Spoke(text) => {
                left.steps -= 1;
                let paid = spent.get(&(text.tx, seat)) == Some(&left.steps);
                check.expect(left.steps >= 0 && (paid || !left.is_on), || {
                    format!(
                        "seat {seat} has {} steps left after message {}, paid: {paid}",
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

/// The steps that a text spends are known from the text alone.
fn in_order(evidence: &Evidence) -> Vec<(i64, Happened<'_>)> {
    let texts = evidence
        .writings
        .iter()
        .filter(|it| it.is_new && it.origin == 0 && it.role == "user" && !it.run.is_empty());
    let texts: Vec<&Writing> = texts.collect();
    let by_text: HashMap<(i64, i64), i64> =
        texts.iter().map(|it| ((it.tx, it.seat), it.n)).collect();
    let moves = evidence.seats.iter();
    let by_hand = moves.filter(|it| !by_text.contains_key(&(it.tx, it.seat)));
    let mut all: Vec<(i64, i64, Happened)> = by_hand
        .map(|it| (it.n, it.seat, Happened::Set(it.steps)))
        .collect();
    all.extend(
        texts
            .into_iter()
            .map(|it| (it.n, it.seat, Happened::Spoke(it))),
    );
    all.sort_by_key(|it| it.0);
    all.into_iter().map(|(_, seat, it)| (seat, it)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::{good, writing};
    use crate::record::SeatMove;

    fn seat(n: i64, tx: i64, steps: i64) -> SeatMove {
        SeatMove {
            n,
            tx,
            seat: 5,
            steps,
        }
    }

    fn text(n: i64, tx: i64) -> Writing {
        Writing {
            run: format!("c{n}"),
            seat: 5,
            ..writing(n, tx, n, "user", "reply of a copilot")
        }
    }

    fn broken(seats: Vec<SeatMove>, texts: Vec<Writing>) -> usize {
        let mut evidence = good();
        evidence.seats = seats;
        evidence.writings.extend(texts);
        a_copilot_ends(&evidence).broken.len()
    }

    #[test]
    fn two_steps_are_two_texts() {
        let seats = || vec![seat(10, 10, 2), seat(12, 11, 1), seat(14, 12, 0)];

        assert_eq!(broken(seats(), vec![text(11, 11), text(13, 12)]), 0);
        let third = vec![text(11, 11), text(13, 12), text(15, 13)];
        assert_eq!(broken(seats(), third), 1);
    }

    #[test]
    fn a_text_that_costs_no_step_is_detected() {
        let seats = vec![seat(10, 10, 2)];

        assert_eq!(broken(seats, vec![text(11, 11)]), 1);
    }

    #[test]
    fn a_text_that_was_under_way_may_come_after_it_was_turned_off() {
        let seats = || vec![seat(10, 10, 1), seat(11, 11, 0)];

        assert_eq!(broken(seats(), vec![text(12, 12)]), 0);
        assert_eq!(broken(seats(), vec![text(12, 12), text(13, 13)]), 1);
    }

    #[test]
    fn a_text_of_a_copilot_that_was_never_on_is_detected() {
        assert_eq!(broken(vec![], vec![text(11, 11)]), 1);
    }
}
