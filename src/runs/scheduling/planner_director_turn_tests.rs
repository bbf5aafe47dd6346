//! Tests of the turns that are left to the director: auto mode, Generate, whispers, copilot, last turn.

use base::ids::MembershipId;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::runs::scheduling::command::{Command, ForcedTurn};
use crate::runs::scheduling::planner::fixture::{ADA, BOB, EVE, PlannerFixture, force, success};
use crate::runs::scheduling::planner::fixture_director::{CID, answer, choosing, directed};
use crate::runs::scheduling::planner::property_invariants::whisper_to;
use crate::runs::scheduling::planner::regenerate_tests::regenerate;
use crate::runs::store::run::RunKind;
use crate::spaces::membership::CopilotMode;
use crate::spaces::space::{GroupRegenerateMode, RepliesPerTurn, ReplyOrder};

#[test]
fn auto_mode_asks_the_director_and_excludes_the_last_author() {
    let mut fixture = directed();
    fixture.state.space.auto_mode_enabled = true;
    fixture.post_as_eve("Ada?").unwrap();
    fixture.claim_due();
    let follows = fixture.end_run(success("Well."));
    fixture.now = fixture.now.plus_ms(5_000);
    fixture.claim_due();

    fixture.choose(answer(&[ADA], "Ada again.")).unwrap();

    let queued = "queue director: auto_mode, auto_mode, in 5000 ms".to_owned();
    assert_eq!(follows.last(), Some(&queued));
    let because = "director failed (no_usable_name): next in rotation";
    assert_eq!(fixture.running_because(), because);
    assert_eq!(fixture.slot_speakers(), [Some(BOB)]);
}

#[test]
fn with_self_responses_the_director_may_choose_the_last_author() {
    let mut fixture = directed();
    fixture.state.space.auto_mode_enabled = true;
    fixture.state.space.allow_self_responses = true;
    fixture.post_as_eve("Ada?").unwrap();
    fixture.claim_due();
    fixture.end_run(success("Well."));
    fixture.now = fixture.now.plus_ms(5_000);
    fixture.claim_due();

    fixture.choose(answer(&[ADA], "Ada again.")).unwrap();

    assert_eq!(fixture.slot_speakers(), [Some(ADA)]);
}

#[test]
fn auto_mode_rests_when_the_last_author_is_the_only_character() {
    let mut fixture = PlannerFixture::with_characters(&["Ada"]);
    fixture.state.space.reply_order = ReplyOrder::Director;
    fixture.state.space.auto_mode_enabled = true;
    fixture.post_as_eve("Ada?").unwrap();
    fixture.claim_due();

    fixture.end_run(success("Well."));

    assert!(fixture.state.queued.is_none() && fixture.state.round.is_none());
}

#[test]
fn each_further_chosen_speaker_of_auto_mode_counts_as_a_turn() {
    let mut fixture = directed();
    fixture.state.space.auto_mode_enabled = true;
    fixture.state.space.auto_mode_max_turns = 2;
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture.post_as_eve("Ada?").unwrap();
    fixture.claim_due();
    fixture.end_run(success("Well."));
    fixture.now = fixture.now.plus_ms(5_000);
    fixture.claim_due();
    fixture.choose(answer(&[BOB, CID, BOB], "All.")).unwrap();
    fixture.end_run(success("Yes."));
    fixture.now = fixture.now.plus_ms(5_000);
    fixture.claim_due();

    let plan = fixture.end_run(success("No."));

    assert_eq!(plan.last().unwrap(), "round finished: auto_mode_budget");
}

fn generate() -> Command {
    Command::ForceTalk(ForcedTurn::new(None, "Eve", Viewer::Server))
}

#[test]
fn generate_without_a_speaker_asks_the_director_for_one() {
    let mut fixture = directed();
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture.post_as_eve("((Go on.))").unwrap();

    let plan = fixture.run_command(&generate()).unwrap();
    fixture.claim_due();
    let chosen = fixture.choose(answer(&[CID, BOB], "Cid.")).unwrap();

    assert_eq!(plan, ["queue director: force_talk, generate"]);
    assert_eq!(chosen, ["choose Cid"]);
}

#[test]
fn a_named_speaker_is_never_left_to_the_director() {
    let mut fixture = directed();

    let plan = fixture.run_command(&force(BOB)).unwrap();

    assert_eq!(plan, ["queue Bob: force_talk, force_talk"]);
}

#[test]
fn a_post_keeps_a_generated_turn_and_its_first_speaker_is_forced() {
    let mut open = directed();
    open.run_command(&generate()).unwrap();
    let id = open.state.queued.as_ref().unwrap().id;
    let mut mentioned = open.clone();

    open.post_as_eve("Hi.").unwrap();
    mentioned.post_as_eve("Bob?").unwrap();

    for (fixture, speaker) in [(&open, None), (&mentioned, Some(BOB))] {
        let queued = fixture.state.queued.as_ref().unwrap();
        assert_eq!((queued.id, queued.kind), (id, RunKind::ForceTalk));
        assert_eq!(queued.speaker_space_membership_id, speaker);
        assert_eq!(fixture.slot_speakers(), [speaker]);
        assert!(fixture.state.round.as_ref().unwrap().slots.0[0].forced);
    }
}

#[test]
fn a_forced_slot_stays_forced_when_its_speaker_is_chosen() {
    let mut fixture = directed();
    fixture.run_command(&generate()).unwrap();
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();

    fixture.choose(answer(&[CID], "Cid.")).unwrap();

    let slots = &fixture.state.round.as_ref().unwrap().slots.0;
    assert_eq!((slots.len(), slots[0].forced), (1, true));
}

#[test]
fn a_crash_during_the_choice_of_a_generated_turn_plans_it_again() {
    let mut before = directed();
    before.run_command(&generate()).unwrap();
    before.claim_due();
    let mut after = before.clone();
    after.choose(answer(&[CID], "Cid.")).unwrap();

    let plan_before = before.expire_lease();
    let plan_after = after.expire_lease();

    assert_eq!(
        plan_before[1],
        "queue director: force_talk, recovered, attempt 2"
    );
    assert_eq!(plan_after[1], "queue Cid: force_talk, recovered, attempt 2");
}

#[test]
fn a_whisper_leaves_only_the_characters_of_its_audience_to_the_director() {
    let mut fixture = directed();
    fixture
        .run_command(&whisper_to(vec![ADA.0, CID.0]))
        .unwrap();
    fixture.claim_due();

    fixture.choose(answer(&[BOB], "Bob.")).unwrap();

    assert_eq!(fixture.slot_speakers(), [Some(ADA)]);
    let running = fixture.state.running.as_ref().unwrap();
    let audience = [1, 2, 4].map(MembershipId);
    assert_eq!(running.audience, Audience::new(audience));
}

#[test]
fn a_post_during_the_choice_ends_the_round_and_the_chosen_one_still_speaks() {
    let mut fixture = choosing();
    fixture.post_as_eve("And then?").unwrap();

    let plan = fixture.choose(answer(&[BOB, CID], "Bob.")).unwrap();

    assert_eq!(plan, ["choose Bob"]);
    assert_eq!(fixture.slot_speakers(), [None]);
    fixture.end_run(success("Hello."));
    assert_eq!(fixture.claim_due(), ["claim director"]);
}

#[test]
fn the_last_turn_is_regenerated_by_the_director() {
    let mut fixture = choosing();
    fixture.choose(answer(&[BOB], "Bob.")).unwrap();
    fixture.end_run(success("Hello."));
    fixture.state.space.group_regenerate_mode = GroupRegenerateMode::LastTurn;

    let plan = fixture.run_command(&regenerate(None)).unwrap();

    assert_eq!(plan.last().unwrap(), "queue director: user_turn, last_turn");
}

#[test]
fn the_copilot_is_answered_by_whom_the_director_chooses() {
    let mut fixture = directed();
    let conversation = fixture.state.conversation.id;
    let member = fixture.member_mut(EVE);
    member.copilot_mode = CopilotMode::Full;
    member.copilot_remaining_steps = Some(1);
    member.copilot_conversation_id = Some(conversation);
    fixture
        .run_command(&Command::CopilotStarted { membership: EVE })
        .unwrap();
    fixture.claim_due();

    let plan = fixture.end_run(success("I look around."));

    assert_eq!(
        plan.last().unwrap(),
        "queue director: user_turn, user_message"
    );
}
