//! Checks S1 to S7, S12 and S13: the transitions of runs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::checks::check::{Check, by_run, claims, is_final, of_people, texts_of_runs};
use crate::cpu_starvation::{STARVED, starved_for};
use crate::record::{Evidence, Fault, Move, Writing};

pub fn at_most_one_run_is_running(evidence: &Evidence) -> Check {
    let check = Check::of(
        "S1",
        "at most one run of a conversation is running at any instant",
    );
    one_at_a_time(evidence, "running", check)
}

pub fn at_most_one_run_is_queued(evidence: &Evidence) -> Check {
    let check = Check::of(
        "S2",
        "at most one run of a conversation is queued at any instant",
    );
    one_at_a_time(evidence, "queued", check)
}

fn one_at_a_time(evidence: &Evidence, state: &str, mut check: Check) -> Check {
    let mut there: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
    for step in &evidence.moves {
        let runs = there.entry(step.conversation).or_default();
        if step.was == state && step.became != state {
            runs.remove(step.run.as_str());
        }
        if step.became == state && step.was != state {
            runs.insert(&step.run);
            check.expect(runs.len() == 1, || {
                format!(
                    "{runs:?} are {state} in conversation {} at step {}",
                    step.conversation, step.n
                )
            });
        }
    }
    check
}

pub fn only_legal_transitions(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "S3",
        "a run makes only legal transitions, and none from a final state",
    );
    for step in &evidence.moves {
        let legal = match (step.was.as_str(), step.became.as_str()) {
            ("", next) => next == "queued",
            ("queued", next) => next != "succeeded",
            ("running", next) => next != "skipped",
            _ => false,
        };
        check.expect(legal, || describe(step));
    }
    check
}

pub fn every_run_ends(evidence: &Evidence) -> Check {
    let mut check = Check::of("S4", "every run ends once and in time");
    let usual = evidence.run_timeout_ms + 2 * evidence.stale_ms + 20_000;
    for (run, steps) in by_run(evidence) {
        let last = steps[steps.len() - 1];
        let claimed = steps
            .iter()
            .rfind(|it| it.was == "queued" && it.became == "running");
        let took = claimed.map_or(0, |it| (last.at - it.at) / 1_000);
        let faults = evidence.faults.iter().map(|it| (it.until - it.at) / 1_000);
        let longest = usual + faults.filter(|_| took > usual).sum::<i64>();
        check.expect(is_final(&last.became) && took <= longest, || {
            format!(
                "run {run} is {} after {took} ms: {}",
                last.became,
                describe(last)
            )
        });
    }
    check
}

pub fn a_claim_raises_the_lease(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "S5",
        "each claim raises the lease by one, and nothing else does",
    );
    for step in &evidence.moves {
        let raised = step.was == "queued" && step.became == "running";
        let wanted = step.lease_was + i64::from(raised);
        check.expect(step.lease == wanted, || describe(step));
    }
    check
}

pub fn a_lost_lease_writes_nothing(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "S6",
        "a text is stored by the transaction that ends its run",
    );
    let ends: HashSet<(i64, &str)> = evidence
        .moves
        .iter()
        .filter(|it| it.was == "running" && ["succeeded", "canceled"].contains(&it.became.as_str()))
        .map(|it| (it.tx, it.run.as_str()))
        .collect();
    for text in texts_of_runs(evidence) {
        check.expect(ends.contains(&(text.tx, text.run)), || {
            format!(
                "message {} of run {} was stored in another transaction than its end",
                text.message, text.run
            )
        });
    }
    check
}

/// A node estimates the time of the database with an error of up to half a round trip, and ignores
/// round trips of more than a second.
const CLOCK_ERROR_MS: i64 = 500;

pub fn debounce_is_respected(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "S7",
        "no run starts before it is due, nor before the end of a burst",
    );
    for claim in claims(evidence) {
        let (at, due) = (claim.step.at / 1_000, claim.step.run_after);
        check.expect(at + CLOCK_ERROR_MS >= due, || {
            format!("claimed at {at}, due at {due}: {}", describe(claim.step))
        });
    }
    let posts: HashMap<i64, &Writing> = of_people(evidence).map(|it| (it.tx, it)).collect();
    let planned = |it: &&Move| it.became == "queued" && it.reason == "user_message";
    for step in evidence.moves.iter().filter(planned) {
        let (Some(post), Some(rules)) =
            (posts.get(&step.tx), evidence.rules.get(&step.conversation))
        else {
            continue;
        };
        // Without debounce a run has no due time, which is recorded as 0.
        let waits = step.run_after >= post.created + rules.debounce_ms
            || (step.run_after == 0 && rules.debounce_ms == 0);
        let bound = step.burst + (10 * rules.debounce_ms).max(10_000);
        let bounded = step.burst > 0 && step.run_after >= bound;
        check.expect(waits || bounded, || {
            format!(
                "message {} of {} may be answered from {}: {}",
                post.message,
                post.created,
                step.run_after,
                describe(step)
            )
        });
    }
    check
}

pub fn only_stale_runs_are_recovered(evidence: &Evidence) -> Check {
    let mut check = Check::of("S12", "no running node is considered dead");
    let reaped = |it: &&Move| it.was == "running" && it.error == "stale_running_run";
    for step in evidence.moves.iter().filter(reaped) {
        let mut faults = evidence.faults.iter();
        let excused =
            faults.any(|it| excuses(it, step, evidence.stale_ms)) || starved(evidence, step);
        check.expect(excused && step.silence >= evidence.stale_ms, || {
            let (silence, near) = (step.silence, before(step, &evidence.faults));
            format!(
                "reaped after {silence} ms of silence: {}\n{near}",
                describe(step)
            )
        });
    }
    check
}

/// Describes the faults of the seconds before.
fn before(step: &Move, faults: &[Fault]) -> String {
    let near = faults
        .iter()
        .filter(|it| it.at <= step.at && it.until >= step.at - 5_000_000);
    let lines = near.map(|it| {
        let (from, to) = ((it.at - step.at) / 1_000, (it.until - step.at) / 1_000);
        format!(
            "            {} of {:?} {}, {from} to {to} ms",
            it.kind, it.node, it.worker
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether the node lacked CPU time for a third of the silence.
fn starved(evidence: &Evidence, step: &Move) -> bool {
    let since = step.at - step.silence.max(evidence.stale_ms) * 1_000;
    let starved = starved_for(&evidence.faults, &step.node, since, step.at);
    starved / 1_000 > evidence.stale_ms / 3
}

/// Whether a fault explains why the heartbeat of a run stopped.
fn excuses(fault: &Fault, step: &Move, stale_ms: i64) -> bool {
    let since = step.at - step.silence.max(stale_ms) * 1_000 - 1_000_000;
    let overlaps = fault.at <= step.at && fault.until >= since;
    let is_ground = fault.kind.starts_with("database");
    if fault.node.is_none() {
        let is_long = (fault.until - fault.at) / 1_000 > stale_ms / 3;
        return overlaps && is_ground && is_long;
    }
    let is_its_own = fault.worker == step.node && fault.at <= step.at;
    match fault.kind.as_str() {
        "stop, short" | STARVED => false,
        "kill -9" | "sent away" | "kill while it drains" | "replaced" => is_its_own,
        kind if kind.starts_with("kill at") => is_its_own,
        _ => is_its_own && overlaps,
    }
}

pub fn a_running_run_has_an_owner(evidence: &Evidence) -> Check {
    let mut check = Check::of("S13", "a running run has an owner, a lease and a cutoff");
    for claim in claims(evidence) {
        let step = claim.step;
        let owned = !step.node.is_empty() && step.lease >= 1 && claim.cutoff >= 0;
        check.expect(owned, || describe(step));
    }
    check
}

fn describe(step: &Move) -> String {
    format!(
        "step {}: run {} of conversation {} ({}, {}): {:?} -> {:?}, lease {} -> {}, node {}",
        step.n,
        step.run,
        step.conversation,
        step.kind,
        step.reason,
        step.was,
        step.became,
        step.lease_was,
        step.lease,
        step.node
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::{fault, good, step};

    const ALL: &[fn(&Evidence) -> Check] = &[
        at_most_one_run_is_running,
        at_most_one_run_is_queued,
        only_legal_transitions,
        every_run_ends,
        a_claim_raises_the_lease,
        a_lost_lease_writes_nothing,
        debounce_is_respected,
        a_running_run_has_an_owner,
    ];

    fn broken(check: fn(&Evidence) -> Check, spoil: impl FnOnce(&mut Evidence)) -> usize {
        let mut evidence = good();
        spoil(&mut evidence);
        check(&evidence).broken.len()
    }

    #[test]
    fn a_good_record_has_no_violation() {
        for check in ALL {
            let check = check(&good());
            assert!(check.n > 0 && check.broken.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn two_simultaneous_runs_are_detected() {
        let second = |was: &str, became: &str, n| {
            let mut step = step(n, 9, was, became);
            step.run = "r2".to_owned();
            step
        };
        let two_run = |it: &mut Evidence| it.moves.insert(3, second("queued", "running", 6));
        let two_wait = |it: &mut Evidence| it.moves.insert(1, second("", "queued", 3));

        assert_eq!(broken(at_most_one_run_is_running, two_run), 1);
        assert_eq!(broken(at_most_one_run_is_queued, two_wait), 1);
    }

    #[test]
    fn a_transition_from_a_final_state_and_a_missing_one_are_detected() {
        let revives = |it: &mut Evidence| it.moves.push(step(8, 4, "succeeded", "running"));
        let jumps = |it: &mut Evidence| it.moves.push(step(8, 4, "queued", "succeeded"));

        assert_eq!(broken(only_legal_transitions, revives), 1);
        assert_eq!(broken(only_legal_transitions, jumps), 1);
    }

    #[test]
    fn a_run_without_an_end_and_an_endless_one_are_detected() {
        let stuck = |it: &mut Evidence| it.moves.truncate(3);
        let late = |it: &mut Evidence| it.moves[3].at += 100_000_000;

        assert_eq!(broken(every_run_ends, stuck), 1);
        assert_eq!(broken(every_run_ends, late), 1);
    }

    #[test]
    fn a_lease_that_does_not_grow_by_one_is_detected() {
        assert_eq!(
            broken(a_claim_raises_the_lease, |it| it.moves[1].lease = 0),
            1
        );
        assert_eq!(
            broken(a_claim_raises_the_lease, |it| it.moves[3].lease = 2),
            1
        );
        assert_eq!(
            broken(a_running_run_has_an_owner, |it| it.moves[1].node.clear()),
            1
        );
        assert_eq!(
            broken(a_running_run_has_an_owner, |it| it.moves[2].cutoff = -1),
            1
        );
    }

    #[test]
    fn a_write_under_a_lost_lease_is_detected() {
        assert_eq!(
            broken(a_lost_lease_writes_nothing, |it| it.writings[1].tx = 77),
            1
        );
        assert_eq!(
            broken(a_lost_lease_writes_nothing, |it| it.moves[3].became =
                "failed".to_owned()),
            1
        );
    }

    #[test]
    fn a_run_that_starts_too_early_is_detected() {
        assert_eq!(
            broken(debounce_is_respected, |it| it.moves[1].run_after = 90_000),
            1
        );
        assert_eq!(
            broken(debounce_is_respected, |it| it.moves[0].run_after = 2_050),
            1
        );
        let burst =
            |it: &mut Evidence| (it.moves[0].run_after, it.moves[0].burst) = (12_000, 2_000);
        assert_eq!(broken(debounce_is_respected, burst), 0);
    }

    #[test]
    fn a_reaped_run_needs_a_fault_that_explains_it() {
        let reaped = |faults: Vec<Fault>| {
            let mut evidence = good();
            evidence.moves[3].became = "failed".to_owned();
            evidence.moves[3].error = "stale_running_run".to_owned();
            evidence.moves[3].silence = 1_600;
            evidence.faults = faults;
            only_stale_runs_are_recovered(&evidence).broken.len()
        };
        let of_another = Fault {
            worker: "node-b".to_owned(),
            ..fault("kill -9", 5, 6)
        };

        assert_eq!(reaped(vec![fault("kill -9", 1, 2)]), 0);
        assert_eq!(reaped(vec![fault("stop, long", 5, 7)]), 0);
        assert_eq!(reaped(vec![fault(STARVED, 5, 6)]), 0);
        assert_eq!(reaped(vec![fault(STARVED, 4, 5)]), 1);
        assert_eq!(reaped(vec![fault("stop, long", 1, 2)]), 1);
        assert_eq!(reaped(vec![fault("stop, short", 5, 7)]), 1);
        assert_eq!(reaped(vec![of_another]), 1);
        assert_eq!(reaped(vec![]), 1);
    }
}
