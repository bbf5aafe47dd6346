//! Tests of claims: in which states a due run is claimed, waits, is skipped or fails.

use base::ids::{MessageId, RunId};

use crate::runs::scheduling::command::Command;
use crate::runs::scheduling::planner::fixture::{ADA, BOB, PlannerFixture, queued, running};
use crate::spaces::membership::{MembershipStatus, Participation};
use crate::spaces::space;

#[test]
fn a_due_run_is_claimed() {
    let mut stage = queued();

    assert_eq!(stage.claim_due(), ["claim Ada"]);
    let run = stage.state.running.unwrap();
    assert_eq!((run.lease, run.cutoff_seq), (1, Some(1)));
}

#[test]
fn a_run_that_is_not_due_stays_where_it_is() {
    let mut early = queued();
    let later = early.now.plus_ms(1);
    early.state.queued.as_mut().unwrap().run_after = Some(later);
    assert!(early.claim_due().is_empty());

    let mut busy = running();
    busy.post_as_eve("And?").unwrap();
    assert!(busy.claim_due().is_empty());

    let mut gone = queued();
    let run = RunId::new();
    assert!(
        gone.run_command(&Command::Claim { run })
            .unwrap()
            .is_empty()
    );
}

#[test]
fn nothing_begins_in_a_space_that_was_archived_meanwhile() {
    let mut stage = queued();
    stage.state.space.status = space::SpaceStatus::Archived;

    assert_eq!(
        stage.claim_due(),
        ["cancel queued Ada", "round canceled: space_closed"]
    );
    assert!(stage.state.queued.is_none());
}

#[test]
fn another_tail_than_expected_passes_the_turn_to_the_next_slot() {
    let mut stage = queued();
    let elsewhere = MessageId(99);
    let run = stage.state.queued.as_mut().unwrap();
    run.debug.expected_last_message_id = Some(elsewhere);

    let plan = stage.claim_due();

    let expected = [
        "skip Ada: expected_last_message_mismatch",
        "slot 0 skipped: expected_last_message_mismatch",
        "round generating at 1",
        "queue Bob: user_turn, next_slot",
    ];
    assert_eq!(plan, expected);
    assert_eq!(
        stage.claim_due(),
        ["claim Bob"],
        "it expects the present tail"
    );
}

#[test]
fn a_speaker_who_cannot_be_scheduled_any_more_is_passed_over() {
    let changes: [fn(&mut PlannerFixture); 3] = [
        |it| it.member_mut(ADA).participation = Participation::Muted,
        |it| it.member_mut(ADA).participation = Participation::Observer,
        |it| it.member_mut(ADA).status = MembershipStatus::Removed,
    ];
    for change in changes {
        let mut stage = queued();
        change(&mut stage);

        let plan = stage.claim_due();

        assert_eq!(plan[0], "skip Ada: speaker_unavailable");
        assert_eq!(plan[3], "queue Bob: user_turn, next_slot");
    }
}

#[test]
fn the_last_slot_that_is_passed_over_finishes_the_round() {
    let mut stage = queued();
    stage.member_mut(ADA).participation = Participation::Muted;
    stage.member_mut(BOB).participation = Participation::Muted;

    let plan = stage.claim_due();

    let expected = [
        "skip Ada: speaker_unavailable",
        "slot 0 skipped: speaker_unavailable",
        "slot 1 skipped: not_schedulable",
        "round generating at 1",
        "round finished: everybody_spoke",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn a_forced_turn_is_claimed_for_a_muted_speaker_and_not_for_a_removed_one() {
    let stage = || {
        let mut stage = PlannerFixture::with_characters(&["Ada"]);
        let (speaker, by) = (Some(ADA), "Eve".to_owned());
        stage
            .run_command(&Command::ForceTalk { speaker, by })
            .unwrap();
        stage
    };

    let mut muted = stage();
    muted.member_mut(ADA).participation = Participation::Muted;
    assert_eq!(muted.claim_due(), ["claim Ada"]);

    let mut removed = stage();
    removed.member_mut(ADA).status = MembershipStatus::Removed;
    assert_eq!(removed.claim_due(), ["skip Ada: speaker_unavailable"]);
}

#[test]
fn a_space_without_tokens_or_models_fails_the_run_and_its_round() {
    let broke = |it: &mut PlannerFixture| {
        (it.state.space.token_limit, it.state.space.tokens_used) = (10, 10)
    };
    let alone = |it: &mut PlannerFixture| it.has_provider = false;
    let cases = [
        (
            "fail Ada: token_limit_exceeded",
            broke as fn(&mut PlannerFixture),
        ),
        ("fail Ada: no_provider", alone),
    ];
    for (told, change) in cases {
        let mut stage = queued();
        change(&mut stage);

        assert_eq!(stage.claim_due(), [told, "round failed at 0"]);
        assert_eq!(stage.ended[0].cutoff_seq, Some(1), "a retry is possible");
    }
}

#[test]
fn a_limit_that_is_not_reached_or_not_set_stops_no_run() {
    for (limit, used) in [(0, 1_000_000), (10, 9)] {
        let mut stage = queued();
        (stage.state.space.token_limit, stage.state.space.tokens_used) = (limit, used);

        assert_eq!(stage.claim_due(), ["claim Ada"]);
    }
}
