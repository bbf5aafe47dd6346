//! Asserts that messages out of character, and changes of their marks, leave the schedule as it is.

use crate::runs::scheduling::plan::{Plan, PlanChange};
use crate::runs::scheduling::planner::fixture::PlannerFixture;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::run;

/// Asserts that a post out of character appends its message and changes nothing else.
pub fn assert_only_appended(before: &ScheduleState, plan: &Plan, fixture: &PlannerFixture) {
    assert!(matches!(plan.changes.as_slice(), [PlanChange::Append(it)] if it.is_ooc));
    assert_turns_unchanged(before, fixture);
    assert_eq!(fixture.state.queued, before.queued);
}

/// Asserts that no run or round was started, replaced or ended.
pub fn assert_turns_unchanged(before: &ScheduleState, fixture: &PlannerFixture) {
    let s = &fixture.state;
    assert_eq!(s.round, before.round);
    assert_eq!(s.running, before.running);
    let id = |run: &Option<run::Model>| run.as_ref().map(|it| it.id);
    assert_eq!(id(&s.queued), id(&before.queued));
    assert_eq!(
        s.conversation.auto_mode_turns,
        before.conversation.auto_mode_turns
    );
}

/// Asserts that a queued run that expected the tail expects the new one.
pub fn assert_still_valid(before: &ScheduleState, fixture: &PlannerFixture) {
    let (Some(was), Some(run)) = (&before.queued, &fixture.state.queued) else {
        return;
    };
    let expected = was.debug.expected_last_message_id;
    let had_tail = expected.is_some() && expected == before.tail.as_ref().map(|it| it.id);
    let mut messages = fixture.messages.iter().rev();
    let tail = messages.find(|it| it.is_scheduled());
    if had_tail {
        assert_eq!(run.debug.expected_last_message_id, tail.map(|it| it.id));
    }
}
