//! Tests of posts that no one answers: a narrator's text, a text in the name of a character, and dice.

use base::ids::MembershipId;

use crate::conversations::message;
use crate::runs::scheduling::command::{Command, CommandError};
use crate::runs::scheduling::messages::new_post::{NewPost, PostKind};
use crate::runs::scheduling::planner::continue_tests::continue_command;
use crate::runs::scheduling::planner::fixture::{ADA, BOB, EVE, PlannerFixture, success};
use crate::runs::store::run::{RunCancelReason, RunStatus};
use crate::spaces::membership::MembershipStatus;
use crate::spaces::space::{InputPolicy, RepliesPerTurn};

fn post_as(kind: PostKind) -> Command {
    Command::MessagePosted(Box::new(NewPost {
        kind,
        ..NewPost::new(EVE, "((It rains.))".to_owned())
    }))
}

/// Ada has replied, and Bob's slot is queued; it expects Ada's reply as the tail.
fn bob_is_next(policy: InputPolicy) -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture.state.space.during_generation_user_input_policy = policy;
    fixture.post_as_eve("Ada, Bob: hello.").unwrap();
    fixture.claim_due();
    fixture.end_run(success("Hello."));
    fixture
}

#[test]
fn none_of_these_kinds_plans_a_reply() {
    let kinds = [
        PostKind::Narrator,
        PostKind::Character(ADA),
        PostKind::Roll("2d6".parse().unwrap()),
    ];
    for kind in kinds {
        let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);

        fixture.run_command(&post_as(kind)).unwrap();

        let tail = fixture.state.tail.clone().expect("a message");
        assert_eq!((tail.role, tail.is_ooc), (kind.role(), false));
        assert!(fixture.state.queued.is_none() && fixture.state.round.is_none());
    }
}

#[test]
fn the_next_slot_stays_valid_and_is_the_same_run() {
    let mut fixture = bob_is_next(InputPolicy::Queue);
    let before = fixture.state.queued.clone().expect("a run is queued");

    fixture.run_command(&post_as(PostKind::Narrator)).unwrap();
    fixture.claim_due();

    let running = fixture.state.running.clone().expect("Bob speaks");
    assert_eq!(running.id, before.id);
    assert_eq!(running.speaker_space_membership_id, Some(BOB));
    assert_eq!(running.cutoff_seq, Some(3));
}

#[test]
fn a_queued_continue_of_the_former_newest_message_is_canceled() {
    let mut fixture = PlannerFixture::with_characters(&["Ada"]);
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.end_run(success("Hello."));
    fixture.run_command(&continue_command(None)).unwrap();

    fixture.run_command(&post_as(PostKind::Narrator)).unwrap();

    let ended = fixture.ended.last().expect("a run ended");
    assert_eq!(ended.status, RunStatus::Canceled);
    assert_eq!(
        ended.canceled_because,
        Some(RunCancelReason::SupersededByMessage)
    );
    assert!(fixture.state.queued.is_none());
}

#[test]
fn under_reject_it_is_refused_while_a_reply_is_queued() {
    let mut fixture = bob_is_next(InputPolicy::Reject);

    let refused = fixture.run_command(&post_as(PostKind::Narrator));

    assert_eq!(refused, Err(CommandError::GenerationLocked));
}

#[test]
fn under_restart_the_running_reply_is_not_discarded() {
    let mut fixture = bob_is_next(InputPolicy::Restart);
    fixture.claim_due();

    fixture.run_command(&post_as(PostKind::Narrator)).unwrap();

    assert!(fixture.state.running.is_some());
    fixture.end_run(success("Good evening."));
    assert!(fixture.state.round.is_none());
}

#[test]
fn a_text_in_the_name_of_a_character_is_by_that_character() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);

    fixture
        .run_command(&post_as(PostKind::Character(BOB)))
        .unwrap();

    let posted = fixture.messages.last().expect("a message");
    assert_eq!(posted.space_membership_id, BOB);
    assert_eq!(posted.role, message::MessageRole::Assistant);
}

#[test]
fn the_speaker_must_be_an_active_character() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.member_mut(BOB).status = MembershipStatus::Removed;

    for speaker in [EVE, BOB, MembershipId(99)] {
        let refused = fixture.run_command(&post_as(PostKind::Character(speaker)));

        assert_eq!(refused, Err(CommandError::UnknownSpeaker), "{speaker:?}");
    }
    assert!(fixture.messages.is_empty());
}
