//! Check T7: the successive versions of a message, and which of them users see.

use std::collections::{HashMap, HashSet};

use crate::checks::check::Check;
use crate::record::{ClientLog, Evidence, ReceivedEvent};

pub fn a_newer_version_wins(evidence: &Evidence) -> Check {
    let mut check = Check::of(
        "T7",
        "each form of a message has a higher rev, and the last one is what everybody shows",
    );
    let mut newest: HashMap<i64, i64> = HashMap::new();
    let mut forms: HashSet<(i64, i64)> = HashSet::new();
    for row in &evidence.writings {
        let older = newest.insert(row.message, row.rev);
        check.expect(older.is_none_or(|it| it < row.rev), || {
            format!("after rev {older:?} comes {row:?}")
        });
        forms.insert((row.message, row.rev));
    }
    for ear in &evidence.ears {
        for (message, rev) in received_versions(ear) {
            check.expect(forms.contains(&(message, rev)), || {
                format!(
                    "tab {} heard of rev {rev} of message {message}, which was never stored",
                    ear.client
                )
            });
        }
        for (message, rev) in &ear.revs {
            let newest = newest.get(message);
            check.expect(newest == Some(rev), || {
                format!(
                    "tab {} shows rev {rev} of message {message}, stored is {newest:?}",
                    ear.client
                )
            });
        }
    }
    check
}

/// Id and `rev` of every message that a tab heard of.
fn received_versions(ear: &ClientLog) -> Vec<(i64, i64)> {
    let mut told = Vec::new();
    for note in &ear.notes {
        match &note.heard {
            ReceivedEvent::Durable { message, .. } => told.extend(*message),
            ReceivedEvent::Snapshot { messages, .. } => told.extend(messages),
            _ => {}
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check::example::good;
    use crate::record::Note;

    /// The good log, heard by one tab.
    fn heard() -> Evidence {
        let mut evidence = good();
        let told = ReceivedEvent::Durable {
            rev: 1,
            kind: "message_created".to_owned(),
            digest: 7,
            ends: None,
            message: Some((11, 1)),
        };
        evidence.ears = vec![ClientLog {
            conversation: 1,
            notes: vec![Note { at: 0, heard: told }],
            revs: vec![(11, 1), (12, 4)],
            ..ClientLog::default()
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
        let check = a_newer_version_wins(&heard());

        assert!(check.n > 0 && check.broken.is_empty(), "{check:?}");
    }

    #[test]
    fn an_older_version_and_an_unknown_one_are_detected() {
        let falls = |it: &mut Evidence| {
            let mut again = it.writings[0].clone();
            (again.is_new, again.rev) = (false, 1);
            it.writings.push(again);
        };
        let older = |it: &mut Evidence| {
            let mut again = it.writings[0].clone();
            (again.is_new, again.rev) = (false, 5);
            it.writings.push(again);
        };
        let never = |it: &mut Evidence| {
            if let ReceivedEvent::Durable { message, .. } = &mut it.ears[0].notes[0].heard {
                *message = Some((11, 9));
            }
        };

        assert_eq!(broken(a_newer_version_wins, falls), 1);
        assert_eq!(broken(a_newer_version_wins, older), 1);
        assert_eq!(broken(a_newer_version_wins, never), 1);
    }
}
