//! How often each kind of group play happened in a run: whispers, continuations, turns of people and
//! choices of a director.

use std::collections::BTreeMap;
use std::fmt;

use crate::record::Evidence;
use crate::stored_record::StoredText;

/// The counts, by name, in the order in which they are printed.
#[derive(Debug, Default)]
pub struct GroupCounts(Vec<(&'static str, usize)>);

impl GroupCounts {
    /// Counts what is recorded.
    pub fn of(evidence: &Evidence) -> GroupCounts {
        let stored = &evidence.stored;
        let whispers = evidence.posts.iter().filter(|it| !it.audience.is_empty());
        let n_whispers = whispers.filter(|it| it.acknowledged().is_some()).count();
        let texts = || stored.texts.iter().filter(|it| !it.is_clone);
        let is_private = |it: &&StoredText| !it.run.is_empty() && !it.audience.is_empty();
        let is_continued = |it: &&StoredText| it.kind == "continue" && it.position > 0;
        let promises = evidence.promises.iter();
        let accepted = promises.filter(|it| it.what == "a continued text").count();
        let turns = |status: &str, reason: &str| {
            let turns = stored.turns.iter();
            let turns = turns.filter(|it| it.status == status && it.skip_reason == reason);
            turns.count()
        };
        let mut choices: BTreeMap<&str, usize> = BTreeMap::new();
        for run in stored.runs.iter().filter(|it| it.is_directed) {
            let (choice, _) = run.chosen_because.split_once(':').unwrap_or_default();
            *choices.entry(choice).or_default() += 1;
        }
        let choices = |name: &str| choices.get(name).copied().unwrap_or_default();
        GroupCounts(vec![
            ("whispers acknowledged", n_whispers),
            ("private replies", texts().filter(is_private).count()),
            ("continuations accepted", accepted),
            ("continuations stored", texts().filter(is_continued).count()),
            ("turns of people taken", turns("spoken", "")),
            ("turns skipped", turns("skipped", "skipped_by_a_person")),
            ("turns timed out", turns("skipped", "turn_timeout")),
            ("turns passed over", turns("skipped", "not_schedulable")),
            ("calls of a director", evidence.n_choices),
            ("speakers chosen by it", choices("director")),
            ("after a timeout", choices("director failed (timeout)")),
            (
                "after a failed call",
                choices("director failed (call_failed)"),
            ),
            (
                "without a usable name",
                choices("director failed (no_usable_name)"),
            ),
        ])
    }
}

impl fmt::Display for GroupCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self
            .0
            .iter()
            .map(|(name, n)| format!("{name} {n}"))
            .collect();
        writeln!(f, "{}", all.join(", "))?;
        for (name, _) in self.0.iter().filter(|(_, n)| *n == 0) {
            writeln!(f, "NEVER HAPPENED: {name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::GroupCounts;
    use crate::checks::check::example::good;
    use crate::stored_record::{PersonTurn, StoredRun};

    #[test]
    fn what_happened_is_counted_and_what_did_not_is_named() {
        let mut evidence = good();
        evidence.stored.turns = vec![PersonTurn {
            status: "skipped".to_owned(),
            skip_reason: "turn_timeout".to_owned(),
            ..PersonTurn::default()
        }];
        let run = |because: &str| StoredRun {
            is_directed: true,
            chosen_because: because.to_owned(),
            ..StoredRun::default()
        };
        let failed = run("director failed (call_failed): next in rotation");
        evidence.stored.runs = vec![run("director: pick1"), failed];

        let counts = GroupCounts::of(&evidence).to_string();

        let happened = [
            "turns timed out 1",
            "speakers chosen by it 1",
            "after a failed call 1",
        ];
        for name in happened {
            assert!(counts.contains(name), "{name}: {counts}");
            assert!(!counts.contains(&format!("NEVER HAPPENED: {}", &name[..name.len() - 2])));
        }
        assert!(
            counts.contains("NEVER HAPPENED: continuations stored"),
            "{counts}"
        );
    }
}
