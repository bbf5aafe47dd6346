//! Check D4: after a run was canceled, no more of its text is sent.

use std::collections::HashMap;

use crate::checks::check::Check;
use crate::record::{Evidence, Micros, ReceivedEvent};

/// The time in which frames that were already sent may arrive.
const MAX_TRANSIT: Micros = 1_000_000;

pub fn a_canceled_run_is_silent(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "D4",
        "a second after a run was canceled its text is not sent",
    );
    let mut canceled: HashMap<&str, (Micros, &str)> = HashMap::new();
    for step in evidence.moves.iter().filter(|it| it.became == "canceled") {
        canceled.insert(&step.run, (step.at, &step.node));
    }
    for client_log in &evidence.client_logs {
        let mut node = None;
        for note in &client_log.notes {
            match &note.event {
                ReceivedEvent::Connected(to) => node = Some(*to),
                ReceivedEvent::Chunk { run, .. } => {
                    let Some((at, writer)) = canceled.get(run.as_str()) else {
                        continue;
                    };
                    let fits = note.at <= at + MAX_TRANSIT
                        || was_held(evidence, (node, writer), *at, note.at);
                    check.expect(fits, || {
                        format!(
                            "tab {} received text of run {run} {} us after its cancellation",
                            client_log.client,
                            note.at - at
                        )
                    });
                }
                _ => {}
            }
        }
    }
    check
}

/// How long the effects of a fault last: until a new connection and the next heartbeat.
const MAX_RECOVERY: Micros = 1_000_000;
/// The same after a fault of Redis: nodes reconnect to it within five seconds.
const MAX_REDIS_RECOVERY: Micros = 5_000_000;

/// Whether the reader's node, the writer's node, or all nodes were stopped in between, had not yet
/// recovered, or got no CPU time: then frames arrived late, or the writer noticed the cancellation
/// late.
fn was_held(
    evidence: &Evidence,
    (reader, writer): (Option<usize>, &str),
    from: Micros,
    to: Micros,
) -> bool {
    let mut faults = evidence.faults.iter();
    faults.any(|it| {
        let lingers = match it.kind.contains("Redis") {
            true => MAX_REDIS_RECOVERY,
            false => MAX_RECOVERY,
        };
        let concerns = it.node.is_none() || it.node == reader || it.worker == writer;
        concerns && it.at <= to && it.until + lingers >= from
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::{fault, good};
    use crate::record::{ClientLog, Fault, Note};

    /// The number of violations if a tab of the first node receives two chunks of a run at second 6
    /// and the run was canceled at this time.
    fn broken(canceled_at: Micros, faults: Vec<Fault>) -> usize {
        let mut evidence = good();
        evidence.moves[3].became = "canceled".to_owned();
        evidence.moves[3].at = canceled_at;
        evidence.faults = faults;
        let piece = |offset| ReceivedEvent::Chunk {
            run: "r1".to_owned(),
            offset,
            delta: "a".to_owned(),
        };
        let note = |event| Note {
            at: 6_000_000,
            event,
        };
        evidence.client_logs = vec![ClientLog {
            conversation: 1,
            notes: [ReceivedEvent::Connected(0), piece(0), piece(1)]
                .map(note)
                .into(),
            ..ClientLog::default()
        }];
        a_canceled_run_is_silent(&evidence).broken.len()
    }

    #[test]
    fn a_canceled_run_that_continues_is_detected() {
        assert_eq!(broken(4_000_000, vec![]), 2);
        assert_eq!(broken(5_500_000, vec![]), 0);
        assert_eq!(broken(4_000_000, vec![fault("stop, long", 4, 6)]), 0);
    }

    #[test]
    fn late_text_is_excused_only_by_a_fault_that_affects_the_reader_or_the_writer() {
        let broken = |kind, until, node: Option<usize>, worker: &str| {
            let fault = Fault {
                node,
                worker: worker.to_owned(),
                ..fault(kind, 1, until)
            };
            broken(4_000_000, vec![fault])
        };
        let cut = "connections to the database cut";

        assert_eq!(broken("the machine was busy", 5, Some(1), "node-a"), 0);
        assert_eq!(broken("the machine was busy", 5, Some(1), "node-b"), 2);
        assert_eq!(broken(cut, 3, None, ""), 0);
        assert_eq!(broken(cut, 2, None, ""), 2);
        assert_eq!(broken("Redis killed", 2, None, ""), 0);
    }
}
