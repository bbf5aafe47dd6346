//! Tests of claims: in which states a due run is claimed, waits, is skipped or fails.

use base::ids::{MessageId, RunId};

use crate::runs::scheduling::command::Command;
use crate::runs::scheduling::planner::fixture::{ADA, BOB, PlannerFixture, force, queued, running};
use crate::spaces::membership::{MembershipStatus, Participation};
use crate::spaces::space;

#[test]
fn a_due_run_is_claimed() {
    let mut fixture = queued();

    assert_eq!(fixture.claim_due(), ["claim Ada"]);
    let run = fixture.state.running.unwrap();
    assert_eq!((run.lease, run.cutoff_seq), (1, Some(1)));
}

#[test]
fn a_run_that_is_not_due_is_not_claimed() {
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
fn a_claim_in_an_archived_space_cancels_the_run_and_its_round() {
    let mut fixture = queued();
    fixture.state.space.status = space::SpaceStatus::Archived;

    assert_eq!(
        fixture.claim_due(),
        ["cancel queued Ada", "round canceled: space_closed"]
    );
    assert!(fixture.state.queued.is_none());
}

#[test]
fn an_unexpected_tail_passes_the_turn_to_the_next_slot() {
    let mut fixture = queued();
    let other = MessageId(99);
    let run = fixture.state.queued.as_mut().unwrap();
    run.debug.expected_last_message_id = Some(other);

    let plan = fixture.claim_due();

    let expected = [
        "skip Ada: expected_last_message_mismatch",
        "slot 0 skipped: expected_last_message_mismatch",
        "round generating at 1",
        "queue Bob: user_turn, next_slot",
    ];
    assert_eq!(plan, expected);
    assert_eq!(
        fixture.claim_due(),
        ["claim Bob"],
        "it expects the current tail"
    );
}

#[test]
fn a_speaker_that_can_no_longer_be_scheduled_is_skipped() {
    let changes: [fn(&mut PlannerFixture); 3] = [
        |it| it.member_mut(ADA).participation = Participation::Muted,
        |it| it.member_mut(ADA).participation = Participation::Observer,
        |it| it.member_mut(ADA).status = MembershipStatus::Removed,
    ];
    for change in changes {
        let mut fixture = queued();
        change(&mut fixture);

        let plan = fixture.claim_due();

        assert_eq!(plan[0], "skip Ada: speaker_unavailable");
        assert_eq!(plan[3], "queue Bob: user_turn, next_slot");
    }
}

#[test]
fn skipping_the_last_slot_at_the_claim_finishes_the_round() {
    let mut fixture = queued();
    fixture.member_mut(ADA).participation = Participation::Muted;
    fixture.member_mut(BOB).participation = Participation::Muted;

    let plan = fixture.claim_due();

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
    let fixture = || {
        let mut fixture = PlannerFixture::with_characters(&["Ada"]);
        fixture.run_command(&force(ADA)).unwrap();
        fixture
    };

    let mut muted = fixture();
    muted.member_mut(ADA).participation = Participation::Muted;
    assert_eq!(muted.claim_due(), ["claim Ada"]);

    let mut removed = fixture();
    removed.member_mut(ADA).status = MembershipStatus::Removed;
    assert_eq!(removed.claim_due(), ["skip Ada: speaker_unavailable"]);
}

#[test]
fn a_space_without_tokens_or_models_fails_the_run_and_its_round() {
    let out_of_tokens = |it: &mut PlannerFixture| it.has_reached_token_limit = true;
    let without_provider = |it: &mut PlannerFixture| it.has_provider = false;
    let cases = [
        (
            "fail Ada: token_limit_exceeded",
            out_of_tokens as fn(&mut PlannerFixture),
        ),
        ("fail Ada: no_provider", without_provider),
    ];
    for (expected, change) in cases {
        let mut fixture = queued();
        change(&mut fixture);

        assert_eq!(fixture.claim_due(), [expected, "round failed at 0"]);
        assert_eq!(fixture.ended[0].cutoff_seq, Some(1), "a retry is possible");
    }
}
