//! Asserts that whatever follows a whisper has its audience, and that the schedule reads past whispers
//! to people.

use base::ids::MembershipId;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::message;
use crate::runs::scheduling::command::Command;
use crate::runs::scheduling::messages::new_post::{NewPost, RequestedAudience};
use crate::runs::scheduling::plan::{Plan, PlanChange};
use crate::runs::scheduling::planner::fixture::{EVE, PlannerFixture};
use crate::runs::scheduling::planner::property_invariants::property_ooc;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::run;
use crate::runs::store::run::RunKind;

/// Returns Eve's whisper to these members.
pub fn whisper_to(members: Vec<i64>) -> Command {
    let mut post = NewPost::new(EVE, "Psst.".to_owned());
    let members = members.into_iter().map(MembershipId).collect();
    post.requested.audience = RequestedAudience::Only(members);
    Command::MessagePosted(Box::new(post))
}

/// Returns whether a command is a post that the schedule reads.
pub fn is_input(command: &Command, plan: &Plan) -> bool {
    let reads =
        |it: &PlanChange| matches!(it, PlanChange::Append(it) if !it.is_ooc && !it.is_for_people);
    matches!(command, Command::MessagePosted(_)) && plan.changes.iter().any(reads)
}

/// Asserts that only characters of an audience speak in it, that messages, runs and rounds of one turn
/// have the same audience, and that auto mode follows no whisper.
pub fn assert_audiences(
    before: &ScheduleState,
    command: &Command,
    plan: &Plan,
    fixture: &PlannerFixture,
) {
    let state = &fixture.state;
    for run in [&state.queued, &state.running].into_iter().flatten() {
        let speaker = run.speaker_space_membership_id;
        let includes = |it: &Audience| speaker.is_none_or(|id| it.contains(id));
        assert!(run.audience.as_ref().is_none_or(includes), "{run:?}");
        assert!(run.kind != RunKind::AutoMode || run.audience.is_none());
        if let Some(round) = state
            .round
            .as_ref()
            .filter(|it| Some(it.id) == run.round_id)
        {
            assert_eq!(round.audience, run.audience);
        }
    }
    for row in fixture
        .messages
        .iter()
        .filter(|it| it.conversation_run_id.is_some())
    {
        let run = fixture
            .ended
            .iter()
            .find(|it| Some(it.id) == row.conversation_run_id);
        assert_eq!(row.audience, run.expect("the run has ended").audience);
    }
    if let Command::MessagePosted(_) = command
        && plan
            .changes
            .iter()
            .any(|it| matches!(it, PlanChange::Append(it) if it.is_for_people))
    {
        assert_eq!(plan.changes.len(), 1);
        property_ooc::assert_turns_unchanged(before, fixture);
        assert_eq!(state.queued, before.queued);
    }
}

/// Asserts that no later message is for everyone or for the audience of the message to which a run adds
/// a version.
pub fn assert_newest(run: &run::Model, fixture: &PlannerFixture) {
    let target = run.debug.target_message_id.expect("a target");
    let mut messages = fixture.messages.iter();
    let target = messages.find(|it| it.id == target).expect("a message");
    let is_later = |it: &message::Model| {
        let is_seen = it.audience.is_none() || it.audience == target.audience;
        it.is_scheduled() && it.seq > target.seq && is_seen
    };
    assert!(!fixture.messages.iter().any(is_later));
}
