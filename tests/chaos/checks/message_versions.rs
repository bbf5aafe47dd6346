//! Check T7: the successive versions of a message, and which of them tabs show.

use std::collections::{HashMap, HashSet};

use crate::checks::check::Check;
use crate::record::{ClientLog, Evidence, ReceivedEvent};

pub fn a_newer_version_wins(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "T7",
        "each version of a message has a higher rev, and every tab shows the last one",
    );
    let mut newest: HashMap<i64, (i64, i64)> = HashMap::new();
    let mut forms: HashSet<(i64, i64)> = HashSet::new();
    for row in &evidence.writings {
        let older = newest.insert(row.message, (row.rev, row.tx));
        // What one transaction writes is one version: a clone is inserted, then its reply is set.
        let follows = |(rev, tx)| rev < row.rev || (rev, tx) == (row.rev, row.tx);
        check.expect(older.is_none_or(follows), || {
            format!("rev {older:?} is followed by {row:?}")
        });
        forms.insert((row.message, row.rev));
    }
    for client_log in &evidence.client_logs {
        for (message, rev) in received_versions(client_log) {
            check.expect(forms.contains(&(message, rev)), || {
                format!(
                    "tab {} received rev {rev} of message {message}, which was never stored",
                    client_log.client
                )
            });
        }
        for (message, rev) in &client_log.revs {
            let newest = newest.get(message).map(|it| it.0);
            check.expect(newest == Some(*rev), || {
                format!(
                    "tab {} shows rev {rev} of message {message}, stored is {newest:?}",
                    client_log.client
                )
            });
        }
    }
    check
}

/// Id and `rev` of every message that a tab received.
fn received_versions(client_log: &ClientLog) -> Vec<(i64, i64)> {
    let mut versions = Vec::new();
    for note in &client_log.notes {
        match &note.event {
            ReceivedEvent::Durable { message, .. } => versions.extend(*message),
            ReceivedEvent::Snapshot { messages, .. } => versions.extend(messages),
            _ => {}
        }
    }
    versions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::good;
    use crate::record::Note;

    /// The good record, received by one tab.
    fn received() -> Evidence {
        let mut evidence = good();
        let durable = ReceivedEvent::Durable {
            rev: 1,
            kind: "message_created".to_owned(),
            is_reduced: false,
            digest: 7,
            ends: None,
            message: Some((11, 1)),
        };
        evidence.client_logs = vec![ClientLog {
            conversation: 1,
            notes: vec![Note {
                at: 0,
                event: durable,
            }],
            revs: vec![(11, 1), (12, 4)],
            ..ClientLog::default()
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
        let check = a_newer_version_wins(&received());

        assert!(check.n > 0 && check.broken.is_empty(), "{check:?}");
    }

    #[test]
    fn an_older_version_and_an_unknown_one_are_detected() {
        let falls = |it: &mut Evidence| {
            let mut again = it.writings[0].clone();
            (again.is_new, again.rev, again.tx) = (false, 1, 9);
            it.writings.push(again);
        };
        let is_completed = |it: &mut Evidence| {
            let mut again = it.writings[0].clone();
            again.is_new = false;
            it.writings.push(again);
        };
        let older = |it: &mut Evidence| {
            let mut again = it.writings[0].clone();
            (again.is_new, again.rev) = (false, 5);
            it.writings.push(again);
        };
        let never = |it: &mut Evidence| {
            if let ReceivedEvent::Durable { message, .. } = &mut it.client_logs[0].notes[0].event {
                *message = Some((11, 9));
            }
        };

        assert_eq!(broken(a_newer_version_wins, falls), 1);
        assert_eq!(broken(a_newer_version_wins, is_completed), 0);
        assert_eq!(broken(a_newer_version_wins, older), 1);
        assert_eq!(broken(a_newer_version_wins, never), 1);
    }
}
