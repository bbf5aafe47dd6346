//! Tests of the reply order `director`: a slot without a speaker, and the choice.

use base::ids::MembershipId;

use crate::runs::scheduling::director::choice::DirectorFailure;
use crate::runs::scheduling::planner::fixture::{ADA, BOB, PlannerFixture, success};
use crate::runs::scheduling::planner::fixture_director::{CID, answer, choosing, directed};
use crate::runs::store::run::RunCancelReason;
use crate::spaces::membership::{MembershipStatus, Participation};
use crate::spaces::space::{RepliesPerTurn, ReplyOrder};

#[test]
fn a_post_plans_a_slot_without_a_speaker() {
    let mut fixture = directed();

    let plan = fixture.post_as_eve("Hi.").unwrap();

    assert_eq!(
        plan[1..],
        [
            "round of director",
            "queue director: user_turn, user_message"
        ]
    );
    assert_eq!(fixture.claim_due(), ["claim director"]);
}

#[test]
fn the_debounce_holds_for_a_slot_without_a_speaker() {
    let mut fixture = directed();
    fixture.state.space.user_turn_debounce_ms = 500;

    let first = fixture.post_as_eve("Hi.").unwrap();
    let id = fixture.state.queued.as_ref().unwrap().id;
    fixture.post_as_eve("Anyone?").unwrap();

    assert_eq!(
        first[2],
        "queue director: user_turn, user_message, in 500 ms"
    );
    assert_eq!(fixture.state.queued.as_ref().unwrap().id, id);
}

#[test]
fn the_choice_gives_run_and_slot_their_speaker() {
    let mut fixture = choosing();

    let plan = fixture.choose(answer(&[BOB], "Bob knows it.")).unwrap();

    assert_eq!(plan, ["slots from 0: Bob", "choose Bob"]);
    assert_eq!(fixture.running_because(), "director: Bob knows it.");
    fixture.end_run(success("Hello."));
    assert_eq!(fixture.messages.last().unwrap().space_membership_id, BOB);
}

#[test]
fn a_reason_is_one_line_of_at_most_200_characters() {
    let mut fixture = choosing();

    let reason = format!("a\n{}", "é".repeat(300));
    fixture.choose(answer(&[BOB], &reason)).unwrap();

    let shown = fixture.running_because();
    assert!(shown.starts_with("director: a é"), "{shown}");
    assert_eq!(shown.chars().count(), "director: ".len() + 200);
}

#[test]
fn a_choice_without_a_reason_is_the_directors() {
    let mut fixture = choosing();

    fixture.choose(answer(&[BOB], " \n")).unwrap();

    assert_eq!(fixture.running_because(), "director");
}

#[test]
fn several_chosen_speakers_follow_each_other_only_where_several_may_reply() {
    let mut one = choosing();
    let mut several = directed();
    several.state.space.replies_per_turn = RepliesPerTurn::Activated;
    several.post_as_eve("Hi.").unwrap();
    several.claim_due();

    one.choose(answer(&[CID, ADA], "Both.")).unwrap();
    several.choose(answer(&[CID, ADA], "Both.")).unwrap();

    assert_eq!(one.slot_speakers(), [Some(CID)]);
    assert_eq!(several.slot_speakers(), [Some(CID), Some(ADA)]);
    several.end_run(success("Hello."));
    assert_eq!(several.claim_due(), ["claim Ada"]);
    assert_eq!(several.running_because(), "director: Both.");
}

#[test]
fn at_most_four_speakers_are_chosen() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob", "Cid", "Dot", "Eli"]);
    fixture.state.space.reply_order = ReplyOrder::Director;
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();

    let all = [2, 3, 4, 5, 6].map(MembershipId);
    fixture.choose(answer(&all, "All.")).unwrap();

    assert_eq!(
        fixture.slot_speakers(),
        [2, 3, 4, 5].map(|it| Some(MembershipId(it)))
    );
}

#[test]
fn a_mentioned_character_speaks_without_the_director() {
    let mut fixture = directed();
    let mut several = directed();
    several.state.space.replies_per_turn = RepliesPerTurn::Activated;

    fixture.post_as_eve("Cid, or Bob?").unwrap();
    several.post_as_eve("Cid, or Bob?").unwrap();

    assert_eq!(fixture.slot_speakers(), [Some(CID)]);
    assert_eq!(several.slot_speakers(), [Some(CID), Some(BOB)]);
    assert_eq!(fixture.claim_due(), ["claim Cid"]);
    assert_eq!(fixture.running_because(), "mentioned \"Cid\"");
}

#[test]
fn without_an_answer_natural_order_chooses_and_the_reason_names_both() {
    let cases = [
        (DirectorFailure::Timeout, "timeout"),
        (DirectorFailure::CallFailed, "call_failed"),
        (DirectorFailure::NoUsableName, "no_usable_name"),
    ];
    for (failure, code) in cases {
        let mut fixture = choosing();
        fixture.choose(answer(&[ADA], "")).unwrap();
        fixture.end_run(success("Hello."));
        fixture.post_as_eve("And you?").unwrap();
        fixture.claim_due();

        let plan = fixture.fail_choice(failure).unwrap();

        assert_eq!(plan[1], "choose Bob");
        assert_eq!(
            fixture.running_because(),
            format!("director failed ({code}): next in rotation")
        );
    }
}

#[test]
fn without_an_answer_several_join_by_their_talkativeness() {
    let mut fixture = directed();
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    for (id, talkativeness) in [(ADA, 0.0), (BOB, 1.0), (CID, 1.0)] {
        fixture.member_mut(id).talkativeness = Some(talkativeness);
    }
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();

    fixture.fail_choice(DirectorFailure::Timeout).unwrap();

    let mut speakers = fixture.slot_speakers();
    speakers.sort();
    assert_eq!(speakers, [Some(BOB), Some(CID)]);
}

#[test]
fn a_chosen_member_that_was_muted_or_removed_meanwhile_is_passed_over() {
    let mut fixture = directed();
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.member_mut(ADA).participation = Participation::Muted;
    fixture.member_mut(BOB).status = MembershipStatus::Removed;

    fixture.choose(answer(&[ADA, BOB, CID], "All.")).unwrap();

    assert_eq!(fixture.slot_speakers(), [Some(CID)]);
}

#[test]
fn if_only_unusable_members_are_chosen_natural_order_chooses() {
    let mut fixture = choosing();
    fixture.member_mut(ADA).participation = Participation::Muted;

    fixture.choose(answer(&[ADA], "Ada.")).unwrap();

    let because = "director failed (no_usable_name): next in rotation";
    assert_eq!(fixture.running_because(), because);
    assert_eq!(fixture.slot_speakers(), [Some(BOB)]);
}

#[test]
fn without_a_candidate_at_the_claim_the_run_is_skipped() {
    let mut fixture = directed();
    fixture.post_as_eve("Hi.").unwrap();
    for id in [ADA, BOB, CID] {
        fixture.member_mut(id).participation = Participation::Muted;
    }

    let plan = fixture.claim_due();

    assert_eq!(plan[0], "skip director: speaker_unavailable");
    assert!(fixture.state.round.is_none());
}

#[test]
fn without_a_candidate_at_the_choice_the_run_is_canceled_and_the_round_ends() {
    let mut fixture = choosing();
    for id in [ADA, BOB, CID] {
        fixture.member_mut(id).participation = Participation::Muted;
    }

    fixture.choose(answer(&[ADA], "Ada.")).unwrap();

    let ended = fixture.ended.last().unwrap();
    assert_eq!(
        ended.canceled_because,
        Some(RunCancelReason::SpeakerUnavailable)
    );
    assert!(fixture.state.running.is_none() && fixture.state.round.is_none());
}

#[test]
fn a_space_without_characters_plans_nothing() {
    let mut fixture = PlannerFixture::with_characters(&[]);
    fixture.state.space.reply_order = ReplyOrder::Director;

    assert_eq!(fixture.post_as_eve("Hi.").unwrap().len(), 1);
}
