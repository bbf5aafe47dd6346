//! Tests of what a post plans: the input policies, the debounce, and who may post.

use base::ids::MembershipId;

use crate::rounds::round;
use crate::runs::scheduling::command::{Command, CommandError, NewPost};
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, EVE, PlannerFixture, failure, post, success,
};
use crate::spaces::membership::{CopilotMode, MembershipStatus, Participation};
use crate::spaces::space;
use crate::spaces::space::{InputPolicy, ReplyOrder};

const EVERY_POLICY: [InputPolicy; 3] = [
    InputPolicy::Reject,
    InputPolicy::Queue,
    InputPolicy::Restart,
];

fn fixture_with_policy(policy: InputPolicy) -> PlannerFixture {
    let mut stage = PlannerFixture::with_characters(&["Ada", "Bob"]);
    stage.state.space.during_generation_user_input_policy = policy;
    stage
}

/// Ada's reply is queued.
fn queued(policy: InputPolicy) -> PlannerFixture {
    let mut stage = fixture_with_policy(policy);
    stage.post_as_eve("First.").unwrap();
    stage
}

/// Ada's reply is being written.
fn running(policy: InputPolicy) -> PlannerFixture {
    let mut stage = queued(policy);
    stage.claim_due();
    stage
}

fn paused(policy: InputPolicy) -> PlannerFixture {
    let mut stage = queued(policy);
    stage.run_command(&Command::Pause).unwrap();
    stage
}

fn failed(policy: InputPolicy) -> PlannerFixture {
    let mut stage = running(policy);
    stage.end_run(failure());
    stage
}

#[test]
fn an_idle_conversation_stores_a_message_and_answers_it() {
    for policy in EVERY_POLICY {
        let plan = fixture_with_policy(policy).post_as_eve("Hi.");

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
            let plan = stage.post_as_eve("Hi.");

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
        let refusal = stage.post_as_eve("Hi.");

        assert_eq!(refusal, Err(CommandError::GenerationLocked));
    }
}

#[test]
fn a_queued_reply_is_replaced_by_the_answer_to_a_newer_message() {
    for policy in [InputPolicy::Queue, InputPolicy::Restart] {
        let mut stage = queued(policy);
        let first = stage.state.queued.as_ref().unwrap().id;

        let plan = stage.post_as_eve("Bob?").unwrap();

        let expected = [
            r#"Eve says "Bob?""#,
            "round superseded: user_message",
            "round of Ada",
            "queue Ada: user_turn, user_message",
        ];
        assert_eq!(plan, expected);
        assert_eq!(
            stage.state.queued.unwrap().id,
            first,
            "the row keeps its id"
        );
        assert!(stage.ended.is_empty(), "what is overwritten does not end");
    }
}

#[test]
fn under_queue_the_running_reply_goes_on_and_its_round_is_over() {
    let mut stage = running(InputPolicy::Queue);

    let plan = stage.post_as_eve("And then?").unwrap();

    let expected = [
        r#"Eve says "And then?""#,
        "round superseded: user_message",
        "round of Ada",
        "queue Ada: user_turn, user_message",
    ];
    assert_eq!(plan, expected);
    let committed = stage.end_run(success("Hello."));
    assert_eq!(committed, ["finish Ada: succeeded", r#"Ada says "Hello.""#]);
    assert!(
        stage.state.queued.is_some(),
        "the newer plan waits its turn"
    );
}

#[test]
fn under_restart_the_running_reply_is_dropped() {
    let mut stage = running(InputPolicy::Restart);

    let plan = stage.post_as_eve("And then?").unwrap();

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
fn a_restart_without_repliers_ends_the_round_whose_reply_it_dropped() {
    let mut stage = running(InputPolicy::Restart);
    stage.state.space.reply_order = ReplyOrder::Manual;

    let plan = stage.post_as_eve("Hush.").unwrap();

    let expected = [
        r#"Eve says "Hush.""#,
        "finish Ada: canceled",
        "round superseded: user_message",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn a_restart_without_repliers_keeps_a_round_that_still_waits() {
    let mut stage = running(InputPolicy::Queue);
    stage.post_as_eve("One more thing.").unwrap();
    stage.state.space.during_generation_user_input_policy = InputPolicy::Restart;
    stage.state.space.reply_order = ReplyOrder::Manual;

    let plan = stage.post_as_eve("Hush.").unwrap();

    assert_eq!(plan, [r#"Eve says "Hush.""#, "finish Ada: canceled"]);
}

#[test]
fn manual_order_selects_no_speaker() {
    for mut stage in [
        fixture_with_policy(InputPolicy::Queue),
        paused(InputPolicy::Queue),
        running(InputPolicy::Queue),
    ] {
        stage.state.space.reply_order = ReplyOrder::Manual;

        assert_eq!(stage.post_as_eve("Hi.").unwrap(), [r#"Eve says "Hi.""#]);
    }
}

#[test]
fn the_debounce_moves_with_each_message_of_a_burst() {
    let mut stage = fixture_with_policy(InputPolicy::Queue);
    stage.state.space.user_turn_debounce_ms = 2_000;

    let first = stage.post_as_eve("One").unwrap();
    stage.now = stage.now.plus_ms(1_500);
    let second = stage.post_as_eve("two").unwrap();

    assert_eq!(first[2], "queue Ada: user_turn, user_message, in 2000 ms");
    assert_eq!(second[3], "queue Ada: user_turn, user_message, in 2000 ms");
}

#[test]
fn a_burst_waits_at_most_ten_debounces_and_no_less_than_ten_seconds() {
    for (debounce, bound) in [(500, 10_000), (1_000, 10_000), (3_000, 30_000)] {
        let mut stage = fixture_with_policy(InputPolicy::Queue);
        stage.state.space.user_turn_debounce_ms = debounce;
        let began = stage.now;

        while stage.now.ms_since(began) <= bound + debounce {
            stage.post_as_eve("…").unwrap();
            let at = stage.state.queued.as_ref().unwrap().run_after.unwrap();
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
    let mut stage = fixture_with_policy(InputPolicy::Queue);
    stage.state.space.user_turn_debounce_ms = 500;
    stage.post_as_eve("One").unwrap();
    stage.now = stage.now.plus_ms(500);
    stage.claim_due();
    stage.now = stage.now.plus_ms(60_000);

    stage.post_as_eve("two").unwrap();

    let run = stage.state.queued.unwrap();
    assert_eq!(run.burst_started_at, Some(stage.now));
    assert_eq!(run.run_after, Some(stage.now.plus_ms(500)));
}

#[test]
fn only_an_active_human_can_post() {
    let by = |author| {
        let Command::MessagePosted(it) = post("Hi.") else {
            unreachable!("a post is a post")
        };
        Command::MessagePosted(NewPost { author, ..it })
    };
    let refusal = |change: fn(&mut PlannerFixture), author| {
        let mut stage = fixture_with_policy(InputPolicy::Queue);
        change(&mut stage);
        stage.run_command(&by(author)).unwrap_err()
    };

    let stranger = MembershipId(99);
    assert_eq!(refusal(|_| (), stranger), CommandError::NotFound);
    assert_eq!(refusal(|_| (), ADA), CommandError::Forbidden);
    assert_eq!(
        refusal(
            |it| it.member_mut(EVE).status = MembershipStatus::Removed,
            EVE
        ),
        CommandError::Forbidden
    );
    assert_eq!(
        refusal(
            |it| it.member_mut(EVE).participation = Participation::Observer,
            EVE
        ),
        CommandError::Forbidden
    );
    assert_eq!(
        refusal(
            |it| it.state.space.status = space::SpaceStatus::Archived,
            EVE
        ),
        CommandError::SpaceArchived
    );
}

#[test]
fn the_copilot_speaks_for_its_human_in_its_conversation_only() {
    let mut stage = fixture_with_policy(InputPolicy::Queue);
    let here = stage.state.conversation.id;
    stage.member_mut(EVE).copilot_mode = CopilotMode::Full;
    stage.member_mut(EVE).copilot_remaining_steps = Some(2);

    assert!(stage.post_as_eve("I am elsewhere.").is_ok());
    stage.member_mut(EVE).copilot_conversation_id = Some(here);
    assert_eq!(stage.post_as_eve("Me."), Err(CommandError::CopilotActive));
    stage.member_mut(EVE).copilot_remaining_steps = None;
    assert!(stage.post_as_eve("Its steps are spent.").is_ok());
}

#[test]
fn a_mention_must_name_an_active_member() {
    let mentions = |id| {
        let Command::MessagePosted(it) = post("You!") else {
            unreachable!("a post is a post")
        };
        let mentions = vec![id];
        Command::MessagePosted(NewPost { mentions, ..it })
    };
    let mut stage = fixture_with_policy(InputPolicy::Queue);
    stage.state.space.reply_order = ReplyOrder::Natural;

    let unknown = stage.run_command(&mentions(MembershipId(99)));
    let known = stage.run_command(&mentions(BOB)).unwrap();
    stage.member_mut(BOB).status = MembershipStatus::Removed;
    let gone = stage.run_command(&mentions(BOB));

    assert_eq!(unknown, Err(CommandError::UnknownMention));
    assert_eq!(known[1], "round of Bob");
    assert_eq!(gone, Err(CommandError::UnknownMention));
}

#[test]
fn a_round_keeps_its_trigger_and_the_reason_of_its_choice() {
    let stage = queued(InputPolicy::Queue);

    let round = stage.state.round.unwrap();
    let run = stage.state.queued.unwrap();
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
