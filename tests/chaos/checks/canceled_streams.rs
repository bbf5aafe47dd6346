//! Check D4: after a run was canceled, nothing more of its text is sent.

use std::collections::HashMap;

use crate::checks::check::Check;
use crate::record::{Evidence, Micros, ReceivedEvent};

/// How long what is on its way may take.
const MAX_TRANSIT: Micros = 1_000_000;

pub fn a_canceled_run_is_silent(evidence: &Evidence) -> Check {
    let mut check = Check::of("D4", "a second after a run was canceled nobody hears of it");
    let mut canceled: HashMap<&str, (Micros, &str)> = HashMap::new();
    for step in evidence.moves.iter().filter(|it| it.became == "canceled") {
        canceled.insert(&step.run, (step.at, &step.node));
    }
    for ear in &evidence.ears {
        let mut node = None;
        for note in &ear.notes {
            match &note.heard {
                ReceivedEvent::Connected(to) => node = Some(*to),
                ReceivedEvent::Chunk { run, .. } => {
                    let Some((at, writer)) = canceled.get(run.as_str()) else {
                        continue;
                    };
                    let fits = note.at <= at + MAX_TRANSIT
                        || was_held(evidence, (node, writer), *at, note.at);
                    check.expect(fits, || {
                        format!(
                            "tab {} heard of run {run} {} us after its cancel",
                            ear.client,
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

/// How long the effects of a fault last: a connection has to be made again, and a heartbeat sent.
const MAX_RECOVERY: Micros = 1_000_000;
/// The same after a fault of Redis: nodes receive from each other again within five seconds.
const MAX_REDIS_RECOVERY: Micros = 5_000_000;

/// Whether the reader's node, the writer's node, or all of them were stopped in between, had not
/// quite recovered, or got no CPU time: then frames arrived late, and the writer learned late that
/// its run was canceled.
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

    /// How often the rule is broken when a tab of the first node hears, at second 6, two pieces of a
    /// run that was canceled so early.
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
        let note = |heard| Note {
            at: 6_000_000,
            heard,
        };
        evidence.ears = vec![ClientLog {
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
    fn it_may_go_on_where_the_writer_was_held_or_has_not_yet_recovered_and_nowhere_else() {
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
