//! Prints the result: one line, then a line for each invariant, then the evidence of violations.

use std::collections::BTreeMap;
use std::fmt;

use crate::checks::check::Check;
use crate::checks::{
    canceled_streams, continuations, copilot, directors, human_turns, memories, message_versions,
    progress, received_events, replies, runs, sockets, streams, texts, timelines, versions,
    whispers,
};
use crate::cpu_starvation;
use crate::cpu_starvation::STARVED;
use crate::group_counts::GroupCounts;
use crate::record::Evidence;

/// The checks that need only what both databases record.
pub const ON_BOTH: &[fn(&Evidence) -> Check] = &[
    timelines::tabs_show_what_is_stored,
    timelines::no_reader_is_far_behind,
    sockets::a_suggestion_reaches_one_user,
    continuations::a_continuation_begins_with_the_older_text,
    whispers::only_the_audience_reads_a_whisper,
    whispers::only_the_audience_receives_a_private_run,
    whispers::a_whisper_is_answered_in_private,
    whispers::a_prompt_has_only_what_its_speaker_heard,
    human_turns::a_turn_ends_at_its_deadline,
    human_turns::a_turn_is_one_message_of_its_person,
    human_turns::a_turn_is_announced_to_its_person,
    directors::every_turn_has_a_chosen_speaker,
];

/// The other checks.
const CHECKS: &[fn(&Evidence) -> Check] = &[
    runs::at_most_one_run_is_running,
    runs::at_most_one_run_is_queued,
    runs::only_legal_transitions,
    runs::every_run_ends,
    runs::a_claim_raises_the_lease,
    runs::a_lost_lease_writes_nothing,
    runs::debounce_is_respected,
    replies::no_input_is_lost,
    replies::a_planned_run_sees_its_message,
    replies::no_message_is_answered_twice,
    progress::due_runs_begin,
    runs::only_stale_runs_are_recovered,
    runs::a_running_run_has_an_owner,
    texts::one_text_per_run,
    texts::a_success_has_a_text,
    texts::what_a_canceled_run_leaves,
    texts::acknowledged_messages_are_stored,
    texts::no_phantom_messages,
    texts::messages_are_stored_once,
    texts::calls_are_bounded,
    texts::replies_are_stored_once,
    timelines::numbers_without_gaps,
    timelines::no_late_arrivals,
    received_events::resuming_is_honest,
    received_events::a_rev_is_one_event,
    timelines::every_reader_sees_what_was_written,
    message_versions::a_newer_version_wins,
    sockets::no_event_is_lost_after_a_snapshot,
    sockets::dead_sockets_are_closed,
    sockets::future_positions_are_rejected,
    streams::deltas_equal_the_text,
    streams::ended_runs_send_no_deltas,
    streams::typing_ends_once,
    canceled_streams::a_canceled_run_is_silent,
    streams::deltas_are_batched,
    replies::auto_mode_ends,
    replies::nothing_follows_a_stop,
    replies::a_message_comes_before_auto_mode,
    copilot::a_copilot_ends,
    versions::swipes_are_numbered,
    versions::a_branch_begins_with_what_was_there,
    versions::promised_texts_exist,
    human_turns::a_message_starts_or_joins_a_round,
    directors::choices_are_bounded,
    memories::no_fact_is_lost,
    memories::no_fact_is_learned_twice,
    memories::a_hidden_fact_is_forgotten,
    nothing_panics,
];

/// The result of one run.
pub struct Report {
    kinds: BTreeMap<String, (usize, usize)>,
    n_faults: usize,
    n_survived: usize,
    n_acknowledged: usize,
    n_faulty: usize,
    n_succeeded: usize,
    n_facts: usize,
    n_extracted: usize,
    group_counts: GroupCounts,
    starved: String,
    checks: Vec<Check>,
}

impl Report {
    /// Runs all checks.
    pub fn of(evidence: &Evidence) -> Report {
        let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        let done = evidence.faults.iter().filter(|it| it.kind != STARVED);
        for fault in done.clone() {
            let kind = kinds.entry(fault.kind.clone()).or_default();
            kind.0 += 1;
            kind.1 += usize::from(fault.healed);
        }
        let acknowledged = evidence
            .posts
            .iter()
            .filter(|it| it.acknowledged().is_some());
        let succeeded = evidence.moves.iter().filter(|it| it.became == "succeeded");
        Report {
            kinds,
            n_faults: done.clone().count(),
            n_survived: done.filter(|it| it.healed).count(),
            n_acknowledged: acknowledged.count(),
            n_faulty: evidence.n_faulty,
            n_succeeded: succeeded.count(),
            n_facts: evidence.stored_facts.len(),
            n_extracted: evidence.stored_facts.iter().map(|it| it.n_extracted).sum(),
            starved: cpu_starvation::describe(evidence),
            group_counts: GroupCounts::of(evidence),
            checks: CHECKS
                .iter()
                .chain(ON_BOTH)
                .map(|check| check(evidence))
                .collect(),
        }
    }

    /// Whether every rule holds, and every node recovered from each fault.
    pub fn holds(&self) -> bool {
        self.n_survived == self.n_faults && self.checks.iter().all(|it| it.broken.is_empty())
    }

    fn broken(&self, id: &str) -> usize {
        let check = self.checks.iter().find(|it| it.id == id);
        check.map_or(0, |it| it.broken.len())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "faults tried {}, survived {}; messages acknowledged {}, lost {}, duplicated {}; stuck {}",
            self.n_faults,
            self.n_survived,
            self.n_acknowledged,
            self.broken("C4") + self.broken("S8"),
            self.broken("C6") + self.broken("C1") + self.broken("S10") + self.broken("C8"),
            self.broken("S4"),
        )?;
        writeln!(
            f,
            "replies {}, faulty responses of the model {}",
            self.n_succeeded, self.n_faulty
        )?;
        writeln!(
            f,
            "sentences to remember {}, {} of them by the model, lost {}, doubled {}",
            self.n_facts,
            self.n_extracted,
            self.broken("M1"),
            self.broken("M2"),
        )?;
        write!(f, "{}", self.group_counts)?;
        writeln!(f, "{}", self.starved)?;
        for (kind, (n, healed)) in &self.kinds {
            writeln!(f, "  {n:5} {kind}, recovered {healed}")?;
        }
        self.checks.iter().try_for_each(|it| write!(f, "{it}"))?;
        Ok(())
    }
}

/// Checks that the server panics only at fail points.
fn nothing_panics(evidence: &Evidence) -> Check {
    let mut check = Check::of("P", "the server panics only at fail points");
    check.n = evidence.faults.len();
    check.broken = evidence.panics.clone();
    check
}

#[cfg(test)]
mod tests {
    use super::Report;
    use crate::checks::check::example::{fault, good};

    #[test]
    fn the_report_of_a_good_run_is_one_line() {
        let mut evidence = good();
        evidence.faults = vec![fault("kill -9", 1, 2)];

        let report = Report::of(&evidence);

        assert!(report.holds(), "{report}");
        let line =
            "faults tried 1, survived 1; messages acknowledged 1, lost 0, duplicated 0; stuck 0\n";
        assert!(report.to_string().starts_with(line), "{report}");
    }

    #[test]
    fn a_lost_message_a_stuck_run_or_a_node_that_stays_down_is_a_violation() {
        let mut lost = good();
        lost.writings.remove(0);
        let mut stuck = good();
        stuck.moves.truncate(3);
        stuck.writings.truncate(1);
        let mut down = good();
        down.faults = vec![fault("kill -9", 1, 2)];
        down.faults[0].healed = false;

        assert!(!Report::of(&lost).holds());
        assert!(Report::of(&stuck).to_string().contains("stuck 1"));
        assert!(!Report::of(&down).holds());
    }
}
