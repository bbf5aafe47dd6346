//! Records when a thread got no CPU time: the server does not cause such a delay, and other nodes
//! may rightly consider a node without CPU time dead.
//!
//! Linux counts how long each thread was runnable without a CPU. A node that waits for a lock, the
//! database or its own work is not starved.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::fault_injectors::FaultLog;
use crate::node::Node;
use crate::record::{Evidence, Fault, Micros, now};

/// A fault that was observed, not injected.
pub const STARVED: &str = "the machine was busy";

/// The interval between two samples of a node.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// Records when the harness itself, and with it other threads, was scheduled late.
pub async fn watch_the_clock(done: FaultLog) {
    let beat = Duration::from_millis(50);
    loop {
        let (before, began) = (now(), Instant::now());
        sleep(beat).await;
        if began.elapsed() > beat * 8 {
            done.lock().push(found(None, String::new(), before));
        }
    }
}

/// Records when a node lacked CPU time for half of an interval or more.
pub async fn watch_a_node(node: Arc<Node>, done: FaultLog) {
    let mut last: Option<usize> = None;
    loop {
        let (worker, from, before) = (node.worker(), now(), waits(node.pid()));
        sleep(SAMPLE_INTERVAL).await;
        let waited = longest(&before, &waits(node.pid()));
        if waited * 2 < now() - from {
            last = None;
            continue;
        }
        let mut done = done.lock();
        // Adjacent samples are one period of starvation.
        match last {
            Some(at) if done[at].worker == worker => done[at].until = now(),
            _ => {
                last = Some(done.len());
                done.push(found(Some(node.index), worker, from));
            }
        }
    }
}

fn found(node: Option<usize>, worker: String, at: Micros) -> Fault {
    Fault {
        kind: STARVED.to_owned(),
        node,
        worker,
        at,
        until: now(),
        healed: true,
    }
}

/// Returns how long a process, or all of them, lacked CPU time in this period.
pub fn starved_for(faults: &[Fault], worker: &str, from: Micros, to: Micros) -> Micros {
    let theirs = |it: &&Fault| it.kind == STARVED && (it.node.is_none() || it.worker == worker);
    let within = |it: &Fault| (it.until.min(to) - it.at.max(from)).max(0);
    let (mut of_all, mut own) = (0, 0);
    for fault in faults.iter().filter(theirs) {
        let sum = if fault.node.is_none() {
            &mut of_all
        } else {
            &mut own
        };
        *sum += within(fault);
    }
    // Both recorders may have recorded the same period.
    of_all.max(own)
}

/// Describes how often and how long nodes lacked CPU time.
pub fn describe(evidence: &Evidence) -> String {
    let hungry = evidence.faults.iter().filter(|it| it.kind == STARVED);
    let lasted: Micros = hungry.clone().map(|it| it.until - it.at).sum();
    let seconds = lasted / 1_000_000;
    format!(
        "threads got no CPU time {} times, {seconds} s in total",
        hungry.count()
    )
}

/// How long each thread of a process has been runnable without a CPU, in nanoseconds.
fn waits(pid: Option<u32>) -> BTreeMap<String, i64> {
    let Some(pid) = pid else {
        return BTreeMap::new();
    };
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let waits = threads.filter_map(|it| {
        let counted = fs::read_to_string(it.path().join("schedstat")).ok()?;
        Some((it.file_name().into_string().ok()?, waited(&counted)?))
    });
    waits.collect()
}

/// Parses the second of the three values `CPU time, waiting time, time slices`.
fn waited(counted: &str) -> Option<i64> {
    counted.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the longest waiting time of a thread between two samples.
fn longest(before: &BTreeMap<String, i64>, after: &BTreeMap<String, i64>) -> Micros {
    let waited = after.iter().filter_map(|(thread, at)| {
        let was = before.get(thread)?;
        Some((at - was) / 1_000)
    });
    waited.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{STARVED, longest, starved_for, waited};
    use crate::checks::check::example::fault;

    #[test]
    fn the_waiting_time_of_a_thread_is_parsed() {
        assert_eq!(waited("234559417 927041215 473\n"), Some(927_041_215));
        assert_eq!(waited(""), None);
    }

    #[test]
    fn the_most_starved_thread_counts_and_a_new_one_does_not() {
        let at = |times: &[(&str, i64)]| {
            let times = times.iter().map(|(name, ns)| ((*name).to_owned(), *ns));
            times.collect()
        };
        let before = at(&[("1", 0), ("2", 5_000)]);
        let after = at(&[("1", 2_000), ("2", 155_000), ("3", 900_000)]);

        assert_eq!(longest(&before, &after), 150);
    }

    #[test]
    fn starvation_of_others_does_not_count_and_that_of_all_does_once() {
        let mut faults = vec![fault(STARVED, 1, 3), fault(STARVED, 2, 6)];
        (faults[1].node, faults[1].worker) = (None, String::new());
        faults.push(fault("kill -9", 1, 9));

        assert_eq!(starved_for(&faults, "node-a", 0, 9_000_000), 4_000_000);
        assert_eq!(
            starved_for(&faults[..1], "node-a", 2_000_000, 9_000_000),
            1_000_000
        );
        assert_eq!(starved_for(&faults[..1], "node-b", 0, 9_000_000), 0);
    }
}
