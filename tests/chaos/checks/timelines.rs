//! Checks T1 to T3, T6 and T8: the numbers of a timeline, and what readers and tabs show of it.

use std::collections::BTreeMap;

use crate::checks::check::Check;
use crate::record::{ClientLog, Evidence, Line};
use crate::stored_record::{StoredLine, sees};

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
        let stored = evidence.stored.timelines.get(&client_log.conversation);
        let stored = visible_part(client_log, stored.unwrap_or(&nothing));
        let place = client_log
            .lines
            .iter()
            .zip(&stored)
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

/// Returns the stored messages that a tab must show: those that its user sees. A client that subscribed
/// late received the newest of them, and all that followed.
pub fn visible_part(client_log: &ClientLog, stored: &[StoredLine]) -> Vec<Line> {
    let is_seen = |it: &&StoredLine| sees(&[client_log.membership], &it.audience);
    let mut seen: Vec<Line> = stored
        .iter()
        .filter(is_seen)
        .map(|it| it.line.clone())
        .collect();
    let first = client_log.lines.first().filter(|_| client_log.is_late);
    let from = first.and_then(|(first, ..)| seen.iter().position(|(seq, ..)| seq == first));
    seen.split_off(from.unwrap_or(0))
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
    use crate::checks::check::example::received;

    fn broken(check: fn(&Evidence) -> Check, spoil: impl FnOnce(&mut Evidence)) -> usize {
        let mut evidence = received();
        spoil(&mut evidence);
        check(&evidence).broken.len()
    }

    #[test]
    fn a_good_record_has_no_violation() {
        let all: [fn(&Evidence) -> Check; 4] = [
            numbers_without_gaps,
            no_late_arrivals,
            tabs_show_what_is_stored,
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
    fn a_whisper_is_shown_only_to_its_audience() {
        let whispered = |it: &mut Evidence| {
            for line in it.stored.timelines.get_mut(&1).unwrap() {
                line.audience = vec![3];
            }
            it.client_logs[1].membership = 4;
        };
        let left_out = |it: &mut Evidence| {
            whispered(it);
            it.client_logs[1].lines.clear();
        };

        assert_eq!(broken(tabs_show_what_is_stored, whispered), 1);
        assert_eq!(broken(tabs_show_what_is_stored, left_out), 0);
    }

    #[test]
    fn an_acknowledged_message_that_cannot_be_read_is_detected() {
        let check = every_reader_sees_what_was_written;

        assert_eq!(broken(check, |it| it.read_backs[0].found = false), 1);
    }
}
