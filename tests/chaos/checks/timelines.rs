//! Checks T1 to T6 and T8: the numbers of a timeline, and what readers and tabs received of it.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::checks::check::Check;
use crate::record::{ClientLog, Evidence, Line, ReceivedEvent, Writing};

pub fn numbers_without_gaps(evidence: &Evidence) -> Check {
    let mut check = Check::of("T1", "seq is 1, 2, 3 … in the order of commits");
    let mut last: BTreeMap<i64, i64> = BTreeMap::new();
    for row in evidence.writings.iter().filter(|it| it.is_new) {
        let last = last.entry(row.conversation).or_default();
        // Hidden messages are not cloned into a branch: there the numbers only increase.
        let follows = row.seq == *last + 1 || (row.origin != 0 && row.seq > *last);
        check.expect(follows, || format!("{} after {last}: {row:?}", row.seq));
        *last = row.seq;
    }
    for (conversation, (_, last_seq)) in &evidence.heads {
        let n = last.get(conversation).copied().unwrap_or(0);
        check.expect(*last_seq == n, || {
            format!("conversation {conversation} has last_seq {last_seq} but {n} messages")
        });
    }
    check
}

pub fn no_late_arrivals(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "T2",
        "whenever a message is visible, all before it are visible",
    );
    for (n, sample) in evidence.samples.iter().enumerate() {
        for (conversation, count, greatest) in &sample.counts {
            check.expect(count == greatest, || {
                format!(
                    "sample {n}: conversation {conversation} has {count} messages up to {greatest}"
                )
            });
        }
    }
    check
}

pub fn tabs_show_what_is_stored(evidence: &Evidence) -> Check {
    let mut check = Check::of("T3", "in the end every tab shows what is stored");
    let nothing = Vec::new();
    for client_log in &evidence.client_logs {
        let stored = evidence
            .timelines
            .get(&client_log.conversation)
            .unwrap_or(&nothing);
        let stored = visible_part(client_log, stored);
        let place = client_log
            .lines
            .iter()
            .zip(stored)
            .position(|(shown, stored)| shown != stored);
        let place = place.unwrap_or(client_log.lines.len().min(stored.len()));
        check.expect(client_log.lines == stored, || {
            format!(
                "tab {} shows {} of {} lines of conversation {}, at {place} {:?} instead of {:?}",
                client_log.client,
                client_log.lines.len(),
                stored.len(),
                client_log.conversation,
                client_log.lines.get(place),
                stored.get(place)
            )
        });
        check.expect(client_log.complaints.is_empty(), || {
            client_log.complaints.join("\n")
        });
    }
    check
}

/// A client that subscribed late received the newest messages, and all that followed.
pub fn visible_part<'a>(client_log: &ClientLog, stored: &'a [Line]) -> &'a [Line] {
    let first = client_log.lines.first().filter(|_| client_log.is_late);
    let from = first.and_then(|(first, ..)| stored.iter().position(|(seq, ..)| seq == first));
    &stored[from.unwrap_or(0)..]
}

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
    let mut check = Check::of("T5", "a rev is the same event for every client");
    let mut known: HashMap<(i64, i64), (&str, u64)> = HashMap::new();
    for client_log in &evidence.client_logs {
        for note in &client_log.notes {
            let ReceivedEvent::Durable {
                rev, kind, digest, ..
            } = &note.event
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
    }
    for ((conversation, rev), _) in known {
        let newest = evidence.heads.get(&conversation).map_or(0, |it| it.0);
        check.expect(rev <= newest, || {
            format!(
                "rev {rev} of conversation {conversation} was sent but never committed: {newest}"
            )
        });
    }
    check
}

pub fn every_reader_sees_what_was_written(evidence: &Evidence) -> Check {
    let mut check = Check::of("T6", "an acknowledged message can be read through any node");
    for read in &evidence.read_backs {
        check.expect(read.found, || format!("{read:?}"));
    }
    check
}

pub fn no_reader_is_far_behind(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "T8",
        "ten seconds after the last event every open tab shows it",
    );
    check.n = evidence.n_tabs;
    check.broken = evidence.behind.clone();
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::good;
    use crate::record::{DatabaseSample, Note, ReadBack};

    /// The good record, received by two tabs.
    fn received() -> Evidence {
        let mut evidence = good();
        let snapshot = ReceivedEvent::Snapshot {
            asked_at: 0,
            after: Some(0),
            rev: 4,
            reset: false,
            messages: vec![(11, 1), (12, 4)],
            stream: None,
        };
        let durable = ReceivedEvent::Durable {
            rev: 1,
            kind: "message_created".to_owned(),
            digest: 7,
            ends: None,
            message: Some((11, 1)),
        };
        let note = |event| Note { at: 0, event };
        let client_log = |client| ClientLog {
            client,
            conversation: 1,
            notes: vec![note(durable.clone()), note(snapshot.clone())],
            lines: evidence.timelines[&1].clone(),
            ..ClientLog::default()
        };
        evidence.client_logs = vec![client_log(0), client_log(1)];
        evidence.samples = vec![DatabaseSample {
            counts: vec![(1, 2, 2)],
        }];
        evidence.read_backs = vec![ReadBack {
            found: true,
            ..ReadBack::default()
        }];
        evidence
    }

    fn broken(check: fn(&Evidence) -> Check, spoil: impl FnOnce(&mut Evidence)) -> usize {
        let mut evidence = received();
        spoil(&mut evidence);
        check(&evidence).broken.len()
    }

    #[test]
    fn a_good_record_has_no_violation() {
        let all: [fn(&Evidence) -> Check; 6] = [
            numbers_without_gaps,
            no_late_arrivals,
            tabs_show_what_is_stored,
            resuming_is_honest,
            a_rev_is_one_event,
            every_reader_sees_what_was_written,
        ];
        for check in all {
            let check = check(&received());
            assert!(check.n > 0 && check.broken.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn a_gap_a_duplicate_and_a_wrong_last_number_are_detected() {
        assert_eq!(broken(numbers_without_gaps, |it| it.writings[1].seq = 3), 2);
        assert_eq!(broken(numbers_without_gaps, |it| it.writings[1].seq = 1), 2);
        assert_eq!(
            broken(numbers_without_gaps, |it| it.heads = [(1, (4, 3))].into()),
            1
        );
        assert_eq!(
            broken(no_late_arrivals, |it| it.samples[0].counts[0].1 = 1),
            1
        );
    }

    #[test]
    fn a_branch_begins_with_the_visible_messages_and_continues_their_numbers() {
        let cloned = |seq: i64| {
            move |it: &mut Evidence| {
                (it.writings[0].origin, it.writings[0].seq) = (7, seq);
                it.writings[1].seq = seq + 1;
                it.heads = [(1, (4, seq + 1))].into();
            }
        };
        let jumps = |it: &mut Evidence| {
            cloned(3)(it);
            it.writings[1].seq = 5;
        };

        assert_eq!(broken(numbers_without_gaps, cloned(3)), 0);
        assert_eq!(broken(numbers_without_gaps, jumps), 2);
    }

    #[test]
    fn a_late_client_shows_the_newest_messages_without_a_gap() {
        let late = |it: &mut Evidence| {
            it.client_logs[0].is_late = true;
            it.client_logs[0].lines.remove(0);
        };
        let cut = |it: &mut Evidence| {
            it.client_logs[0].is_late = true;
            it.client_logs[0].lines.pop();
        };

        assert_eq!(broken(tabs_show_what_is_stored, late), 0);
        assert_eq!(broken(tabs_show_what_is_stored, cut), 1);
    }

    #[test]
    fn a_tab_that_differs_from_what_is_stored_is_detected() {
        assert_eq!(
            broken(tabs_show_what_is_stored, |it| it.client_logs[1]
                .lines
                .truncate(1)),
            1
        );
        assert_eq!(
            broken(tabs_show_what_is_stored, |it| it.client_logs[0].lines[0]
                .2
                .clear()),
            1
        );
        assert_eq!(
            broken(tabs_show_what_is_stored, |it| it.client_logs[0]
                .complaints
                .push("no".to_owned())),
            1
        );
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
            1
        );
        assert_eq!(
            broken(every_reader_sees_what_was_written, |it| it.read_backs[0]
                .found = false),
            1
        );
    }
}
