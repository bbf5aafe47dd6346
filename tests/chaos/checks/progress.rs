//! Check S11: a due run starts soon, and no conversation waits because of others.

use std::collections::{BTreeMap, HashMap};

use crate::checks::check::Check;
use crate::cpu_starvation::STARVED;
use crate::record::{Evidence, Micros};

/// The 99th percentile of the time until a due run starts.
const MAX_WAIT: Micros = 2_000_000;
/// The same if its wake-up signal was lost, for example with its node: other nodes poll every two
/// seconds.
const MAX_WAIT_WITHOUT_REDIS: Micros = 4_000_000;
/// The cost of starting a run, in posts.
const SLACK: Micros = 3;
/// The factor by which the wait of one space may exceed the average.
const FAIRNESS_FACTOR: i64 = 5;

/// How long a due run waited in a conversation without a running run.
struct Wait {
    conversation: i64,
    run: String,
    took: Micros,
    /// A fault was active meanwhile.
    in_trouble: bool,
}

pub fn due_runs_begin(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "S11",
        "99% of due runs start in 2 s (4 s after a fault), and no space waits for the others",
    );
    let waits = waits(evidence);
    check.n = waits.len();
    if waits.is_empty() {
        return check;
    }
    let slack = SLACK * latency(evidence);
    for (in_trouble, bound) in [(false, MAX_WAIT), (true, MAX_WAIT_WITHOUT_REDIS)] {
        let these = waits.iter().filter(|it| it.in_trouble == in_trouble);
        check
            .broken
            .extend(too_long(these.collect(), bound + slack));
    }
    let mean = waits.iter().map(|it| it.took).sum::<Micros>() / waits.len() as Micros;
    for (space, (sum, n)) in by_space(evidence, &waits) {
        if sum / n > slack + MAX_WAIT.max(FAIRNESS_FACTOR * mean) {
            let (its, all) = (sum / n / 1_000, mean / 1_000);
            check.broken.push(format!(
                "space {space} waits {its} ms, all of them {all} ms"
            ));
        }
    }
    check
}

/// The 95th percentile of the response time of a post, which measures the load of the machine.
fn latency(evidence: &Evidence) -> Micros {
    let tries = evidence.posts.iter().flat_map(|it| &it.tries);
    let answered = tries.filter(|it| it.status == 201);
    let mut took: Vec<Micros> = answered.map(|it| it.answered_at - it.at).collect();
    took.sort_unstable();
    let at = (took.len() * 95).div_ceil(100).checked_sub(1);
    at.map_or(0, |at| took[at])
}

fn too_long(mut waits: Vec<&Wait>, bound: Micros) -> Option<String> {
    waits.sort_by_key(|it| it.took);
    let last = (waits.len() * 99).div_ceil(100).checked_sub(1)?;
    if waits[last].took <= bound {
        return None;
    }
    let worst: Vec<String> = waits.iter().rev().take(5).map(|it| describe(it)).collect();
    Some(format!(
        "the 99th percentile of {} waits is {} ms; the longest: {}",
        waits.len(),
        waits[last].took / 1_000,
        worst.join(", ")
    ))
}

fn describe(wait: &Wait) -> String {
    format!(
        "run {} of {}: {} ms",
        wait.run,
        wait.conversation,
        wait.took / 1_000
    )
}

fn by_space(evidence: &Evidence, waits: &[Wait]) -> BTreeMap<i64, (Micros, Micros)> {
    let mut spaces: BTreeMap<i64, (Micros, Micros)> = BTreeMap::new();
    for wait in waits {
        let space = evidence.rules.get(&wait.conversation).map(|it| it.space);
        let sum = spaces.entry(space.unwrap_or_default()).or_default();
        *sum = (sum.0 + wait.took, sum.1 + 1);
    }
    spaces
}

/// The times from when a run was planned, due, and alone in its conversation until it was claimed.
fn waits(evidence: &Evidence) -> Vec<Wait> {
    let mut planned: HashMap<&str, Micros> = HashMap::new();
    let mut free: HashMap<i64, Micros> = HashMap::new();
    let mut waits = Vec::new();
    for step in &evidence.moves {
        if step.was == "running" && step.became != "running" {
            free.insert(step.conversation, step.at);
        }
        if step.became == "queued" {
            planned.insert(&step.run, step.at);
        }
        if step.was == "queued" && step.became == "running" {
            let planned = planned.get(step.run.as_str()).copied().unwrap_or(step.at);
            let free = free.get(&step.conversation).copied().unwrap_or(0);
            let from = planned.max(free).max(step.run_after * 1_000);
            let is_shared = |kind: &str| kind.starts_with("database") || kind == STARVED;
            // No node starts a run while a fault affects what all nodes depend on.
            if !was_hit(evidence, from, step.at, is_shared) {
                waits.push(Wait {
                    conversation: step.conversation,
                    run: step.run.clone(),
                    took: step.at - from,
                    in_trouble: was_hit(evidence, from - RECOVERY_TIME, step.at, |_| true),
                });
            }
        }
    }
    waits
}

/// The time that a node needs to become ready again.
const RECOVERY_TIME: Micros = 1_000_000;

/// Whether a fault of such a kind was active in between.
fn was_hit(evidence: &Evidence, from: Micros, to: Micros, kind: impl Fn(&str) -> bool) -> bool {
    let mut faults = evidence.faults.iter();
    faults.any(|it| kind(&it.kind) && it.at <= to && it.until >= from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::{fault, good, step};
    use crate::record::Rules;

    /// The good record and `n` more runs, each in its own conversation, that wait for this long.
    fn with(n: i64, seconds: i64) -> Evidence {
        let mut evidence = good();
        for at in 0..n {
            let steps = [(100, "", "queued"), (100 + seconds, "queued", "running")];
            for (n, was, became) in steps {
                let mut step = step(n, at, was, became);
                (step.run, step.conversation) = (format!("w{at}"), 50 + at);
                step.run_after = 0;
                evidence.moves.push(step);
            }
            let rules = Rules {
                space: 50 + at,
                ..Rules::default()
            };
            evidence.rules.insert(50 + at, rules);
        }
        evidence
    }

    #[test]
    fn a_run_that_starts_at_once_is_no_violation() {
        let check = due_runs_begin(&with(200, 0));

        assert_eq!(check.n, 201);
        assert!(check.broken.is_empty(), "{check:?}");
    }

    #[test]
    fn a_run_that_waits_long_is_detected() {
        let check = due_runs_begin(&with(1, 3));

        assert!(check.broken[0].contains("3000 ms"), "{check:?}");
    }

    #[test]
    fn the_limit_grows_when_the_whole_machine_is_slow() {
        let mut evidence = with(1, 3);
        evidence.posts[0].tries[0].answered_at = 500_000;

        assert!(due_runs_begin(&evidence).broken.is_empty());
    }

    #[test]
    fn no_run_starts_while_the_database_is_stopped() {
        let mut evidence = with(1, 3);
        evidence.faults = vec![fault("database stopped, long", 101, 102)];
        assert!(due_runs_begin(&evidence).broken.is_empty());

        evidence.faults = vec![fault("connections of clients cut", 90, 91)];
        assert!(!due_runs_begin(&evidence).broken.is_empty());
    }

    #[test]
    fn a_run_whose_wake_up_signal_was_lost_may_wait_four_seconds() {
        let fallen = |seconds| {
            let mut evidence = with(1, seconds);
            evidence.faults = vec![fault("kill -9", 101, 102)];
            due_runs_begin(&evidence).broken.len()
        };

        assert_eq!(fallen(2), 0);
        assert!(fallen(5) > 0);
    }

    #[test]
    fn a_run_that_is_not_due_or_not_alone_in_its_conversation_does_not_count() {
        let mut later = with(1, 3);
        later.moves[5].run_after = 103_000;
        let mut behind = with(1, 3);
        let mut other = step(102, 9, "running", "succeeded");
        (other.run, other.conversation) = ("before".to_owned(), 50);
        behind.moves.insert(5, other);

        assert!(due_runs_begin(&later).broken.is_empty());
        assert!(due_runs_begin(&behind).broken.is_empty());
    }

    #[test]
    fn a_starving_space_is_detected_among_many() {
        let mut evidence = with(400, 0);
        let late = evidence.moves.last_mut().unwrap();
        late.at += 3_000_000;

        let check = due_runs_begin(&evidence);

        assert_eq!(check.broken.len(), 1, "{check:?}");
        assert!(check.broken[0].contains("space 449"), "{check:?}");
    }
}
