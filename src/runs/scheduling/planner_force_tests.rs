//! Tests of forced replies, of the speaker that Generate selects, and of greetings.

use base::ids::MembershipId;
use tavern::macros::variables::VariableChanges;

use crate::conversations::swipe::SwipeText;
use crate::runs::scheduling::command::{Command, CommandError, Greeting};
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, EVE, PlannerFixture, failed, force, paused, queued, success,
};
use crate::spaces::membership::{MembershipStatus, Participation};
use crate::spaces::space::{InputPolicy, ReplyOrder};

fn idle() -> PlannerFixture {
    PlannerFixture::with_characters(&["Ada", "Bob"])
}

fn generate() -> Command {
    let (speaker, by) = (None, "Eve".to_owned());
    Command::ForceTalk { speaker, by }
}

#[test]
fn a_forced_turn_replaces_the_queued_run_and_ends_the_round() {
    let mut stage = queued();
    let first = stage.state.queued.as_ref().unwrap().id;

    let plan = stage.run_command(&force(BOB)).unwrap();

    let expected = [
        "round canceled: force_talk",
        "queue Bob: force_talk, force_talk",
    ];
    assert_eq!(plan, expected);
    let run = stage.state.queued.unwrap();
    assert_eq!(run.id, first);
    assert_eq!((run.round_id, run.slot_position), (None, None));
    assert_eq!(run.debug.chosen_because.unwrap(), "forced by Eve");
}

#[test]
fn a_forced_turn_waits_for_the_running_reply_whatever_the_policy() {
    for policy in [
        InputPolicy::Reject,
        InputPolicy::Queue,
        InputPolicy::Restart,
    ] {
        let mut stage = PlannerFixture::with_characters(&["Ada", "Bob"]);
        stage.post_as_eve("Hi.").unwrap();
        stage.claim_due();
        stage.state.space.during_generation_user_input_policy = policy;

        let plan = stage.run_command(&force(BOB)).unwrap();

        let expected = [
            "round canceled: force_talk",
            "queue Bob: force_talk, force_talk",
        ];
        assert_eq!(plan, expected);
        let committed = stage.end_run(success("Hello."));
        assert_eq!(committed, ["finish Ada: succeeded", r#"Ada says "Hello.""#]);
        assert_eq!(stage.claim_due(), ["claim Bob"]);
    }
}

#[test]
fn a_forced_turn_ends_a_round_that_rests() {
    for mut stage in [paused(), failed()] {
        stage.run_command(&force(BOB)).unwrap();

        assert!(stage.state.round.is_none());
        assert!(stage.state.queued.is_some());
    }
}

#[test]
fn a_muted_character_can_be_forced_and_a_removed_one_cannot() {
    let mut stage = idle();

    stage.member_mut(ADA).participation = Participation::Muted;
    assert!(stage.run_command(&force(ADA)).is_ok());
    stage.member_mut(ADA).participation = Participation::Observer;
    assert_eq!(stage.run_command(&force(ADA)), Err(CommandError::NoSpeaker));
    stage.member_mut(BOB).status = MembershipStatus::Removed;
    assert_eq!(stage.run_command(&force(BOB)), Err(CommandError::NoSpeaker));
    let stranger = MembershipId(99);
    assert_eq!(
        stage.run_command(&force(stranger)),
        Err(CommandError::NoSpeaker)
    );
    assert_eq!(stage.run_command(&force(EVE)), Err(CommandError::NoSpeaker));
}

#[test]
fn generate_selects_one_in_every_order_and_the_last_speaker_only_alone() {
    let orders = [
        ReplyOrder::Manual,
        ReplyOrder::Natural,
        ReplyOrder::List,
        ReplyOrder::Pooled,
    ];
    for order in orders {
        let mut stage = idle();
        stage.post_as_eve("Hi.").unwrap();
        stage.claim_due();
        stage.end_run(success("Hello."));
        stage.state.space.reply_order = order;

        let other = stage.run_command(&generate()).unwrap();
        stage.member_mut(BOB).participation = Participation::Muted;
        let alone = stage.run_command(&generate()).unwrap();
        stage.member_mut(ADA).participation = Participation::Muted;
        let nobody = stage.run_command(&generate());

        assert_eq!(other, ["queue Bob: force_talk, generate"], "{order:?}");
        assert_eq!(alone, ["queue Ada: force_talk, generate"], "{order:?}");
        assert_eq!(nobody, Err(CommandError::NoSpeaker), "{order:?}");
    }
}

#[test]
fn characters_greet_once_and_only_before_anybody_spoke() {
    let greeting = |seat, texts: &[&str]| Greeting {
        membership: seat,
        texts: texts
            .iter()
            .map(|it| SwipeText::new((*it).to_owned(), 1))
            .collect(),
        macros: VariableChanges {
            conversation: [("hat".to_owned(), "red".to_owned())].into(),
            ..VariableChanges::default()
        },
    };
    let greet =
        Command::InsertGreetings(vec![greeting(ADA, &["Hello.", "Hey."]), greeting(BOB, &[])]);
    let mut stage = idle();

    let (plan, _) = stage.clone().execute(&greet).unwrap();
    let greeted = stage.run_command(&greet).unwrap();
    stage.greeted = Some([ADA].into());
    let again = stage.run_command(&greet).unwrap();
    stage.greeted = None;
    let late = stage.run_command(&greet).unwrap();

    assert_eq!(greeted, [r#"Ada says "Hello.""#, "remember"]);
    let told = format!("{plan:?}");
    assert!(
        told.contains(r#"alternates: [SwipeText { content: "Hello.""#),
        "{told}"
    );
    assert!(told.contains(r#"Text { content: "Hey.""#), "{told}");
    assert!(again.is_empty() && late.is_empty());
}
