//! Tests of the turns of people: who gets a slot, what fills it, and what other posts change meanwhile.

use base::ids::{MembershipId, MessageId};

use crate::conversations::audience::viewer::Viewer;
use crate::rounds::round::{RoundState, RoundStatus};
use crate::rounds::slot::SlotStatus;
use crate::runs::scheduling::command::{Command, CommandError};
use crate::runs::scheduling::messages::new_post::{NewPost, RequestedAudience};
use crate::runs::scheduling::plan::PlanChange;
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, EVE, PlannerFixture, force, post_by, success,
};
use crate::runs::store::run::{RunKind, RunReason};
use crate::spaces::membership::Participation;
use crate::spaces::permissions::SkipRight;
use crate::spaces::space::{InputPolicy, RepliesPerTurn, ReplyOrder};

/// Another person.
pub const FAY: MembershipId = MembershipId(6);

/// Fay, who may skip only her own turn, skips.
pub fn skip_by_fay() -> Command {
    skip_by(FAY, SkipRight::OwnTurn)
}

pub fn skip_by(person: MembershipId, right: SkipRight) -> Command {
    Command::Skip {
        viewer: Viewer::Member(person),
        right,
    }
}

/// Eve, Ada, Bob and Fay, who take turns in the order of the list.
pub fn taking_turns() -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.add_person(FAY, "Fay");
    fixture.state.space.humans_take_turns = true;
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture
}

/// Eve has posted, Ada and Bob have replied, and it is Fay's turn, the last one.
pub fn waiting() -> PlannerFixture {
    let mut fixture = taking_turns();
    fixture.post_as_eve("Hi.").unwrap();
    for _ in 0..2 {
        fixture.claim_due();
        fixture.end_run(success("Hello."));
    }
    assert_eq!(fixture.waits_for(), Some(FAY));
    fixture
}

/// It is Fay's turn, and Bob's is next.
pub fn waiting_before_bob() -> PlannerFixture {
    let mut fixture = taking_turns();
    let position = |id: MembershipId| if id == FAY { 2 } else { id.0 };
    for member in &mut fixture.state.members {
        member.position = position(member.id);
    }
    fixture.member_mut(ADA).participation = Participation::Muted;
    fixture.post_as_eve("Hi.").unwrap();
    assert_eq!(fixture.waits_for(), Some(FAY));
    fixture
}

impl PlannerFixture {
    pub fn waits_for(&self) -> Option<MembershipId> {
        let round = self.state.round.as_ref()?;
        let slot = round.current_slot()?;
        let waits = round.state == RoundState::Waiting;
        slot.space_membership_id.filter(|_| waits)
    }

    pub fn turn_takers(&self) -> Vec<MembershipId> {
        let slots = self.state.round.iter().flat_map(|it| &it.slots.0);
        slots.filter_map(|it| it.space_membership_id).collect()
    }

    pub fn queued_speaker(&self) -> Option<MembershipId> {
        let run = self.state.queued.as_ref();
        run.and_then(|it| it.speaker_space_membership_id)
    }
}

#[test]
fn people_and_characters_take_turns_by_position_without_the_author() {
    let mut fixture = taking_turns();

    fixture.post_as_eve("Hi.").unwrap();

    assert_eq!(fixture.turn_takers(), [ADA, BOB, FAY]);
    assert_eq!(fixture.queued_speaker(), Some(ADA));
}

#[test]
fn without_the_setting_people_get_no_turns() {
    let mut fixture = taking_turns();
    fixture.state.space.humans_take_turns = false;

    fixture.post_as_eve("Hi.").unwrap();

    assert_eq!(fixture.turn_takers(), [ADA, BOB]);
}

#[test]
fn with_one_reply_the_turn_passes_from_the_author_of_the_newest_message() {
    let mut fixture = taking_turns();
    fixture.state.space.replies_per_turn = RepliesPerTurn::One;
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.end_run(success("Hello."));
    fixture.post_as_eve("And you?").unwrap();
    fixture.claim_due();
    fixture.end_run(success("Well."));

    fixture.post_as_eve("Fay?").unwrap();
    assert_eq!(fixture.waits_for(), Some(FAY));
    fixture.run_command(&post_by(FAY, "Me?")).unwrap();

    assert!(fixture.state.round.is_none() && fixture.state.queued.is_none());
    fixture.post_as_eve("Yes.").unwrap();
    assert_eq!(
        fixture.queued_speaker(),
        Some(ADA),
        "the turn has passed Fay"
    );
}

#[test]
fn in_natural_order_a_mentioned_person_gets_a_turn_at_the_place_of_the_mention() {
    let mut fixture = taking_turns();
    fixture.state.space.reply_order = ReplyOrder::Natural;
    for id in [ADA, BOB] {
        fixture.member_mut(id).talkativeness = Some(0.0);
    }

    fixture.post_as_eve("Bob, then Fay, then Ada.").unwrap();

    assert_eq!(fixture.turn_takers(), [BOB, FAY, ADA]);
}

#[test]
fn in_natural_order_no_person_gets_a_turn_without_a_mention() {
    let mut fixture = taking_turns();
    fixture.state.space.reply_order = ReplyOrder::Natural;
    for id in [ADA, BOB] {
        fixture.member_mut(id).participation = Participation::Muted;
    }

    fixture.post_as_eve("Anyone?").unwrap();

    assert!(fixture.state.round.is_none());
}

#[test]
fn in_auto_mode_people_get_no_turns() {
    let mut fixture = taking_turns();
    fixture.state.space.auto_mode_enabled = true;
    fixture.member_mut(FAY).is_away = true;
    fixture.post_as_eve("Hi.").unwrap();
    fixture.member_mut(FAY).is_away = false;
    for _ in 0..2 {
        fixture.claim_due();
        fixture.end_run(success("Fay?"));
    }

    assert_eq!(fixture.turn_takers(), [ADA]);
}

#[test]
fn after_a_whisper_people_get_no_turns() {
    let mut fixture = taking_turns();
    let mut post = NewPost::new(EVE, "Psst.".to_owned());
    post.requested.audience = RequestedAudience::Only(vec![ADA, FAY]);

    fixture
        .run_command(&Command::MessagePosted(Box::new(post)))
        .unwrap();

    assert_eq!(fixture.turn_takers(), [ADA]);
}

#[test]
fn a_waiting_round_has_a_start_and_a_deadline_but_no_run() {
    let mut fixture = taking_turns();
    fixture.state.space.human_turn_timeout_s = 30;
    for id in [ADA, BOB] {
        fixture.member_mut(id).participation = Participation::Muted;
    }

    fixture.post_as_eve("Hi.").unwrap();

    let round = fixture.state.round.as_ref().expect("a round");
    assert_eq!(round.state, RoundState::Waiting);
    assert_eq!(round.turn_started_at, Some(fixture.now));
    assert_eq!(round.deadline_at, Some(fixture.now.plus_ms(30_000)));
    assert!(fixture.state.queued.is_none());
}

#[test]
fn without_a_timeout_a_turn_has_no_deadline() {
    let fixture = waiting();

    let round = fixture.state.round.as_ref().expect("a round");
    assert_eq!(
        (round.deadline_at, round.turn_started_at),
        (None, Some(fixture.now))
    );
}

#[test]
fn a_post_of_the_person_fills_the_slot_and_queues_the_next_one_at_once() {
    let mut fixture = waiting_before_bob();
    fixture.state.space.user_turn_debounce_ms = 500;

    fixture.run_command(&post_by(FAY, "Well.")).unwrap();

    let round = fixture.state.round.as_ref().expect("the round continues");
    let slot = round.slots.at(0).expect("a slot");
    assert_eq!(
        (slot.status, slot.message_id),
        (SlotStatus::Spoken, Some(MessageId(2)))
    );
    assert_eq!((round.cursor, round.state), (1, RoundState::Generating));
    let run = fixture.state.queued.as_ref().expect("a run");
    assert_eq!(run.speaker_space_membership_id, Some(BOB));
    assert_eq!(
        (run.kind, run.reason),
        (RunKind::UserTurn, RunReason::NextSlot)
    );
    assert_eq!(run.run_after, None, "no debounce");
    assert_eq!(run.debug.trigger_message_id, Some(MessageId(2)));
    assert_eq!(run.debug.expected_last_message_id, Some(MessageId(2)));
}

#[test]
fn the_last_turn_of_a_person_finishes_the_round() {
    let mut fixture = waiting();

    let (plan, _) = fixture.execute(&post_by(FAY, "Bye.")).unwrap();

    assert!(plan.changes.iter().any(|it| matches!(
        it,
        PlanChange::EndRound {
            status: RoundStatus::Finished,
            ..
        }
    )));
    assert!(fixture.state.round.is_none() && fixture.state.queued.is_none());
}

#[test]
fn a_whisper_and_a_message_out_of_character_are_no_turns() {
    let mut fixture = waiting_before_bob();
    let mut whisper = NewPost::new(FAY, "Psst.".to_owned());
    whisper.requested.audience = RequestedAudience::Only(vec![BOB]);

    fixture
        .run_command(&Command::MessagePosted(Box::new(whisper)))
        .unwrap();
    fixture.run_command(&post_by(FAY, "((Brb.))")).unwrap();

    assert_eq!(fixture.waits_for(), Some(FAY));
}

#[test]
fn a_post_of_another_person_leaves_the_round_as_it_is() {
    let mut fixture = waiting_before_bob();
    let before = fixture.state.round.clone();

    fixture.post_as_eve("Take your time.").unwrap();

    assert_eq!(fixture.state.round, before);
    assert!(fixture.state.queued.is_none());
}

#[test]
fn a_post_of_another_person_is_in_the_prompt_of_the_queued_slot() {
    let mut fixture = waiting_before_bob();
    fixture.run_command(&post_by(FAY, "Well.")).unwrap();

    fixture.post_as_eve("Go on.").unwrap();

    fixture.claim_due();
    let (run, _) = fixture.running();
    assert_eq!(
        fixture.state.running.as_ref().map(|it| it.cutoff_seq),
        Some(Some(3))
    );
    assert!(
        fixture.ended.iter().all(|it| it.id != run),
        "the claim is not skipped"
    );
}

#[test]
fn a_restarting_post_of_another_person_queues_the_same_slot_again() {
    let mut fixture = taking_turns();
    fixture.state.space.during_generation_user_input_policy = InputPolicy::Restart;
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();

    fixture.run_command(&post_by(FAY, "Wait!")).unwrap();

    assert!(fixture.state.running.is_none());
    assert_eq!(fixture.queued_speaker(), Some(ADA));
    assert_eq!(fixture.turn_takers(), [ADA, BOB, FAY]);
}

#[test]
fn a_rejecting_space_refuses_posts_only_while_a_run_is_active() {
    let mut fixture = taking_turns();
    fixture.state.space.during_generation_user_input_policy = InputPolicy::Reject;
    fixture.post_as_eve("Hi.").unwrap();

    let refused = fixture.run_command(&post_by(FAY, "Wait!"));
    assert_eq!(refused, Err(CommandError::GenerationLocked));

    let mut waiting = waiting();
    waiting.state.space.during_generation_user_input_policy = InputPolicy::Reject;
    assert!(waiting.post_as_eve("Fay?").is_ok());
}

#[test]
fn a_post_that_makes_a_person_first_cancels_the_queued_run() {
    let mut fixture = waiting();
    fixture.run_command(&force(BOB)).unwrap();
    fixture.claim_due();
    fixture.end_run(success("Yes."));
    fixture.state.space.replies_per_turn = RepliesPerTurn::One;
    fixture.state.space.humans_take_turns = false;
    fixture.state.space.user_turn_debounce_ms = 500;
    fixture.post_as_eve("One.").unwrap();
    let replaced = fixture.state.queued.as_ref().expect("a run").id;
    fixture.state.space.humans_take_turns = true;
    fixture.state.space.reply_order = ReplyOrder::Natural;
    fixture
        .run_command(&Command::Stop {
            keep_partial: false,
        })
        .unwrap();
    fixture.state.round = None;

    fixture.post_as_eve("Fay?").unwrap();

    assert_eq!(fixture.waits_for(), Some(FAY));
    assert!(fixture.ended.iter().any(|it| it.id == replaced));
}
