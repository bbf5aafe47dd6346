//! Checks sockets: a snapshot contains everything that existed, a socket without a client is
//! closed, a claimed `rev` is never trusted, and every event for the socket arrives.

use std::collections::HashMap;

use crate::checks::check::Check;
use crate::record::{ClientLog, Evidence, Micros, ReceivedEvent};

pub fn no_event_is_lost_after_a_snapshot(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "T9",
        "a snapshot has all that was acknowledged before its request; the next event follows it",
    );
    let known = acknowledged(evidence);
    for client_log in &evidence.client_logs {
        let known = known
            .get(&client_log.conversation)
            .map_or(&[][..], Vec::as_slice);
        for (n, note) in client_log.notes.iter().enumerate() {
            let ReceivedEvent::Snapshot { asked_at, rev, .. } = &note.event else {
                continue;
            };
            let before = known.partition_point(|(at, _)| at < asked_at);
            let least = before.checked_sub(1).map_or(0, |it| known[it].1);
            check.expect(*rev >= least, || {
                format!(
                    "tab {} got rev {rev} of conversation {}, but {least} had been acknowledged",
                    client_log.client, client_log.conversation
                )
            });
            let Some((at, next)) = follows(client_log, n, *rev) else {
                continue;
            };
            check.expect(next == rev + 1 || was_hit(evidence, note.at, at), || {
                format!(
                    "tab {} got rev {rev} of conversation {} and received {next} next",
                    client_log.client, client_log.conversation
                )
            });
        }
    }
    check
}

/// For each conversation the times of acknowledgements, and the highest `rev` at each of them.
fn acknowledged(evidence: &Evidence) -> HashMap<i64, Vec<(Micros, i64)>> {
    let new = evidence.writings.iter().filter(|it| it.is_new);
    let revs: HashMap<i64, i64> = new.map(|it| (it.message, it.rev)).collect();
    let mut known: HashMap<i64, Vec<(Micros, i64)>> = HashMap::new();
    for post in &evidence.posts {
        let ack = post.acknowledged();
        if let Some((ack, rev)) = ack.and_then(|it| Some((it, revs.get(&it.message)?))) {
            let known = known.entry(post.conversation).or_default();
            known.push((ack.answered_at, *rev));
        }
    }
    for acks in known.values_mut() {
        acks.sort_unstable();
        let mut highest = 0;
        for (_, rev) in acks {
            highest = highest.max(*rev);
            *rev = highest;
        }
    }
    known
}

/// The first event after a snapshot, if it arrived before the tab subscribed again.
fn follows(client_log: &ClientLog, snapshot: usize, rev: i64) -> Option<(Micros, i64)> {
    for note in &client_log.notes[snapshot + 1..] {
        match &note.event {
            ReceivedEvent::Snapshot { .. }
            | ReceivedEvent::Connected(_)
            | ReceivedEvent::Resync => return None,
            ReceivedEvent::Durable { rev: next, .. } if *next > rev => {
                return Some((note.at, *next));
            }
            _ => {}
        }
    }
    None
}

/// Whether a node was killed between a commit and its publication, or Redis lost a message: then
/// the tab detects a gap.
fn was_hit(evidence: &Evidence, from: Micros, to: Micros) -> bool {
    let mut faults = evidence.faults.iter();
    faults.any(|it| it.at <= to && it.until >= from - 5_000_000)
}

/// The limit until a silent client is gone: 60 s with a ping every 20 s, and a margin.
const MAX_SILENCE: Micros = 85_000_000;

pub fn dead_sockets_are_closed(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "T10",
        "a silent client is disconnected in time and no longer present",
    );
    for silent_client in &evidence.silent_clients {
        let in_time = silent_client.closed_at > 0
            && silent_client.closed_at - silent_client.silent_at <= MAX_SILENCE;
        check.expect(in_time && !silent_client.is_shown, || {
            format!("{silent_client:?}")
        });
    }
    check
}

pub fn future_positions_are_rejected(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "T11",
        "a client that claims a future rev gets a reset, and no other client gets an older rev",
    );
    for client_log in &evidence.client_logs {
        for note in &client_log.notes {
            let ReceivedEvent::Snapshot {
                after: Some(after),
                rev,
                reset,
                ..
            } = &note.event
            else {
                continue;
            };
            check.expect(*reset || after <= rev, || {
                format!(
                    "tab {} claimed rev {after} of conversation {} and continues from {rev}",
                    client_log.client, client_log.conversation
                )
            });
        }
    }
    check
}

pub fn a_suggestion_reaches_one_user(evidence: &Evidence) -> Check {
    let mut check = Check::of("X2", "a suggestion is sent only to its user");
    for client_log in &evidence.client_logs {
        for note in &client_log.notes {
            if let ReceivedEvent::Candidate(membership) = note.event {
                check.expect(membership == client_log.membership, || {
                    format!(
                        "tab {} received a suggestion for membership {membership}",
                        client_log.client
                    )
                });
            }
        }
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::{fault, good};
    use crate::record::{Note, SilentClient};

    fn snapshot(asked_at: Micros, after: Option<i64>, rev: i64, reset: bool) -> ReceivedEvent {
        ReceivedEvent::Snapshot {
            asked_at,
            after,
            rev,
            reset,
            messages: Vec::new(),
            stream: None,
        }
    }

    fn durable(rev: i64) -> ReceivedEvent {
        ReceivedEvent::Durable {
            rev,
            kind: "message_created".to_owned(),
            is_reduced: false,
            digest: 1,
            ends: None,
            message: None,
        }
    }

    /// The good record, whose only message, of rev 1, was acknowledged at second 3.
    fn received(events: Vec<ReceivedEvent>) -> Evidence {
        let mut evidence = good();
        evidence.posts[0].tries[0].answered_at = 3_000_000;
        let note = |event| Note {
            at: 20_000_000,
            event,
        };
        evidence.client_logs = vec![ClientLog {
            conversation: 1,
            membership: 4,
            notes: events.into_iter().map(note).collect(),
            ..ClientLog::default()
        }];
        evidence
    }

    fn broken(check: fn(&Evidence) -> Check, notes: Vec<ReceivedEvent>) -> usize {
        check(&received(notes)).broken.len()
    }

    #[test]
    fn a_snapshot_without_an_acknowledged_message_is_detected() {
        let check = no_event_is_lost_after_a_snapshot;

        assert_eq!(broken(check, vec![snapshot(4_000_000, None, 1, false)]), 0);
        assert_eq!(broken(check, vec![snapshot(4_000_000, None, 0, false)]), 1);
        assert_eq!(broken(check, vec![snapshot(2_000_000, None, 0, false)]), 0);
    }

    #[test]
    fn a_gap_after_a_snapshot_needs_a_fault() {
        let check = no_event_is_lost_after_a_snapshot;
        let begins = || snapshot(0, None, 4, false);

        assert_eq!(broken(check, vec![begins(), durable(4), durable(5)]), 0);
        assert_eq!(broken(check, vec![begins(), durable(6)]), 1);
        assert_eq!(
            broken(check, vec![begins(), ReceivedEvent::Resync, durable(6)]),
            0
        );
        let mut hit = received(vec![begins(), durable(6)]);
        hit.faults = vec![fault("kill -9", 18, 19)];
        assert_eq!(check(&hit).broken.len(), 0);
    }

    #[test]
    fn a_dead_socket_that_stays_or_is_shown_is_detected() {
        let silent_client = |closed_at, is_shown| {
            let mut evidence = good();
            evidence.silent_clients = vec![SilentClient {
                node: 0,
                silent_at: 1_000_000,
                closed_at,
                is_shown,
            }];
            dead_sockets_are_closed(&evidence).broken.len()
        };

        assert_eq!(silent_client(62_000_000, false), 0);
        assert_eq!(silent_client(0, false), 1);
        assert_eq!(silent_client(90_000_000, false), 1);
        assert_eq!(silent_client(62_000_000, true), 1);
    }

    #[test]
    fn an_accepted_claim_from_the_future_is_detected() {
        let check = future_positions_are_rejected;

        assert_eq!(broken(check, vec![snapshot(0, Some(9), 4, true)]), 0);
        assert_eq!(broken(check, vec![snapshot(0, Some(4), 4, false)]), 0);
        assert_eq!(broken(check, vec![snapshot(0, Some(9), 4, false)]), 1);
    }

    #[test]
    fn a_suggestion_sent_to_the_wrong_user_is_detected() {
        let check = a_suggestion_reaches_one_user;

        assert_eq!(broken(check, vec![ReceivedEvent::Candidate(4)]), 0);
        assert_eq!(broken(check, vec![ReceivedEvent::Candidate(5)]), 1);
    }
}
