//! Checks H1 to H4: the turns of people.

use std::collections::{BTreeSet, HashMap};

use crate::checks::check::{Check, of_people};
use crate::cpu_starvation::STARVED;
use crate::record::{Evidence, Fault, Micros, ReceivedEvent};
use crate::stored_record::{RoundChange, StoredText};

/// A node reads the deadlines every two seconds, and needs a second to skip a turn when many are over.
const MAX_DELAY: Micros = 3_000_000;
/// The time after a fault in which a node connects again, and finds what it has missed.
const RECOVERY_TIME: Micros = 1_000_000;

pub fn a_turn_ends_at_its_deadline(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "H1",
        "no round waits for a person longer than until the deadline",
    );
    let mut waiting: HashMap<&str, &RoundChange> = HashMap::new();
    for change in &evidence.stored.round_changes {
        let present = waiting.get(change.round.as_str());
        if present.is_some_and(|it| (it.cursor, it.deadline) == (change.cursor, change.deadline))
            && is_waiting(change)
        {
            continue;
        }
        if let Some(turn) = waiting.remove(change.round.as_str()) {
            let deadline = turn.deadline * 1_000;
            let allowed = MAX_DELAY + outage(&evidence.faults, deadline, change.at);
            check.expect(change.at <= deadline + allowed, || {
                format!(
                    "the turn ended {} ms after its deadline, {} ms were allowed: {turn:?}",
                    (change.at - deadline) / 1_000,
                    allowed / 1_000
                )
            });
        }
        if is_waiting(change) {
            waiting.insert(&change.round, change);
        }
    }
    for turn in waiting.values() {
        check.expect(false, || format!("the round waits in the end: {turn:?}"));
    }
    check
}

fn is_waiting(change: &RoundChange) -> bool {
    change.status == "active" && change.state == "waiting" && change.deadline > 0
}

/// How long in between no node could skip a turn: the database or every node was affected by a fault, or
/// recovered from it.
fn outage(faults: &[Fault], from: Micros, to: Micros) -> Micros {
    let is_shared = |it: &Fault| it.kind.starts_with("database") || it.kind == STARVED;
    let near: Vec<&Fault> = faults
        .iter()
        .filter(|it| it.at <= to && it.until + RECOVERY_TIME >= from)
        .filter(|it| it.node.is_some() || is_shared(it))
        .collect();
    let all: BTreeSet<usize> = faults.iter().filter_map(|it| it.node).collect();
    let ends = near.iter().flat_map(|it| [it.at, it.until + RECOVERY_TIME]);
    let mut instants: Vec<Micros> = ends.filter(|it| (from..=to).contains(it)).collect();
    instants.extend([from, to]);
    instants.sort_unstable();
    let is_out = |at: Micros| {
        let here = near
            .iter()
            .filter(|it| it.at <= at && at < it.until + RECOVERY_TIME);
        let nodes: BTreeSet<Option<usize>> = here.map(|it| it.node).collect();
        nodes.contains(&None) || (!all.is_empty() && nodes.len() == all.len())
    };
    let parts = instants.windows(2).filter(|it| is_out(it[0]));
    parts.map(|it| it[1] - it[0]).sum()
}

pub fn a_turn_is_one_message_of_its_person(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "H2",
        "a turn that was taken is one public message of its person, which fills no other turn",
    );
    let texts: HashMap<i64, &StoredText> = evidence
        .stored
        .texts
        .iter()
        .map(|it| (it.message, it))
        .collect();
    let mut used = BTreeSet::new();
    let taken = evidence
        .stored
        .turns
        .iter()
        .filter(|it| it.status == "spoken");
    for turn in taken {
        let text = texts.get(&turn.message);
        let is_own = text.is_some_and(|it| {
            (it.author, it.conversation) == (turn.membership, turn.conversation)
                && it.audience.is_empty()
        });
        check.expect(is_own && used.insert(turn.message), || {
            format!("{turn:?} was taken by {text:?}")
        });
    }
    check
}

pub fn a_turn_is_announced_to_its_person(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "H3",
        "only the person whose turn it is receives `your_turn`",
    );
    for client_log in &evidence.client_logs {
        for note in &client_log.notes {
            if let ReceivedEvent::Turn(membership) = note.event {
                check.expect(membership == client_log.membership, || {
                    format!(
                        "tab {} received the turn of {membership}",
                        client_log.client
                    )
                });
            }
        }
    }
    check
}

pub fn a_message_starts_or_joins_a_round(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "H4",
        "where people take turns, a message fills a turn, joins the active round or starts one",
    );
    let changes = &evidence.stored.round_changes;
    let by_step: BTreeSet<(i64, i64)> = changes.iter().map(|it| (it.tx, it.conversation)).collect();
    let mut before: HashMap<i64, &RoundChange> = HashMap::new();
    let mut next = changes.iter().peekable();
    let in_turns = |conversation: i64| {
        let rules = evidence.rules.get(&conversation);
        rules.is_some_and(|it| it.humans_take_turns)
    };
    let posts = of_people(evidence).filter(|it| !it.is_for_people && in_turns(it.conversation));
    for post in posts {
        while let Some(change) = next.next_if(|it| it.n < post.n) {
            before.insert(change.conversation, change);
        }
        let active = before.get(&post.conversation);
        let is_there = active.is_some_and(|it| it.status == "active")
            || by_step.contains(&(post.tx, post.conversation));
        check.expect(is_there, || {
            format!("message {} started no round: {active:?}", post.message)
        });
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::{fault, good, writing};
    use crate::record::{ClientLog, Note, Rules};
    use crate::stored_record::PersonTurn;

    fn change(n: i64, at_ms: i64, status: &str, state: &str, deadline: i64) -> RoundChange {
        RoundChange {
            n,
            at: at_ms * 1_000,
            tx: n,
            conversation: 1,
            round: "round2".to_owned(),
            status: status.to_owned(),
            state: state.to_owned(),
            cursor: 0,
            deadline,
        }
    }

    /// Membership 3 takes its turn, which began at second 20, and posts at second 21.
    fn taken() -> Evidence {
        let mut evidence = good();
        let rules = Rules {
            humans_take_turns: true,
            ..Rules::default()
        };
        evidence.rules = [(1, rules)].into();
        evidence.writings[0].tx = 1;
        evidence
            .writings
            .push(writing(20, 9, 3, "user", "c0-2 says"));
        evidence.stored.round_changes = vec![
            change(1, 19_000, "active", "generating", 0),
            change(10, 20_000, "active", "waiting", 23_000),
            change(21, 21_000, "finished", "waiting", 0),
        ];
        evidence.stored.round_changes[2].tx = 9;
        evidence.stored.turns = vec![PersonTurn {
            conversation: 1,
            membership: 3,
            status: "spoken".to_owned(),
            message: 13,
            ..PersonTurn::default()
        }];
        evidence.stored.texts = vec![StoredText {
            conversation: 1,
            message: 13,
            author: 3,
            ..StoredText::default()
        }];
        evidence.client_logs = vec![ClientLog {
            membership: 3,
            notes: vec![Note {
                at: 0,
                event: ReceivedEvent::Turn(3),
            }],
            ..ClientLog::default()
        }];
        evidence
    }

    fn broken(check: fn(&Evidence) -> Check, spoil: impl FnOnce(&mut Evidence)) -> usize {
        let mut evidence = taken();
        spoil(&mut evidence);
        check(&evidence).broken.len()
    }

    #[test]
    fn a_good_record_has_no_violation() {
        let all: [fn(&Evidence) -> Check; 4] = [
            a_turn_ends_at_its_deadline,
            a_turn_is_one_message_of_its_person,
            a_turn_is_announced_to_its_person,
            a_message_starts_or_joins_a_round,
        ];
        for check in all {
            let check = check(&taken());
            assert!(check.n > 0 && check.broken.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn a_turn_that_outlasts_its_deadline_is_detected() {
        let check = a_turn_ends_at_its_deadline;
        let ends_at = |ms: i64| move |it: &mut Evidence| it.stored.round_changes[2].at = ms * 1_000;
        let endless = |it: &mut Evidence| it.stored.round_changes.truncate(2);
        let repeated = |it: &mut Evidence| {
            let again = change(11, 20_500, "active", "waiting", 23_000);
            it.stored.round_changes.insert(2, again);
        };

        assert_eq!(broken(check, ends_at(25_000)), 0);
        assert_eq!(broken(check, ends_at(27_000)), 1);
        assert_eq!(broken(check, endless), 1);
        assert_eq!(broken(check, repeated), 0);
    }

    #[test]
    fn only_a_fault_of_all_nodes_or_of_the_database_excuses_a_late_end() {
        let late = |faults: Vec<Fault>| {
            let mut evidence = taken();
            evidence.stored.round_changes[2].at = 28_000_000;
            evidence.faults = faults;
            a_turn_ends_at_its_deadline(&evidence).broken.len()
        };
        let of_node = |node, from, to| Fault {
            node,
            ..fault("kill -9", from, to)
        };
        let of_the_database = |from, to| Fault {
            node: None,
            ..fault("database stopped", from, to)
        };

        assert_eq!(late(vec![of_the_database(23, 25)]), 0);
        assert_eq!(late(vec![of_the_database(10, 12)]), 1);
        assert_eq!(late(vec![of_node(None, 23, 25)]), 1);
        assert_eq!(
            late(vec![of_node(Some(0), 23, 25), of_node(Some(1), 1, 2)]),
            1
        );
        assert_eq!(
            late(vec![of_node(Some(0), 23, 25), of_node(Some(1), 23, 25)]),
            0
        );
    }

    #[test]
    fn a_turn_that_another_message_fills_is_detected() {
        let check = a_turn_is_one_message_of_its_person;
        let twice = |it: &mut Evidence| it.stored.turns.push(it.stored.turns[0].clone());

        assert_eq!(broken(check, twice), 1);
        assert_eq!(broken(check, |it| it.stored.texts[0].author = 4), 1);
        assert_eq!(broken(check, |it| it.stored.texts[0].audience = vec![3]), 1);
        assert_eq!(broken(check, |it| it.stored.texts.clear()), 1);
    }

    #[test]
    fn a_turn_sent_to_another_person_and_a_message_without_a_round_are_detected() {
        assert_eq!(
            broken(a_turn_is_announced_to_its_person, |it| it.client_logs[0]
                .membership = 4),
            1
        );
        let check = a_message_starts_or_joins_a_round;
        assert_eq!(broken(check, |it| it.stored.round_changes[2].tx = 99), 0);
        let ended = |it: &mut Evidence| {
            it.stored.round_changes[1].status = "finished".to_owned();
            it.stored.round_changes.truncate(2);
        };
        assert_eq!(broken(check, ended), 1);
    }
}
