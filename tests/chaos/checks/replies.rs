//! Checks that every message gets its reply, that there are no other replies, and that auto mode
//! stops.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::checks::check::{Check, by_run, claims, is_final, of_people};
use crate::record::{Evidence, Move, Writing};

pub fn no_input_is_lost(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "S8",
        "every acknowledged message is answered or has a visible reason why not",
    );
    let runs = by_run(evidence);
    // The greatest cutoff of the runs that ended.
    let mut seen: HashMap<i64, i64> = HashMap::new();
    for claim in claims(evidence) {
        let last = runs[claim.step.run.as_str()].last();
        if last.is_some_and(|it| is_final(&it.became)) {
            let seen = seen.entry(claim.step.conversation).or_default();
            *seen = (*seen).max(claim.cutoff);
        }
    }
    let rows: HashMap<i64, &Writing> = of_people(evidence).map(|it| (it.message, it)).collect();
    for post in evidence.posts.iter().filter(|it| it.expects_reply) {
        let row = post.acknowledged().and_then(|it| rows.get(&it.message));
        let Some(row) = row else { continue };
        let is_seen = seen.get(&row.conversation).is_some_and(|it| *it >= row.seq);
        check.expect(is_seen || is_explained(row, evidence, &runs), || {
            format!(
                "message {} (seq {}) of conversation {} was never answered: {}",
                row.message, row.seq, row.conversation, row.content
            )
        });
    }
    check
}

/// The run of the message ended visibly before it was claimed, for example by a stop.
fn is_explained(row: &Writing, evidence: &Evidence, runs: &BTreeMap<&str, Vec<&Move>>) -> bool {
    let planned = evidence
        .moves
        .iter()
        .find(|it| it.tx == row.tx && it.became == "queued");
    planned.is_some_and(|it| {
        let last = runs[it.run.as_str()].last();
        last.is_some_and(|last| last.n > it.n && is_final(&last.became))
    })
}

pub fn a_planned_run_sees_its_message(evidence: &Evidence) -> Check {
    let mut check = Check::of("S9", "the run that was planned for a message sees it");
    let rows: HashMap<i64, &Writing> = of_people(evidence).map(|it| (it.tx, it)).collect();
    // The least cutoff of the next claim of each queued run.
    let mut owed: HashMap<&str, i64> = HashMap::new();
    let cutoffs: HashMap<i64, i64> = claims(evidence)
        .iter()
        .map(|it| (it.step.n, it.cutoff))
        .collect();
    for step in &evidence.moves {
        if let Some(row) = rows.get(&step.tx).filter(|_| step.became == "queued") {
            owed.insert(&step.run, row.seq);
        }
        let Some(cutoff) = cutoffs.get(&step.n) else {
            continue;
        };
        if let Some(seq) = owed.remove(step.run.as_str()) {
            check.expect(*cutoff >= seq, || {
                format!(
                    "run {} answers message {seq} but sees only up to {cutoff}",
                    step.run
                )
            });
        }
    }
    check
}

pub fn no_message_is_answered_twice(evidence: &Evidence) -> Check {
    let mut check = Check::of("S10", "each turn produces one text and has a cause");
    let mut spoken: HashSet<(&str, i64)> = HashSet::new();
    for step in evidence.moves.iter().filter(|it| it.became == "succeeded") {
        // A text of a copilot is no turn of a round; its steps are checked in `copilot.rs`.
        let asked_for = step.by_copilot
            || ["force_talk", "regenerate", "continue"].contains(&step.kind.as_str());
        let turn = (step.round.as_str(), step.slot);
        let fits = asked_for || (!step.round.is_empty() && spoken.insert(turn));
        check.expect(fits, || {
            format!(
                "run {} ({}) repeats turn {} of round {:?}, or has no cause",
                step.run, step.kind, step.slot, step.round
            )
        });
    }
    check
}

pub fn auto_mode_ends(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "A1",
        "auto mode spends no more than its budget after a message",
    );
    // A message to people alone is not read by the schedule.
    let mut events: Vec<(i64, i64, bool)> = of_people(evidence)
        .filter(|it| !it.is_for_people)
        .map(|it| (it.n, it.conversation, true))
        .collect();
    let succeeded = evidence.moves.iter().filter(|it| it.became == "succeeded");
    let spoken: HashSet<&str> = succeeded.map(|it| it.run.as_str()).collect();
    // A run counts at its first claim: one that already ran when the message arrived does not
    // answer it, and one that a node released is the same turn when it is claimed again.
    let mut taken: HashSet<&str> = HashSet::new();
    let begun = claims(evidence).into_iter().map(|it| it.step);
    let begun = begun.filter(|it| it.kind == "auto_mode" && spoken.contains(it.run.as_str()));
    let begun = begun.filter(|it| taken.insert(it.run.as_str()));
    events.extend(begun.map(|it| (it.n, it.conversation, false)));
    events.sort_unstable();
    let mut spent: HashMap<i64, i64> = HashMap::new();
    for (n, conversation, resets) in events {
        let spent = spent.entry(conversation).or_default();
        *spent = if resets { 0 } else { *spent + 1 };
        let most = evidence
            .rules
            .get(&conversation)
            .map_or(i64::MAX, |it| it.max_auto);
        check.expect(*spent <= most, || {
            format!("conversation {conversation}: auto run {spent} of {most} at step {n}")
        });
    }
    check
}

pub fn nothing_follows_a_stop(evidence: &Evidence) -> Check {
    let mut check = Check::of("A3", "after a stop no run starts without a user action");
    for stop in &evidence.stops {
        let later = |it: &&Move| {
            it.conversation == stop.conversation
                && it.at > stop.at
                && it.became == "queued"
                && it.was.is_empty()
        };
        let next = evidence.moves.iter().find(later);
        let by_itself = ["auto_mode", "next_slot", "copilot_followup"];
        let alone = |it: &Move| by_itself.contains(&it.reason.as_str());
        // A run that a user started in between may continue; then the last plan is newer.
        let moved = evidence.moves.iter().any(|it| {
            it.conversation == stop.conversation
                && it.became == "queued"
                && it.at > stop.asked_at
                && next.is_some_and(|next| it.n < next.n)
        });
        // So may a round that a user started or resumed, and that waited for a person first.
        let waited = evidence.stored.round_changes.iter().any(|it| {
            it.conversation == stop.conversation
                && (it.status.as_str(), it.state.as_str()) == ("active", "waiting")
                && it.at > stop.asked_at
                && next.is_some_and(|next| it.n < next.n)
        });
        // A user may skip the turn of a failed round, which then continues.
        let skipped = evidence.skips.iter().any(|it| {
            it.conversation == stop.conversation
                && next.is_some_and(|next| it.asked_at <= next.at)
                && it.answered_at.is_none_or(|at| at >= stop.asked_at)
        });
        let moved = moved || waited || skipped;
        check.expect(moved || !next.is_some_and(alone), || {
            format!("{stop:?} was followed by {next:?}")
        });
    }
    check
}

pub fn a_message_comes_before_auto_mode(evidence: &Evidence) -> Check {
    let mut check = Check::of("A4", "a claim sees every message that was stored before it");
    let mut there: HashMap<i64, i64> = HashMap::new();
    let mut rows = evidence.writings.iter().filter(|it| it.is_new).peekable();
    for claim in claims(evidence) {
        while let Some(row) = rows.next_if(|it| it.n < claim.step.n) {
            let newest = there.entry(row.conversation).or_default();
            *newest = (*newest).max(row.seq);
        }
        let newest = there.get(&claim.step.conversation).copied().unwrap_or(0);
        check.expect(claim.cutoff >= newest, || {
            format!(
                "run {} sees up to {}, but {newest} was stored",
                claim.step.run, claim.cutoff
            )
        });
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::{good, step, writing};
    use crate::record::{Skip, Stop};
    use crate::stored_record::RoundChange;

    fn broken(check: fn(&Evidence) -> Check, spoil: impl FnOnce(&mut Evidence)) -> usize {
        let mut evidence = good();
        spoil(&mut evidence);
        check(&evidence).broken.len()
    }

    #[test]
    fn a_good_record_has_no_violation() {
        let all: [fn(&Evidence) -> Check; 4] = [
            no_input_is_lost,
            a_planned_run_sees_its_message,
            no_message_is_answered_twice,
            a_message_comes_before_auto_mode,
        ];
        for check in all {
            let check = check(&good());
            assert!(check.n > 0 && check.broken.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn an_unanswered_message_is_detected() {
        let blind = |it: &mut Evidence| it.moves[2].cutoff = 0;
        let never = |it: &mut Evidence| it.moves.clear();
        let stopped = |it: &mut Evidence| {
            it.moves.truncate(1);
            it.moves.push(step(4, 2, "queued", "canceled"));
        };
        let nobody = |it: &mut Evidence| {
            it.moves.clear();
            it.posts[0].expects_reply = false;
        };

        let late = |it: &mut Evidence| {
            // Its run had ended when the message arrived, and no other was planned.
            it.writings[0].tx = 9;
            it.moves[2].cutoff = 0;
        };

        assert_eq!(broken(no_input_is_lost, never), 1);
        assert_eq!(broken(no_input_is_lost, late), 1);
        assert_eq!(broken(no_input_is_lost, stopped), 0);
        assert_eq!(broken(no_input_is_lost, nobody), 0);
        assert_eq!(broken(a_planned_run_sees_its_message, blind), 1);
        assert_eq!(broken(a_message_comes_before_auto_mode, blind), 1);
    }

    #[test]
    fn a_turn_with_two_texts_is_detected() {
        let again = |it: &mut Evidence| it.moves.push(step(9, 9, "running", "succeeded"));
        let asked = |it: &mut Evidence| {
            let mut step = step(9, 9, "running", "succeeded");
            step.kind = "force_talk".to_owned();
            it.moves.push(step);
        };

        assert_eq!(broken(no_message_is_answered_twice, again), 1);
        assert_eq!(broken(no_message_is_answered_twice, asked), 0);
        assert_eq!(
            broken(no_message_is_answered_twice, |it| it.moves[3].round.clear()),
            1
        );
    }

    #[test]
    fn auto_mode_beyond_its_budget_is_detected() {
        let auto = |n: i64| {
            let steps = [("queued", "running"), ("running", "succeeded")];
            let steps = steps.map(|(was, became)| {
                let mut step = step(n, n, was, became);
                step.kind = "auto_mode".to_owned();
                step.run = format!("auto{n}");
                step
            });
            steps.to_vec()
        };
        let thrice = |it: &mut Evidence| it.moves.extend([10, 12, 14].map(auto).concat());
        let reset = |it: &mut Evidence| {
            thrice(it);
            it.writings.push(writing(11, 11, 3, "user", "and you?"));
        };
        let handed_back = |it: &mut Evidence| {
            let [first, mut second] = [10, 12].map(auto);
            second.insert(
                1,
                Move {
                    became: "queued".to_owned(),
                    ..second[1].clone()
                },
            );
            second.insert(2, second[0].clone());
            it.moves.extend([first, second].concat());
        };

        assert_eq!(broken(auto_mode_ends, thrice), 1);
        assert_eq!(broken(auto_mode_ends, reset), 0);
        assert_eq!(broken(auto_mode_ends, handed_back), 0);
    }

    #[test]
    fn a_turn_that_follows_a_stop_without_a_user_action_is_detected() {
        let stopped = |reason: &'static str| {
            move |it: &mut Evidence| {
                it.stops.push(Stop {
                    conversation: 1,
                    asked_at: 7_500_000,
                    at: 8_000_000,
                });
                let mut next = step(9, 9, "", "queued");
                next.reason = reason.to_owned();
                it.moves.push(next);
            }
        };

        let waited = |it: &mut Evidence| {
            stopped("next_slot")(it);
            it.stored.round_changes.push(RoundChange {
                n: 8,
                at: 8_500_000,
                conversation: 1,
                status: "active".to_owned(),
                state: "waiting".to_owned(),
                ..RoundChange::default()
            });
        };

        assert_eq!(broken(nothing_follows_a_stop, stopped("auto_mode")), 1);
        assert_eq!(broken(nothing_follows_a_stop, stopped("next_slot")), 1);
        let skipped = |asked_at: i64, answered_at: Option<i64>| {
            move |it: &mut Evidence| {
                stopped("next_slot")(it);
                it.skips.push(Skip {
                    conversation: 1,
                    asked_at,
                    answered_at,
                });
            }
        };
        let check = nothing_follows_a_stop;
        assert_eq!(broken(check, waited), 0);
        assert_eq!(broken(check, skipped(8_500_000, Some(8_600_000))), 0);
        assert_eq!(broken(check, skipped(7_000_000, None)), 0);
        assert_eq!(broken(check, skipped(7_000_000, Some(7_100_000))), 1);
        assert_eq!(broken(check, skipped(9_500_000, None)), 1);
        assert_eq!(broken(nothing_follows_a_stop, stopped("resume")), 0);
    }
}
