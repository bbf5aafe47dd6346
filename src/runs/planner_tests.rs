//! What a post plans: the policy table, the debounce, and who may post.

use crate::ids::MembershipId;
use crate::rounds::round;
use crate::runs::command::Command;
use crate::runs::command::Post;
use crate::runs::command::Refusal;
use crate::runs::planner::stage::ADA;
use crate::runs::planner::stage::BOB;
use crate::runs::planner::stage::EVE;
use crate::runs::planner::stage::Stage;
use crate::runs::planner::stage::failure;
use crate::runs::planner::stage::post;
use crate::runs::planner::stage::success;
use crate::spaces::membership::CopilotMode;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership::Participation;
use crate::spaces::space;
use crate::spaces::space::InputPolicy;
use crate::spaces::space::ReplyOrder;

const EVERY_POLICY: [InputPolicy; 3] = [
    InputPolicy::Reject,
    InputPolicy::Queue,
    InputPolicy::Restart,
];

fn stage(policy: InputPolicy) -> Stage {
    let mut stage = Stage::of(&["Ada", "Bob"]);
    stage.s.space.during_generation_user_input_policy = policy;
    stage
}

/// Ada's reply is queued.
fn queued(policy: InputPolicy) -> Stage {
    let mut stage = stage(policy);
    stage.eve_says("First.").unwrap();
    stage
}

/// Ada's reply is being written.
fn running(policy: InputPolicy) -> Stage {
    let mut stage = queued(policy);
    stage.due();
    stage
}

fn paused(policy: InputPolicy) -> Stage {
    let mut stage = queued(policy);
    stage.does(&Command::Pause).unwrap();
    stage
}

fn failed(policy: InputPolicy) -> Stage {
    let mut stage = running(policy);
    stage.ends(failure());
    stage
}

#[test]
fn an_idle_conversation_stores_a_message_and_answers_it() {
    for policy in EVERY_POLICY {
        let plan = stage(policy).eve_says("Hi.");

        let expected = [
            r#"Eve says "Hi.""#,
            "round of Ada",
            "queue Ada: user_turn, user_message",
        ];
        assert_eq!(plan.unwrap(), expected);
    }
}

#[test]
fn a_message_gives_a_resting_conversation_a_new_round() {
    for policy in EVERY_POLICY {
        for mut stage in [paused(policy), failed(policy)] {
            let plan = stage.eve_says("Hi.");

            let expected = [
                r#"Eve says "Hi.""#,
                "round superseded: user_message",
                "round of Ada",
                "queue Ada: user_turn, user_message",
            ];
            assert_eq!(plan.unwrap(), expected);
        }
    }
}

#[test]
fn reject_stores_nothing_while_a_reply_is_on_its_way() {
    for mut stage in [queued(InputPolicy::Reject), running(InputPolicy::Reject)] {
        let refusal = stage.eve_says("Hi.");

        assert_eq!(refusal, Err(Refusal::GenerationLocked));
    }
}

#[test]
fn a_queued_reply_makes_place_for_the_answer_to_the_newer_message() {
    for policy in [InputPolicy::Queue, InputPolicy::Restart] {
        let mut stage = queued(policy);
        let first = stage.s.queued.as_ref().unwrap().id;

        let plan = stage.eve_says("Bob?").unwrap();

        let expected = [
            r#"Eve says "Bob?""#,
            "round superseded: user_message",
            "round of Ada",
            "queue Ada: user_turn, user_message",
        ];
        assert_eq!(plan, expected);
        assert_eq!(stage.s.queued.unwrap().id, first, "the row keeps its id");
        assert!(stage.ended.is_empty(), "what is overwritten does not end");
    }
}

#[test]
fn under_queue_the_running_reply_goes_on_and_its_round_is_over() {
    let mut stage = running(InputPolicy::Queue);

    let plan = stage.eve_says("And then?").unwrap();

    let expected = [
        r#"Eve says "And then?""#,
        "round superseded: user_message",
        "round of Ada",
        "queue Ada: user_turn, user_message",
    ];
    assert_eq!(plan, expected);
    let committed = stage.ends(success("Hello."));
    assert_eq!(committed, ["finish Ada: succeeded", r#"Ada says "Hello.""#]);
    assert!(stage.s.queued.is_some(), "the newer plan waits its turn");
}

#[test]
fn under_restart_the_running_reply_is_dropped() {
    let mut stage = running(InputPolicy::Restart);

    let plan = stage.eve_says("And then?").unwrap();

    let expected = [
        r#"Eve says "And then?""#,
        "finish Ada: canceled",
        "round superseded: user_message",
        "round of Ada",
        "queue Ada: user_turn, user_message",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn a_restart_that_wakes_nobody_ends_the_round_whose_reply_it_dropped() {
    let mut stage = running(InputPolicy::Restart);
    stage.s.space.reply_order = ReplyOrder::Manual;

    let plan = stage.eve_says("Hush.").unwrap();

    let expected = [
        r#"Eve says "Hush.""#,
        "finish Ada: canceled",
        "round superseded: user_message",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn a_restart_that_wakes_nobody_leaves_a_round_that_still_waits() {
    let mut stage = running(InputPolicy::Queue);
    stage.eve_says("One more thing.").unwrap();
    stage.s.space.during_generation_user_input_policy = InputPolicy::Restart;
    stage.s.space.reply_order = ReplyOrder::Manual;

    let plan = stage.eve_says("Hush.").unwrap();

    assert_eq!(plan, [r#"Eve says "Hush.""#, "finish Ada: canceled"]);
}

#[test]
fn in_manual_order_a_message_wakes_nobody() {
    for mut stage in [
        stage(InputPolicy::Queue),
        paused(InputPolicy::Queue),
        running(InputPolicy::Queue),
    ] {
        stage.s.space.reply_order = ReplyOrder::Manual;

        assert_eq!(stage.eve_says("Hi.").unwrap(), [r#"Eve says "Hi.""#]);
    }
}

#[test]
fn the_debounce_moves_with_each_message_of_a_burst() {
    let mut stage = stage(InputPolicy::Queue);
    stage.s.space.user_turn_debounce_ms = 2_000;

    let first = stage.eve_says("One").unwrap();
    stage.now = stage.now.plus_ms(1_500);
    let second = stage.eve_says("two").unwrap();

    assert_eq!(first[2], "queue Ada: user_turn, user_message, in 2000 ms");
    assert_eq!(second[3], "queue Ada: user_turn, user_message, in 2000 ms");
}

#[test]
fn a_burst_waits_at_most_ten_debounces_and_no_less_than_ten_seconds() {
    for (debounce, bound) in [(500, 10_000), (1_000, 10_000), (3_000, 30_000)] {
        let mut stage = stage(InputPolicy::Queue);
        stage.s.space.user_turn_debounce_ms = debounce;
        let began = stage.now;

        while stage.now.ms_since(began) <= bound + debounce {
            stage.eve_says("…").unwrap();
            let at = stage.s.queued.as_ref().unwrap().run_after.unwrap();
            assert!(at >= stage.now);
            let expected = (stage.now.ms_since(began) + debounce).min(bound);
            let waits = at.ms_since(began);
            assert_eq!(waits, expected.max(stage.now.ms_since(began)));
            stage.now = stage.now.plus_ms(debounce / 2);
        }
    }
}

#[test]
fn a_claim_ends_the_burst() {
    let mut stage = stage(InputPolicy::Queue);
    stage.s.space.user_turn_debounce_ms = 500;
    stage.eve_says("One").unwrap();
    stage.now = stage.now.plus_ms(500);
    stage.due();
    stage.now = stage.now.plus_ms(60_000);

    stage.eve_says("two").unwrap();

    let run = stage.s.queued.unwrap();
    assert_eq!(run.burst_started_at, Some(stage.now));
    assert_eq!(run.run_after, Some(stage.now.plus_ms(500)));
}

#[test]
fn only_a_human_who_may_post_posts() {
    let by = |author| {
        let Command::Posted(it) = post("Hi.") else {
            unreachable!("a post is a post")
        };
        Command::Posted(Post { author, ..it })
    };
    let refusal = |change: fn(&mut Stage), author| {
        let mut stage = stage(InputPolicy::Queue);
        change(&mut stage);
        stage.does(&by(author)).unwrap_err()
    };

    let stranger = MembershipId(99);
    assert_eq!(refusal(|_| (), stranger), Refusal::NotFound);
    assert_eq!(refusal(|_| (), ADA), Refusal::Forbidden);
    assert_eq!(
        refusal(|it| it.seat(EVE).status = MembershipStatus::Removed, EVE),
        Refusal::Forbidden
    );
    assert_eq!(
        refusal(
            |it| it.seat(EVE).participation = Participation::Observer,
            EVE
        ),
        Refusal::Forbidden
    );
    assert_eq!(
        refusal(|it| it.s.space.status = space::SpaceStatus::Archived, EVE),
        Refusal::SpaceArchived
    );
}

#[test]
fn the_copilot_speaks_for_its_human_in_its_conversation_only() {
    let mut stage = stage(InputPolicy::Queue);
    let here = stage.s.conversation.id;
    stage.seat(EVE).copilot_mode = CopilotMode::Full;
    stage.seat(EVE).copilot_remaining_steps = Some(2);

    assert!(stage.eve_says("I am elsewhere.").is_ok());
    stage.seat(EVE).copilot_conversation_id = Some(here);
    assert_eq!(stage.eve_says("Me."), Err(Refusal::CopilotActive));
    stage.seat(EVE).copilot_remaining_steps = None;
    assert!(stage.eve_says("Its steps are spent.").is_ok());
}

#[test]
fn a_mention_names_somebody_who_is_here() {
    let mentions = |id| {
        let Command::Posted(it) = post("You!") else {
            unreachable!("a post is a post")
        };
        let mentions = vec![id];
        Command::Posted(Post { mentions, ..it })
    };
    let mut stage = stage(InputPolicy::Queue);
    stage.s.space.reply_order = ReplyOrder::Natural;

    let unknown = stage.does(&mentions(MembershipId(99)));
    let known = stage.does(&mentions(BOB)).unwrap();
    stage.seat(BOB).status = MembershipStatus::Removed;
    let gone = stage.does(&mentions(BOB));

    assert_eq!(unknown, Err(Refusal::UnknownMention));
    assert_eq!(known[1], "round of Bob");
    assert_eq!(gone, Err(Refusal::UnknownMention));
}

#[test]
fn a_round_keeps_its_trigger_and_the_reason_of_its_choice() {
    let stage = queued(InputPolicy::Queue);

    let round = stage.s.round.unwrap();
    let run = stage.s.queued.unwrap();
    assert_eq!(round.row.state, round::RoundState::Generating);
    assert_eq!(round.row.trigger_message_id, Some(stage.messages[0].id));
    assert_eq!(run.debug.trigger_message_id, Some(stage.messages[0].id));
    assert_eq!(run.round_id, Some(round.row.id));
    assert_eq!(run.slot_position, Some(0));
    assert_eq!(
        run.debug.chosen_because.unwrap(),
        round.slots[0].chosen_because
    );
}
