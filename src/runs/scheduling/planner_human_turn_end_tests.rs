//! Tests of the end of a person's turn: by its deadline, a skip, a pause, a change of the person or the
//! settings, and an edit of the queue.

use base::ids::MembershipId;

use crate::conversations::audience::viewer::Viewer;
use crate::rounds::round::RoundState;
use crate::runs::scheduling::command::{Command, CommandError, SlotsEdit};
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, EVE, PlannerFixture, RETRY, SKIP, STOP, failure, post_by, success,
};
use crate::runs::scheduling::planner::human_turn_tests::{
    FAY, skip_by, skip_by_fay, taking_turns, waiting, waiting_before_bob,
};
use crate::spaces::membership;
use crate::spaces::membership::{CopilotMode, MembershipStatus, Participation};
use crate::spaces::permissions::SkipRight;
use crate::spaces::space::ReplyOrder;

#[test]
fn a_turn_is_skipped_at_its_deadline_and_not_before() {
    let mut fixture = waiting_before_bob();
    fixture.state.space.human_turn_timeout_s = 10;
    fixture.run_command(&STOP).unwrap();
    fixture.run_command(&Command::Resume).unwrap();
    let round = fixture.state.round.as_ref().expect("a round").id;

    fixture.now = fixture.now.plus_ms(9_999);
    let early = fixture.run_command(&Command::TurnTimedOut { round });
    assert_eq!(early, Err(CommandError::StaleRound));

    fixture.now = fixture.now.plus_ms(1);
    fixture
        .run_command(&Command::TurnTimedOut { round })
        .unwrap();
    assert_eq!(fixture.queued_speaker(), Some(BOB));
    let slot = fixture
        .state
        .round
        .as_ref()
        .and_then(|it| it.slots.at(0).cloned());
    assert_eq!(
        slot.and_then(|it| it.skip_reason).as_deref(),
        Some("turn_timeout")
    );
}

#[test]
fn a_deadline_after_the_post_changes_nothing() {
    let mut fixture = waiting_before_bob();
    fixture.state.space.human_turn_timeout_s = 10;
    fixture.run_command(&STOP).unwrap();
    fixture.run_command(&Command::Resume).unwrap();
    let round = fixture.state.round.as_ref().expect("a round").id;
    fixture.run_command(&post_by(FAY, "Just in time.")).unwrap();
    fixture.now = fixture.now.plus_ms(20_000);

    let late = fixture.run_command(&Command::TurnTimedOut { round });

    assert_eq!(late, Err(CommandError::StaleRound));
}

#[test]
fn only_the_person_and_moderators_skip_the_turn_of_a_person() {
    for (command, is_allowed) in [
        (skip_by_fay(), true),
        (skip_by(EVE, SkipRight::OwnTurn), false),
        (skip_by(EVE, SkipRight::Characters), false),
        (skip_by(EVE, SkipRight::Everyone), true),
    ] {
        let mut fixture = waiting_before_bob();

        let skipped = fixture.run_command(&command);

        assert_eq!(skipped.is_ok(), is_allowed, "{command:?}");
        let next = if is_allowed { Some(BOB) } else { None };
        assert_eq!(fixture.queued_speaker(), next);
    }
}

#[test]
fn who_may_skip_only_their_own_turn_skips_no_character() {
    let mut fixture = taking_turns();
    assert_eq!(
        fixture.run_command(&skip_by_fay()),
        Err(CommandError::Forbidden)
    );
    fixture.post_as_eve("Hi.").unwrap();

    assert_eq!(
        fixture.run_command(&skip_by_fay()),
        Err(CommandError::Forbidden)
    );
}

#[test]
fn stop_clears_the_timer_and_resume_starts_it_again() {
    let mut fixture = waiting_before_bob();
    fixture.state.space.human_turn_timeout_s = 10;

    fixture.run_command(&STOP).unwrap();
    let round = fixture.state.round.clone().expect("a round");
    assert_eq!(round.state, RoundState::Paused);
    assert_eq!((round.turn_started_at, round.deadline_at), (None, None));
    fixture.now = fixture.now.plus_ms(60_000);
    fixture.run_command(&Command::Resume).unwrap();

    let round = fixture.state.round.as_ref().expect("a round");
    assert_eq!(round.deadline_at, Some(fixture.now.plus_ms(10_000)));
}

#[test]
fn a_post_of_the_person_fills_the_slot_of_a_paused_round_which_stays_paused() {
    let mut fixture = waiting_before_bob();
    fixture.run_command(&Command::Pause).unwrap();

    fixture.run_command(&post_by(FAY, "Well.")).unwrap();

    let round = fixture.state.round.as_ref().expect("a round");
    assert_eq!((round.state, round.cursor), (RoundState::Paused, 1));
    assert!(fixture.state.queued.is_none());
}

#[test]
fn a_waiting_round_has_nothing_to_retry() {
    let mut fixture = waiting();

    assert_eq!(
        fixture.run_command(&RETRY),
        Err(CommandError::NothingToRetry)
    );
}

#[test]
fn a_person_who_can_no_longer_take_the_turn_is_passed_over_at_once() {
    type Change = fn(&mut membership::Model);
    let changes: [Change; 5] = [
        |it| it.status = MembershipStatus::Removed,
        |it| it.participation = Participation::Muted,
        |it| it.participation = Participation::Observer,
        |it| it.is_away = true,
        |it| it.copilot_mode = CopilotMode::Full,
    ];
    for change in changes {
        let mut fixture = waiting_before_bob();
        change(fixture.member_mut(FAY));

        fixture.run_command(&Command::ApplyChanges).unwrap();

        assert_eq!(fixture.queued_speaker(), Some(BOB));
        let slot = fixture
            .state
            .round
            .as_ref()
            .and_then(|it| it.slots.at(0).cloned());
        let reason = slot.and_then(|it| it.skip_reason);
        assert_eq!(reason.as_deref(), Some("not_schedulable"));
    }
}

#[test]
fn a_round_that_waits_for_a_deleted_membership_continues() {
    let mut fixture = waiting_before_bob();
    fixture.state.members.retain(|it| it.id != FAY);

    fixture.run_command(&Command::ApplyChanges).unwrap();

    assert_eq!(fixture.queued_speaker(), Some(BOB));
}

#[test]
fn an_absent_person_is_passed_over_when_the_turn_comes() {
    let mut fixture = taking_turns();
    fixture.post_as_eve("Hi.").unwrap();
    fixture.member_mut(FAY).is_away = true;
    for _ in 0..2 {
        fixture.claim_due();
        fixture.end_run(success("Hello."));
    }

    assert!(fixture.state.round.is_none());
}

#[test]
fn switching_the_setting_off_passes_over_the_people() {
    let mut fixture = waiting_before_bob();
    fixture.state.space.humans_take_turns = false;

    fixture.run_command(&Command::ApplyChanges).unwrap();

    assert_eq!(fixture.queued_speaker(), Some(BOB));
}

#[test]
fn switching_to_the_manual_order_ends_a_waiting_round() {
    let mut fixture = waiting();
    fixture.state.space.reply_order = ReplyOrder::Manual;

    fixture.run_command(&Command::ApplyChanges).unwrap();

    assert!(fixture.state.round.is_none());
}

#[test]
fn an_edit_of_the_queue_puts_people_and_characters_in_each_others_place() {
    let edit = |fixture: &PlannerFixture, slots: &[MembershipId]| {
        Command::EditQueue(SlotsEdit {
            round: fixture.state.round.as_ref().expect("a round").id,
            slots: slots.iter().copied().map(Some).collect(),
            by: "Eve".to_owned(),
            viewer: Viewer::Server,
        })
    };
    let mut fixture = waiting_before_bob();

    fixture.run_command(&edit(&fixture, &[BOB, FAY])).unwrap();
    assert_eq!(
        (fixture.waits_for(), fixture.queued_speaker()),
        (None, Some(BOB))
    );

    fixture.run_command(&edit(&fixture, &[FAY, BOB])).unwrap();
    assert_eq!(
        (fixture.waits_for(), fixture.queued_speaker()),
        (Some(FAY), None)
    );

    let since = fixture
        .state
        .round
        .as_ref()
        .and_then(|it| it.turn_started_at);
    fixture.now = fixture.now.plus_ms(1_000);
    fixture.run_command(&edit(&fixture, &[FAY])).unwrap();
    let round = fixture.state.round.as_ref().expect("a round");
    assert_eq!(round.turn_started_at, since, "the turn goes on");
}

#[test]
fn a_person_cannot_be_put_into_the_queue_where_people_take_no_turns() {
    let mut fixture = waiting_before_bob();
    fixture.run_command(&SKIP).unwrap();
    fixture.state.space.humans_take_turns = false;
    let edit = Command::EditQueue(SlotsEdit {
        round: fixture.state.round.as_ref().expect("a round").id,
        slots: vec![Some(FAY)],
        by: "Eve".to_owned(),
        viewer: Viewer::Server,
    });

    assert_eq!(
        fixture.run_command(&edit),
        Err(CommandError::NotSchedulable)
    );
}

#[test]
fn a_failed_run_of_a_round_with_people_keeps_the_round_for_a_retry() {
    let mut fixture = taking_turns();
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.end_run(failure());

    fixture.run_command(&post_by(FAY, "Hm.")).unwrap();
    fixture.run_command(&RETRY).unwrap();

    assert_eq!(fixture.queued_speaker(), Some(ADA));
    assert_eq!(fixture.turn_takers(), [ADA, BOB, FAY]);
}
