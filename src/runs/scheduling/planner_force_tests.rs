//! Tests of forced replies, of the speaker that Generate selects, and of greetings.

use base::ids::MembershipId;
use tavern::macros::variables::VariableChanges;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::swipe::SwipeText;
use crate::runs::scheduling::command::{Command, CommandError, ForcedTurn, Greeting};
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, EVE, PlannerFixture, failed, force, paused, queued, success,
};
use crate::spaces::membership::{MembershipStatus, Participation};
use crate::spaces::space::{InputPolicy, ReplyOrder};

fn idle() -> PlannerFixture {
    PlannerFixture::with_characters(&["Ada", "Bob"])
}

fn generate() -> Command {
    Command::ForceTalk(ForcedTurn::new(None, "Eve", Viewer::Server))
}

#[test]
fn a_forced_turn_replaces_the_queued_run_and_ends_the_round() {
    let mut fixture = queued();
    let first = fixture.state.queued.as_ref().unwrap().id;

    let plan = fixture.run_command(&force(BOB)).unwrap();

    let expected = [
        "round canceled: force_talk",
        "queue Bob: force_talk, force_talk",
    ];
    assert_eq!(plan, expected);
    let run = fixture.state.queued.unwrap();
    assert_eq!(run.id, first);
    assert_eq!((run.round_id, run.slot_position), (None, None));
    assert_eq!(run.debug.chosen_because.unwrap(), "forced by Eve");
}

#[test]
fn a_forced_turn_waits_for_the_running_reply_under_every_policy() {
    for policy in [
        InputPolicy::Reject,
        InputPolicy::Queue,
        InputPolicy::Restart,
    ] {
        let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
        fixture.post_as_eve("Hi.").unwrap();
        fixture.claim_due();
        fixture.state.space.during_generation_user_input_policy = policy;

        let plan = fixture.run_command(&force(BOB)).unwrap();

        let expected = [
            "round canceled: force_talk",
            "queue Bob: force_talk, force_talk",
        ];
        assert_eq!(plan, expected);
        let committed = fixture.end_run(success("Hello."));
        assert_eq!(committed, ["finish Ada: succeeded", r#"Ada says "Hello.""#]);
        assert_eq!(fixture.claim_due(), ["claim Bob"]);
    }
}

#[test]
fn a_forced_turn_ends_a_paused_or_failed_round() {
    for mut fixture in [paused(), failed()] {
        fixture.run_command(&force(BOB)).unwrap();

        assert!(fixture.state.round.is_none());
        assert!(fixture.state.queued.is_some());
    }
}

#[test]
fn a_muted_character_can_be_forced_and_a_removed_one_cannot() {
    let mut fixture = idle();

    fixture.member_mut(ADA).participation = Participation::Muted;
    assert!(fixture.run_command(&force(ADA)).is_ok());
    fixture.member_mut(ADA).participation = Participation::Observer;
    assert_eq!(
        fixture.run_command(&force(ADA)),
        Err(CommandError::NoSpeaker)
    );
    fixture.member_mut(BOB).status = MembershipStatus::Removed;
    assert_eq!(
        fixture.run_command(&force(BOB)),
        Err(CommandError::NoSpeaker)
    );
    let unknown = MembershipId(99);
    assert_eq!(
        fixture.run_command(&force(unknown)),
        Err(CommandError::NoSpeaker)
    );
    assert_eq!(
        fixture.run_command(&force(EVE)),
        Err(CommandError::NoSpeaker)
    );
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
        let mut fixture = idle();
        fixture.post_as_eve("Hi.").unwrap();
        fixture.claim_due();
        fixture.end_run(success("Hello."));
        fixture.state.space.reply_order = order;

        let other = fixture.run_command(&generate()).unwrap();
        fixture.member_mut(BOB).participation = Participation::Muted;
        let alone = fixture.run_command(&generate()).unwrap();
        fixture.member_mut(ADA).participation = Participation::Muted;
        let nobody = fixture.run_command(&generate());

        assert_eq!(other, ["queue Bob: force_talk, generate"], "{order:?}");
        assert_eq!(alone, ["queue Ada: force_talk, generate"], "{order:?}");
        assert_eq!(nobody, Err(CommandError::NoSpeaker), "{order:?}");
    }
}

#[test]
fn characters_greet_once_and_only_before_the_first_message() {
    let greeting = |member, texts: &[&str]| Greeting {
        membership: member,
        texts: texts
            .iter()
            .map(|it| SwipeText::new((*it).to_owned(), 1))
            .collect(),
        macros: VariableChanges {
            conversation: [("hat".to_owned(), Some("red".to_owned()))].into(),
            ..VariableChanges::default()
        },
    };
    let greet =
        Command::InsertGreetings(vec![greeting(ADA, &["Hello.", "Hey."]), greeting(BOB, &[])]);
    let mut fixture = idle();

    let (plan, _) = fixture.clone().execute(&greet).unwrap();
    let greeted = fixture.run_command(&greet).unwrap();
    fixture.greeted = Some([ADA].into());
    let again = fixture.run_command(&greet).unwrap();
    fixture.greeted = None;
    let later = fixture.run_command(&greet).unwrap();

    assert_eq!(greeted, [r#"Ada says "Hello.""#, "remember"]);
    let debug = format!("{plan:?}");
    assert!(
        debug.contains(r#"alternates: [SwipeText { content: "Hello.""#),
        "{debug}"
    );
    assert!(debug.contains(r#"Text { content: "Hey.""#), "{debug}");
    assert!(again.is_empty() && later.is_empty());
}
