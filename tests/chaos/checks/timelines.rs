//! Checks T1 to T6 and T8: the numbers of a timeline, and what readers and tabs received of it.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::checks::check::Check;
use crate::record::{ClientLog, Evidence, Line, ReceivedEvent, Writing};

pub fn numbers_without_gaps(evidence: &Evidence) -> Check {
    let mut check = Check::of("T1", "seq is 1, 2, 3 … in the order of commits");
    let mut last: BTreeMap<i64, i64> = BTreeMap::new();
    for row in evidence.writings.iter().filter(|it| it.is_new) {
        let last = last.entry(row.conversation).or_default();
        // What was hidden is not cloned into a branch: there the numbers only rise.
        let follows = row.seq == *last + 1 || (row.origin != 0 && row.seq > *last);
        check.expect(follows, || format!("{} after {last}: {row:?}", row.seq));
        *last = row.seq;
    }
    for (conversation, (_, last_seq)) in &evidence.heads {
        let n = last.get(conversation).copied().unwrap_or(0);
        check.expect(*last_seq == n, || {
            format!("conversation {conversation} says {last_seq} and has {n} messages")
        });
    }
    check
}

pub fn no_late_arrivals(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "T2",
        "who sees a message sees all before it, at every instant",
    );
    for (n, look) in evidence.looks.iter().enumerate() {
        for (conversation, count, greatest) in &look.counts {
            check.expect(count == greatest, || {
                format!(
                    "look {n}: conversation {conversation} has {count} messages up to {greatest}"
                )
            });
        }
    }
    check
}

pub fn tabs_show_what_is_stored(evidence: &Evidence) -> Check {
    let mut check = Check::of("T3", "in the end every tab shows what is stored");
    let nothing = Vec::new();
    for ear in &evidence.ears {
        let stored = evidence
            .timelines
            .get(&ear.conversation)
            .unwrap_or(&nothing);
        let stored = visible_part(ear, stored);
        let place = ear
            .lines
            .iter()
            .zip(stored)
            .position(|(shown, stored)| shown != stored);
        let place = place.unwrap_or(ear.lines.len().min(stored.len()));
        check.expect(ear.lines == stored, || {
            format!(
                "tab {} shows {} of {} lines of conversation {}, and at {place} {:?} for {:?}",
                ear.client,
                ear.lines.len(),
                stored.len(),
                ear.conversation,
                ear.lines.get(place),
                stored.get(place)
            )
        });
        check.expect(ear.complaints.is_empty(), || ear.complaints.join("\n"));
    }
    check
}

/// A client that subscribed late received the newest messages, and all that followed.
pub fn visible_part<'a>(ear: &ClientLog, stored: &'a [Line]) -> &'a [Line] {
    let first = ear.lines.first().filter(|_| ear.is_late);
    let from = first.and_then(|(first, ..)| stored.iter().position(|(seq, ..)| seq == first));
    &stored[from.unwrap_or(0)..]
}

pub fn resuming_is_honest(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "T4",
        "who comes back is told all that changed, or to begin anew",
    );
    let mut written: HashMap<i64, Vec<&Writing>> = HashMap::new();
    for row in &evidence.writings {
        written.entry(row.conversation).or_default().push(row);
    }
    for ear in &evidence.ears {
        for note in &ear.notes {
            let ReceivedEvent::Snapshot {
                after: Some(after),
                rev,
                reset: false,
                messages,
                ..
            } = &note.heard
            else {
                continue;
            };
            let told: HashSet<i64> = messages.iter().map(|(id, _)| *id).collect();
            let changed = written.get(&ear.conversation).into_iter().flatten();
            let mut missing = changed
                .filter(|it| *after < it.rev && it.rev <= *rev && !told.contains(&it.message));
            let missing = missing.next();
            check.expect(missing.is_none(), || {
                format!(
                    "tab {} came back with {after}, was brought to {rev} and not told {missing:?}",
                    ear.client
                )
            });
        }
    }
    check
}

pub fn a_rev_is_one_event(evidence: &Evidence) -> Check {
    let mut check = Check::of("T5", "a rev is one event, whoever hears it how often");
    let mut known: HashMap<(i64, i64), (&str, u64)> = HashMap::new();
    for ear in &evidence.ears {
        for note in &ear.notes {
            let ReceivedEvent::Durable {
                rev, kind, digest, ..
            } = &note.heard
            else {
                continue;
            };
            let this = (kind.as_str(), *digest);
            let first = *known.entry((ear.conversation, *rev)).or_insert(this);
            check.expect(first == this, || {
                format!(
                    "rev {rev} of conversation {} is {first:?} and {this:?}",
                    ear.conversation
                )
            });
        }
    }
    for ((conversation, rev), _) in known {
        let newest = evidence.heads.get(&conversation).map_or(0, |it| it.0);
        check.expect(rev <= newest, || {
            format!(
                "rev {rev} of conversation {conversation} was told and never committed: {newest}"
            )
        });
    }
    check
}

pub fn every_reader_sees_what_was_written(evidence: &Evidence) -> Check {
    let mut check = Check::of("T6", "what was acknowledged is read through any node");
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

    /// The good log, heard by two tabs.
    fn heard() -> Evidence {
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
        let note = |heard| Note { at: 0, heard };
        let ear = |client| ClientLog {
            client,
            conversation: 1,
            notes: vec![note(durable.clone()), note(snapshot.clone())],
            lines: evidence.timelines[&1].clone(),
            ..ClientLog::default()
        };
        evidence.ears = vec![ear(0), ear(1)];
        evidence.looks = vec![DatabaseSample {
            counts: vec![(1, 2, 2)],
        }];
        evidence.read_backs = vec![ReadBack {
            found: true,
            ..ReadBack::default()
        }];
        evidence
    }

    fn broken(check: fn(&Evidence) -> Check, spoil: impl FnOnce(&mut Evidence)) -> usize {
        let mut evidence = heard();
        spoil(&mut evidence);
        check(&evidence).broken.len()
    }

    #[test]
    fn a_good_log_is_good() {
        let all: [fn(&Evidence) -> Check; 6] = [
            numbers_without_gaps,
            no_late_arrivals,
            tabs_show_what_is_stored,
            resuming_is_honest,
            a_rev_is_one_event,
            every_reader_sees_what_was_written,
        ];
        for check in all {
            let check = check(&heard());
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
            broken(no_late_arrivals, |it| it.looks[0].counts[0].1 = 1),
            1
        );
    }

    #[test]
    fn a_branch_begins_with_what_was_shown_and_then_counts_on() {
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
    fn a_late_client_shows_the_newest_without_a_gap() {
        let late = |it: &mut Evidence| {
            it.ears[0].is_late = true;
            it.ears[0].lines.remove(0);
        };
        let cut = |it: &mut Evidence| {
            it.ears[0].is_late = true;
            it.ears[0].lines.pop();
        };

        assert_eq!(broken(tabs_show_what_is_stored, late), 0);
        assert_eq!(broken(tabs_show_what_is_stored, cut), 1);
    }

    #[test]
    fn a_tab_that_shows_something_else_is_detected() {
        assert_eq!(
            broken(tabs_show_what_is_stored, |it| it.ears[1].lines.truncate(1)),
            1
        );
        assert_eq!(
            broken(tabs_show_what_is_stored, |it| it.ears[0].lines[0].2.clear()),
            1
        );
        assert_eq!(
            broken(tabs_show_what_is_stored, |it| it.ears[0]
                .complaints
                .push("no".to_owned())),
            1
        );
    }

    #[test]
    fn an_unnoticed_gap_and_two_versions_are_detected() {
        let hole = |it: &mut Evidence| {
            if let ReceivedEvent::Snapshot { messages, .. } = &mut it.ears[0].notes[1].heard {
                messages.pop();
            }
        };
        let other = |it: &mut Evidence| {
            if let ReceivedEvent::Durable { digest, .. } = &mut it.ears[1].notes[0].heard {
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
