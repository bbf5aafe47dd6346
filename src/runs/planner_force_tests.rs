//! Whom a person makes speak, whom Generate wakes, and who greets.

use crate::conversations::swipe::SwipeText;
use crate::ids::MembershipId;
use crate::prompt::macros::variables::VariableChanges;
use crate::runs::command::Command;
use crate::runs::command::Greeting;
use crate::runs::command::Refusal;
use crate::runs::planner::stage::ADA;
use crate::runs::planner::stage::BOB;
use crate::runs::planner::stage::EVE;
use crate::runs::planner::stage::Stage;
use crate::runs::planner::stage::failed;
use crate::runs::planner::stage::force;
use crate::runs::planner::stage::paused;
use crate::runs::planner::stage::queued;
use crate::runs::planner::stage::success;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership::Participation;
use crate::spaces::space::InputPolicy;
use crate::spaces::space::ReplyOrder;

fn idle() -> Stage {
    Stage::of(&["Ada", "Bob"])
}

fn generate() -> Command {
    let (speaker, by) = (None, "Eve".to_owned());
    Command::ForceTalk { speaker, by }
}

#[test]
fn a_forced_turn_takes_the_queued_place_and_ends_the_round() {
    let mut stage = queued();
    let first = stage.s.queued.as_ref().unwrap().id;

    let plan = stage.does(&force(BOB)).unwrap();

    let expected = [
        "round canceled: force_talk",
        "queue Bob: force_talk, force_talk",
    ];
    assert_eq!(plan, expected);
    let run = stage.s.queued.unwrap();
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
        let mut stage = Stage::of(&["Ada", "Bob"]);
        stage.eve_says("Hi.").unwrap();
        stage.due();
        stage.s.space.during_generation_user_input_policy = policy;

        let plan = stage.does(&force(BOB)).unwrap();

        let expected = [
            "round canceled: force_talk",
            "queue Bob: force_talk, force_talk",
        ];
        assert_eq!(plan, expected);
        let committed = stage.ends(success("Hello."));
        assert_eq!(committed, ["finish Ada: succeeded", r#"Ada says "Hello.""#]);
        assert_eq!(stage.due(), ["claim Bob"]);
    }
}

#[test]
fn a_forced_turn_ends_a_round_that_rests() {
    for mut stage in [paused(), failed()] {
        stage.does(&force(BOB)).unwrap();

        assert!(stage.s.round.is_none());
        assert!(stage.s.queued.is_some());
    }
}

#[test]
fn a_muted_character_can_be_forced_and_a_removed_one_cannot() {
    let mut stage = idle();

    stage.seat(ADA).participation = Participation::Muted;
    assert!(stage.does(&force(ADA)).is_ok());
    stage.seat(ADA).participation = Participation::Observer;
    assert_eq!(stage.does(&force(ADA)), Err(Refusal::NoSpeaker));
    stage.seat(BOB).status = MembershipStatus::Removed;
    assert_eq!(stage.does(&force(BOB)), Err(Refusal::NoSpeaker));
    let stranger = MembershipId(99);
    assert_eq!(stage.does(&force(stranger)), Err(Refusal::NoSpeaker));
    assert_eq!(stage.does(&force(EVE)), Err(Refusal::NoSpeaker));
}

#[test]
fn generate_wakes_one_in_every_order_and_the_last_speaker_only_alone() {
    let orders = [
        ReplyOrder::Manual,
        ReplyOrder::Natural,
        ReplyOrder::List,
        ReplyOrder::Pooled,
    ];
    for order in orders {
        let mut stage = idle();
        stage.eve_says("Hi.").unwrap();
        stage.due();
        stage.ends(success("Hello."));
        stage.s.space.reply_order = order;

        let other = stage.does(&generate()).unwrap();
        stage.seat(BOB).participation = Participation::Muted;
        let alone = stage.does(&generate()).unwrap();
        stage.seat(ADA).participation = Participation::Muted;
        let nobody = stage.does(&generate());

        assert_eq!(other, ["queue Bob: force_talk, generate"], "{order:?}");
        assert_eq!(alone, ["queue Ada: force_talk, generate"], "{order:?}");
        assert_eq!(nobody, Err(Refusal::NoSpeaker), "{order:?}");
    }
}

#[test]
fn characters_greet_once_and_only_before_anybody_spoke() {
    let greeting = |seat, texts: &[&str]| Greeting {
        seat,
        texts: texts
            .iter()
            .map(|it| SwipeText::new((*it).to_owned(), 1))
            .collect(),
        macros: VariableChanges {
            conversation: [("hat".to_owned(), "red".to_owned())].into(),
            ..VariableChanges::default()
        },
    };
    let greet = Command::Greet(vec![greeting(ADA, &["Hello.", "Hey."]), greeting(BOB, &[])]);
    let mut stage = idle();

    let (plan, _) = stage.clone().carries_out(&greet).unwrap();
    let greeted = stage.does(&greet).unwrap();
    stage.s.greeted.insert(ADA);
    let again = stage.does(&greet).unwrap();
    stage.s.greeted.clear();
    stage.s.is_untouched = false;
    let late = stage.does(&greet).unwrap();

    assert_eq!(greeted, [r#"Ada says "Hello.""#, "remember"]);
    let told = format!("{plan:?}");
    assert!(
        told.contains(r#"alternates: [Text { content: "Hello.""#),
        "{told}"
    );
    assert!(told.contains(r#"Text { content: "Hey.""#), "{told}");
    assert!(again.is_empty() && late.is_empty());
}
