//! Checks T4 and T5: the events and the snapshots that tabs received are those of every change.

use std::collections::{HashMap, HashSet};

use crate::checks::check::Check;
use crate::record::{ClientLog, Evidence, ReceivedEvent, Writing};
use crate::stored_record::sees;

pub fn resuming_is_honest(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "T4",
        "a client that reconnects gets every change or a reset",
    );
    let mut written: HashMap<i64, Vec<&Writing>> = HashMap::new();
    for row in &evidence.writings {
        written.entry(row.conversation).or_default().push(row);
    }
    for client_log in &evidence.client_logs {
        for note in &client_log.notes {
            let ReceivedEvent::Snapshot {
                after: Some(after),
                rev,
                reset: false,
                messages,
                ..
            } = &note.event
            else {
                continue;
            };
            let received: HashSet<i64> = messages.iter().map(|(id, _)| *id).collect();
            let changed = written.get(&client_log.conversation).into_iter().flatten();
            let changed = changed.filter(|it| sees(&[client_log.membership], &it.audience));
            let mut missing = changed
                .filter(|it| *after < it.rev && it.rev <= *rev && !received.contains(&it.message));
            let missing = missing.next();
            check.expect(missing.is_none(), || {
                format!(
                    "tab {} reconnected with {after}, got {rev} and missed {missing:?}",
                    client_log.client
                )
            });
        }
    }
    check
}

pub fn a_rev_is_one_event(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "T5",
        "a rev is the same event for every client that sees it, and is left out for no other reason",
    );
    let mut known: HashMap<(i64, i64), (&str, u64)> = HashMap::new();
    for (client_log, event) in durable_events(evidence) {
        let ReceivedEvent::Durable {
            rev,
            kind,
            digest,
            is_reduced: false,
            ..
        } = event
        else {
            continue;
        };
        let this = (kind.as_str(), *digest);
        let first = *known.entry((client_log.conversation, *rev)).or_insert(this);
        check.expect(first == this, || {
            format!(
                "rev {rev} of conversation {} is {first:?} and {this:?}",
                client_log.conversation
            )
        });
    }
    let mut written: HashMap<(i64, i64), &Writing> = HashMap::new();
    for row in &evidence.writings {
        written.insert((row.conversation, row.rev), row);
    }
    for (client_log, event) in durable_events(evidence) {
        let ReceivedEvent::Durable { rev, kind, .. } = event else {
            continue;
        };
        let newest = evidence
            .heads
            .get(&client_log.conversation)
            .map_or(0, |it| it.0);
        check.expect(*rev <= newest, || {
            format!(
                "rev {rev} of conversation {} was sent but never committed: {newest}",
                client_log.conversation
            )
        });
        let row = written.get(&(client_log.conversation, *rev));
        let is_seen = row.is_some_and(|it| sees(&[client_log.membership], &it.audience));
        check.expect(!is_seen || kind != "rev_advanced", || {
            format!("tab {} did not receive {row:?}", client_log.client)
        });
    }
    check
}

fn durable_events(evidence: &Evidence) -> impl Iterator<Item = (&ClientLog, &ReceivedEvent)> {
    let all = evidence.client_logs.iter();
    all.flat_map(|it| it.notes.iter().map(move |note| (it, &note.event)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::received;

    fn broken(check: fn(&Evidence) -> Check, spoil: impl FnOnce(&mut Evidence)) -> usize {
        let mut evidence = received();
        spoil(&mut evidence);
        check(&evidence).broken.len()
    }

    #[test]
    fn a_good_record_has_no_violation() {
        for check in [resuming_is_honest, a_rev_is_one_event] {
            let check = check(&received());
            assert!(check.n > 0 && check.broken.is_empty(), "{check:?}");
        }
    }

    /// Membership 4 is not in the audience of the messages, and received only that `rev` has advanced.
    fn whispered(it: &mut Evidence) {
        it.writings
            .iter_mut()
            .for_each(|row| row.audience = vec![3]);
        let client_log = &mut it.client_logs[1];
        client_log.membership = 4;
        client_log.notes[0].event = ReceivedEvent::Durable {
            rev: 1,
            kind: "rev_advanced".to_owned(),
            is_reduced: true,
            digest: 9,
            ends: None,
            message: None,
        };
        if let ReceivedEvent::Snapshot { messages, .. } = &mut client_log.notes[1].event {
            messages.clear();
        }
    }

    #[test]
    fn only_who_does_not_see_a_message_may_miss_it() {
        let seen = |it: &mut Evidence| {
            whispered(it);
            it.client_logs[1].membership = 3;
        };

        for check in [resuming_is_honest, a_rev_is_one_event] {
            assert_eq!(broken(check, whispered), 0);
            assert_eq!(broken(check, seen), 1);
        }
    }

    #[test]
    fn a_missed_change_and_two_events_of_one_rev_are_detected() {
        let hole = |it: &mut Evidence| {
            if let ReceivedEvent::Snapshot { messages, .. } = &mut it.client_logs[0].notes[1].event
            {
                messages.pop();
            }
        };
        let other = |it: &mut Evidence| {
            if let ReceivedEvent::Durable { digest, .. } = &mut it.client_logs[1].notes[0].event {
                *digest = 8;
            }
        };

        assert_eq!(broken(resuming_is_honest, hole), 1);
        assert_eq!(broken(a_rev_is_one_event, other), 1);
        assert_eq!(
            broken(a_rev_is_one_event, |it| it.heads = [(1, (0, 2))].into()),
            2
        );
    }
}
