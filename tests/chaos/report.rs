//! What it all came to: one line, then a line for each invariant, then the evidence.

use std::collections::BTreeMap;
use std::fmt;

use crate::checks::check::Check;
use crate::checks::copilot;
use crate::checks::forms;
use crate::checks::progress;
use crate::checks::promises;
use crate::checks::runs;
use crate::checks::silence;
use crate::checks::sockets;
use crate::checks::streams;
use crate::checks::texts;
use crate::checks::timelines;
use crate::checks::versions;
use crate::record::Evidence;
use crate::starved;
use crate::starved::STARVED;

/// Everything that must hold.
const CHECKS: &[fn(&Evidence) -> Check] = &[
    runs::s1_one_runs,
    runs::s2_one_is_queued,
    runs::s3_only_legal_moves,
    runs::s4_every_run_ends,
    runs::s5_a_claim_raises_the_lease,
    runs::s6_the_fence_holds,
    runs::s7_debounce,
    promises::s8_no_lost_input,
    promises::s9_a_planned_run_sees_its_message,
    promises::s10_no_answer_twice,
    progress::s11_what_is_due_begins,
    runs::s12_no_false_reaps,
    runs::s13_running_is_owned,
    texts::c1_one_text_a_run,
    texts::c2_success_is_a_text,
    texts::c3_what_a_canceled_run_leaves,
    texts::c4_nothing_is_lost,
    texts::c5_no_phantoms,
    texts::c6_once,
    texts::c7_calls_are_bounded,
    texts::c8_replies_are_said_once,
    timelines::t1_numbers_without_gaps,
    timelines::t2_no_late_arrivals,
    timelines::t3_tabs_show_what_is_stored,
    timelines::t4_resuming_is_honest,
    timelines::t5_a_rev_is_one_event,
    timelines::t6_everybody_reads_what_was_written,
    forms::t7_a_newer_form_wins,
    timelines::t8_nobody_is_far_behind,
    sockets::t9_nothing_falls_between,
    sockets::t10_the_dead_are_gone,
    sockets::t11_the_future_is_not_believed,
    streams::d1_deltas_are_the_text,
    streams::d2_nothing_of_the_dead,
    streams::d3_typing_ends_once,
    silence::d4_a_canceled_run_is_silent,
    streams::d5_deltas_are_gathered,
    promises::a1_auto_mode_ends,
    promises::a3_a_stop_is_a_stop,
    promises::a4_a_message_goes_first,
    copilot::a7_a_copilot_ends,
    versions::v1_texts_are_numbered,
    versions::v2_a_branch_begins_with_what_was_there,
    versions::v3_what_was_promised_is_there,
    sockets::x2_a_suggestion_is_for_one,
    nothing_panics,
];

/// So much evidence for each broken rule is enough.
const SHOWN: usize = 4;

/// The verdict on one run.
pub struct Report {
    kinds: BTreeMap<String, (usize, usize)>,
    n_faults: usize,
    n_survived: usize,
    n_acknowledged: usize,
    n_spoilt: usize,
    n_succeeded: usize,
    starved: String,
    checks: Vec<Check>,
}

impl Report {
    /// Judges.
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
            n_spoilt: evidence.n_spoilt,
            n_succeeded: succeeded.count(),
            starved: starved::told(evidence),
            checks: CHECKS.iter().map(|check| check(evidence)).collect(),
        }
    }

    /// Whether every rule held, and everything stood again.
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
            "faults tried {}, survived {}; messages acknowledged {}, lost {}, doubled {}; stuck {}",
            self.n_faults,
            self.n_survived,
            self.n_acknowledged,
            self.broken("C4") + self.broken("S8"),
            self.broken("C6") + self.broken("C1") + self.broken("S10") + self.broken("C8"),
            self.broken("S4"),
        )?;
        writeln!(
            f,
            "replies {}, answers of the model spoilt {}",
            self.n_succeeded, self.n_spoilt
        )?;
        writeln!(f, "{}", self.starved)?;
        for (kind, (n, healed)) in &self.kinds {
            writeln!(f, "  {n:5} {kind}, healed {healed}")?;
        }
        for check in &self.checks {
            let Check {
                id,
                rule,
                n,
                broken,
            } = check;
            writeln!(
                f,
                "  {id:4} looked at {n:7} times, broken {:3}: {rule}",
                broken.len()
            )?;
            for told in broken.iter().take(SHOWN) {
                writeln!(f, "         {told}")?;
            }
        }
        Ok(())
    }
}

/// No code of ours panics, unless a fail point told it to.
fn nothing_panics(evidence: &Evidence) -> Check {
    let mut check = Check::of("P", "nothing panics that was not told to");
    check.n = evidence.faults.len();
    check.broken = evidence.panics.clone();
    check
}

#[cfg(test)]
mod tests {
    use super::Report;
    use crate::checks::check::example::fault;
    use crate::checks::check::example::good;

    #[test]
    fn a_good_run_holds_and_says_so_in_one_line() {
        let mut evidence = good();
        evidence.faults = vec![fault("kill -9", 1, 2)];

        let report = Report::of(&evidence);

        assert!(report.holds(), "{report}");
        let line =
            "faults tried 1, survived 1; messages acknowledged 1, lost 0, doubled 0; stuck 0\n";
        assert!(report.to_string().starts_with(line), "{report}");
    }

    #[test]
    fn a_lost_message_a_stuck_run_and_a_node_that_stays_down_do_not_hold() {
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
