//! Decides which text a model must write next, so that the summaries of a conversation cover its messages up
//! to a goal. No I/O.

use base::ids::SummaryId;

use crate::memories::summaries::summary;
use crate::memories::summaries::summary::SummaryOrigin;

/// The maximum number of parts that are merged into a running summary at a time, so that a request
/// stays short.
const MAX_PARTS: usize = 10;

/// The next text to write.
#[derive(Clone, Debug, PartialEq)]
pub enum SummaryStep {
    /// A part that begins at the first of these messages and ends at or before the last one.
    WritePart { from_seq: i64, to_seq: i64 },
    /// The running summary: written from these parts, or continued with them.
    WriteRunning {
        /// The version in use, if there is one.
        previous: Option<SummaryId>,
        parts: Vec<SummaryId>,
    },
}

/// The summaries in use and what they must cover.
#[derive(Clone, Copy, Debug)]
pub struct SummaryState<'a> {
    /// The first and the last message to cover.
    pub from_seq: i64,
    pub goal_seq: i64,
    /// By their first message.
    pub parts: &'a [summary::Model],
    pub running: Option<&'a summary::Model>,
}

/// Returns the next step, or `None` if nothing is missing.
pub fn next_step(state: SummaryState<'_>) -> Option<SummaryStep> {
    let valid = state.parts.iter().filter(|it| !it.needs_regeneration());
    let valid: Vec<&summary::Model> = valid.collect();
    let corrected = list_corrected(state.running, &valid);
    let gap = find_gap(state, &valid);
    if let Some((from_seq, to_seq)) = gap.filter(|_| corrected.len() < MAX_PARTS) {
        return Some(SummaryStep::WritePart { from_seq, to_seq });
    }
    // Without a part that corrects it, a text that must be regenerated is written from all parts.
    let running = state
        .running
        .filter(|it| !it.needs_regeneration() || !corrected.is_empty());
    let covered = running.map_or(state.from_seq - 1, |it| it.to_seq);
    let parts = match corrected.is_empty() {
        true => valid
            .iter()
            .filter(|it| it.to_seq > covered)
            .map(|it| it.id)
            .collect(),
        false => corrected,
    };
    let parts: Vec<SummaryId> = parts.into_iter().take(MAX_PARTS).collect();
    (!parts.is_empty()).then(|| SummaryStep::WriteRunning {
        previous: running.map(|it| it.id),
        parts,
    })
}

/// Returns the parts that were written after the running summary and replace what it says. A model
/// corrects only the text of a model.
fn list_corrected(running: Option<&summary::Model>, valid: &[&summary::Model]) -> Vec<SummaryId> {
    let Some(running) = running else {
        return Vec::new();
    };
    let is_correctable = running.is_usable && running.origin == SummaryOrigin::Model;
    let corrected = valid
        .iter()
        .filter(|it| is_correctable && it.id > running.id && it.to_seq <= running.to_seq);
    corrected.map(|it| it.id).collect()
}

/// Returns the first messages that no valid part covers: up to the goal, and within the messages of
/// parts that must be written again.
fn find_gap(state: SummaryState<'_>, valid: &[&summary::Model]) -> Option<(i64, i64)> {
    let last = state.parts.iter().map(|it| it.to_seq).max();
    let end = last.unwrap_or(0).max(state.goal_seq);
    let mut next = state.from_seq;
    for part in valid {
        if part.from_seq > next {
            return Some((next, part.from_seq - 1));
        }
        next = next.max(part.to_seq + 1);
    }
    (next <= end).then_some((next, end))
}

#[cfg(test)]
mod tests {
    use base::ids::SummaryId;

    use super::{SummaryState, SummaryStep, next_step};
    use crate::memories::summaries::summary;
    use crate::memories::summaries::summary::tests::running_version;
    use crate::memories::summaries::summary::{SummaryLevel, SummaryOrigin, SummaryStatus};

    fn version(id: i64, level: SummaryLevel, (from_seq, to_seq): (i64, i64)) -> summary::Model {
        summary::Model {
            level,
            version: 1,
            status: SummaryStatus::Current,
            from_seq,
            ..running_version(id, to_seq)
        }
    }

    fn part(id: i64, from_seq: i64, to_seq: i64) -> summary::Model {
        version(id, SummaryLevel::Part, (from_seq, to_seq))
    }

    fn running(id: i64, to_seq: i64) -> summary::Model {
        version(id, SummaryLevel::Running, (1, to_seq))
    }

    fn next(
        goal: i64,
        parts: &[summary::Model],
        running: Option<&summary::Model>,
    ) -> Option<SummaryStep> {
        next_step(SummaryState {
            from_seq: 1,
            goal_seq: goal,
            parts,
            running,
        })
    }

    fn write_running(previous: Option<i64>, parts: &[i64]) -> Option<SummaryStep> {
        Some(SummaryStep::WriteRunning {
            previous: previous.map(SummaryId),
            parts: parts.iter().map(|it| SummaryId(*it)).collect(),
        })
    }

    fn write_part(from_seq: i64, to_seq: i64) -> Option<SummaryStep> {
        Some(SummaryStep::WritePart { from_seq, to_seq })
    }

    #[test]
    fn the_parts_come_before_the_running_summary() {
        let parts = [part(1, 1, 30), part(2, 31, 60)];

        assert_eq!(next(70, &[], None), write_part(1, 70));
        assert_eq!(next(70, &parts, None), write_part(61, 70));
        assert_eq!(next(60, &parts, None), write_running(None, &[1, 2]));
    }

    #[test]
    fn nothing_is_missing_once_the_running_summary_covers_all_parts() {
        let parts = [part(1, 1, 30), part(2, 31, 60)];

        assert_eq!(next(60, &parts, Some(&running(3, 60))), None);
        assert_eq!(
            next(60, &parts, Some(&running(3, 30))),
            write_running(Some(3), &[2])
        );
        assert_eq!(next(0, &[], None), None);
    }

    #[test]
    fn a_running_summary_takes_up_ten_parts_at_a_time() {
        let parts: Vec<_> = (1..=25).map(|n| part(n, n, n)).collect();
        let ids = |from: i64, to: i64| (from..=to).collect::<Vec<_>>();

        assert_eq!(next(25, &parts, None), write_running(None, &ids(1, 10)));
        let first = running(26, 10);
        assert_eq!(
            next(25, &parts, Some(&first)),
            write_running(Some(26), &ids(11, 20))
        );
    }

    #[test]
    fn a_part_whose_messages_changed_is_written_again_and_corrects_the_running_summary() {
        let mut parts = [part(1, 1, 30), part(2, 31, 60), part(3, 61, 90)];
        let mut whole = running(4, 90);
        (parts[1].status, whole.status) = (SummaryStatus::Stale, SummaryStatus::Stale);

        assert_eq!(next(90, &parts, Some(&whole)), write_part(31, 60));
        parts[1] = part(5, 31, 60);
        assert_eq!(next(90, &parts, Some(&whole)), write_running(Some(4), &[5]));
        assert_eq!(next(90, &parts, Some(&running(6, 90))), None);
    }

    #[test]
    fn a_stale_text_of_a_person_stays_until_it_is_requested() {
        let mut parts = [part(1, 1, 30)];
        let mut whole = running(2, 30);
        (whole.status, whole.origin) = (SummaryStatus::Stale, SummaryOrigin::Person);

        assert_eq!(next(30, &parts, Some(&whole)), None);
        parts[0] = part(3, 1, 30);
        assert_eq!(
            next(30, &parts, Some(&whole)),
            None,
            "a model's part corrects no person"
        );
        whole.is_regeneration_requested = true;
        assert_eq!(next(30, &parts, Some(&whole)), write_running(None, &[3]));
    }

    #[test]
    fn a_stale_text_of_a_model_without_a_corrected_part_is_written_from_all_parts() {
        let parts = [part(1, 1, 30), part(2, 31, 60)];
        let mut whole = running(3, 60);
        whole.status = SummaryStatus::Stale;

        assert_eq!(next(60, &parts, Some(&whole)), write_running(None, &[1, 2]));
    }

    #[test]
    fn nothing_is_continued_from_a_text_with_a_deleted_message() {
        let parts = [part(3, 1, 30), part(1, 31, 60)];
        let mut whole = running(2, 60);
        (whole.is_usable, whole.origin) = (false, SummaryOrigin::Person);

        assert_eq!(next(60, &parts, Some(&whole)), write_running(None, &[3, 1]));
    }

    #[test]
    fn many_corrected_parts_are_taken_up_before_further_ones_are_written() {
        let mut parts: Vec<_> = (1..=20).map(|n| part(100 + n, n, n)).collect();
        let whole = running(50, 20);
        parts[19].status = SummaryStatus::Stale;
        parts.truncate(20);

        let expected: Vec<i64> = (101..=110).collect();
        assert_eq!(
            next(20, &parts, Some(&whole)),
            write_running(Some(50), &expected)
        );
    }
}
