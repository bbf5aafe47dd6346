//! Tests of what a post plans: the input policies, the debounce, and who may post.

use base::ids::MembershipId;

use crate::rounds::round;
use crate::runs::scheduling::command::{Command, CommandError};
use crate::runs::scheduling::messages::new_post::NewPost;
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
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.state.space.during_generation_user_input_policy = policy;
    fixture
}

/// Ada's reply is queued.
fn queued(policy: InputPolicy) -> PlannerFixture {
    let mut fixture = fixture_with_policy(policy);
    fixture.post_as_eve("First.").unwrap();
    fixture
}

/// Ada's reply is running.
fn running(policy: InputPolicy) -> PlannerFixture {
    let mut fixture = queued(policy);
    fixture.claim_due();
    fixture
}

fn paused(policy: InputPolicy) -> PlannerFixture {
    let mut fixture = queued(policy);
    fixture.run_command(&Command::Pause).unwrap();
    fixture
}

fn failed(policy: InputPolicy) -> PlannerFixture {
    let mut fixture = running(policy);
    fixture.end_run(failure());
    fixture
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
fn a_message_supersedes_a_paused_or_failed_round() {
    for policy in EVERY_POLICY {
        for mut fixture in [paused(policy), failed(policy)] {
            let plan = fixture.post_as_eve("Hi.");

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
fn under_reject_no_message_is_stored_while_a_reply_is_queued_or_running() {
    for mut fixture in [queued(InputPolicy::Reject), running(InputPolicy::Reject)] {
        let refusal = fixture.post_as_eve("Hi.");

        assert_eq!(refusal, Err(CommandError::GenerationLocked));
    }
}

#[test]
fn a_queued_reply_is_replaced_by_the_answer_to_a_newer_message() {
    for policy in [InputPolicy::Queue, InputPolicy::Restart] {
        let mut fixture = queued(policy);
        let first = fixture.state.queued.as_ref().unwrap().id;

        let plan = fixture.post_as_eve("Bob?").unwrap();

        let expected = [
            r#"Eve says "Bob?""#,
            "round superseded: user_message",
            "round of Ada",
            "queue Ada: user_turn, user_message",
        ];
        assert_eq!(plan, expected);
        let run = fixture.state.queued.unwrap();
        assert_eq!(run.id, first, "the row keeps its id");
        let newer = fixture.messages[1].id;
        assert_eq!(run.debug.trigger_message_id, Some(newer));
        assert!(
            fixture.ended.is_empty(),
            "a replaced run is not reported as ended"
        );
    }
}

#[test]
fn under_queue_the_running_reply_finishes_and_its_round_is_superseded() {
    let mut fixture = running(InputPolicy::Queue);

    let plan = fixture.post_as_eve("And then?").unwrap();

    let expected = [
        r#"Eve says "And then?""#,
        "round superseded: user_message",
        "round of Ada",
        "queue Ada: user_turn, user_message",
    ];
    assert_eq!(plan, expected);
    let committed = fixture.end_run(success("Hello."));
    assert_eq!(committed, ["finish Ada: succeeded", r#"Ada says "Hello.""#]);
    assert!(
        fixture.state.queued.is_some(),
        "the newer run is still queued"
    );
}

#[test]
fn under_restart_the_running_reply_is_canceled() {
    let mut fixture = running(InputPolicy::Restart);

    let plan = fixture.post_as_eve("And then?").unwrap();

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
fn a_restart_without_repliers_ends_the_round_whose_reply_it_canceled() {
    let mut fixture = running(InputPolicy::Restart);
    fixture.state.space.reply_order = ReplyOrder::Manual;

    let plan = fixture.post_as_eve("Hush.").unwrap();

    let expected = [
        r#"Eve says "Hush.""#,
        "finish Ada: canceled",
        "round superseded: user_message",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn a_restart_without_repliers_keeps_a_round_that_has_a_queued_run() {
    let mut fixture = running(InputPolicy::Queue);
    fixture.post_as_eve("One more thing.").unwrap();
    fixture.state.space.during_generation_user_input_policy = InputPolicy::Restart;
    fixture.state.space.reply_order = ReplyOrder::Manual;

    let plan = fixture.post_as_eve("Hush.").unwrap();

    assert_eq!(plan, [r#"Eve says "Hush.""#, "finish Ada: canceled"]);
}

#[test]
fn manual_order_selects_no_speaker() {
    for mut fixture in [
        fixture_with_policy(InputPolicy::Queue),
        paused(InputPolicy::Queue),
        running(InputPolicy::Queue),
    ] {
        fixture.state.space.reply_order = ReplyOrder::Manual;

        assert_eq!(fixture.post_as_eve("Hi.").unwrap(), [r#"Eve says "Hi.""#]);
    }
}

#[test]
fn each_user_message_refills_the_pool() {
    let mut fixture = PlannerFixture::with_characters(&["Ada"]);
    fixture.state.space.reply_order = ReplyOrder::Pooled;

    for text in ["Hi.", "And?"] {
        let plan = fixture.post_as_eve(text).unwrap();
        fixture.claim_due();
        fixture.end_run(success("Hello."));

        assert_eq!(plan[1], "round of Ada", "{text}");
    }
}

#[test]
fn the_debounce_moves_with_each_message_of_a_burst() {
    let mut fixture = fixture_with_policy(InputPolicy::Queue);
    fixture.state.space.user_turn_debounce_ms = 2_000;

    let first = fixture.post_as_eve("One").unwrap();
    fixture.now = fixture.now.plus_ms(1_500);
    let second = fixture.post_as_eve("two").unwrap();

    assert_eq!(first[2], "queue Ada: user_turn, user_message, in 2000 ms");
    assert_eq!(second[3], "queue Ada: user_turn, user_message, in 2000 ms");
}

#[test]
fn a_burst_waits_at_most_ten_debounces_and_no_less_than_ten_seconds() {
    for (debounce, bound) in [(500, 10_000), (1_000, 10_000), (3_000, 30_000)] {
        let mut fixture = fixture_with_policy(InputPolicy::Queue);
        fixture.state.space.user_turn_debounce_ms = debounce;
        let began = fixture.now;

        while fixture.now.ms_since(began) <= bound + debounce {
            fixture.post_as_eve("…").unwrap();
            let at = fixture.state.queued.as_ref().unwrap().run_after.unwrap();
            assert!(at >= fixture.now);
            let expected = (fixture.now.ms_since(began) + debounce).min(bound);
            let waits = at.ms_since(began);
            assert_eq!(waits, expected.max(fixture.now.ms_since(began)));
            fixture.now = fixture.now.plus_ms(debounce / 2);
        }
    }
}

#[test]
fn a_claim_ends_the_burst() {
    let mut fixture = fixture_with_policy(InputPolicy::Queue);
    fixture.state.space.user_turn_debounce_ms = 500;
    fixture.post_as_eve("One").unwrap();
    fixture.now = fixture.now.plus_ms(500);
    fixture.claim_due();
    fixture.now = fixture.now.plus_ms(60_000);

    fixture.post_as_eve("two").unwrap();

    let run = fixture.state.queued.unwrap();
    assert_eq!(run.burst_started_at, Some(fixture.now));
    assert_eq!(run.run_after, Some(fixture.now.plus_ms(500)));
}

#[test]
fn only_an_active_human_can_post() {
    let by = |author| {
        let Command::MessagePosted(it) = post("Hi.") else {
            unreachable!("`post` returns a post")
        };
        Command::MessagePosted(Box::new(NewPost { author, ..*it }))
    };
    let refusal = |change: fn(&mut PlannerFixture), author| {
        let mut fixture = fixture_with_policy(InputPolicy::Queue);
        change(&mut fixture);
        fixture.run_command(&by(author)).unwrap_err()
    };

    let unknown = MembershipId(99);
    assert_eq!(refusal(|_| (), unknown), CommandError::NotFound);
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
fn a_member_cannot_post_where_its_copilot_is_active() {
    let mut fixture = fixture_with_policy(InputPolicy::Queue);
    let conversation = fixture.state.conversation.id;
    fixture.member_mut(EVE).copilot_mode = CopilotMode::Full;
    fixture.member_mut(EVE).copilot_remaining_steps = Some(2);

    assert!(fixture.post_as_eve("I am elsewhere.").is_ok());
    fixture.member_mut(EVE).copilot_conversation_id = Some(conversation);
    assert_eq!(fixture.post_as_eve("Me."), Err(CommandError::CopilotActive));
    fixture.member_mut(EVE).copilot_remaining_steps = None;
    assert!(fixture.post_as_eve("Its steps are spent.").is_ok());
}

#[test]
fn a_mention_must_name_an_active_member() {
    let mentions = |id| {
        let Command::MessagePosted(it) = post("You!") else {
            unreachable!("`post` returns a post")
        };
        let mentions = vec![id];
        Command::MessagePosted(Box::new(NewPost { mentions, ..*it }))
    };
    let mut fixture = fixture_with_policy(InputPolicy::Queue);
    fixture.state.space.reply_order = ReplyOrder::Natural;

    let unknown = fixture.run_command(&mentions(MembershipId(99)));
    let known = fixture.run_command(&mentions(BOB)).unwrap();
    fixture.member_mut(BOB).status = MembershipStatus::Removed;
    let gone = fixture.run_command(&mentions(BOB));

    assert_eq!(unknown, Err(CommandError::UnknownMention));
    assert_eq!(known[1], "round of Bob");
    assert_eq!(gone, Err(CommandError::UnknownMention));
}

#[test]
fn a_round_keeps_its_trigger_and_the_reason_of_its_choice() {
    let fixture = queued(InputPolicy::Queue);

    let round = fixture.state.round.unwrap();
    let run = fixture.state.queued.unwrap();
    assert_eq!(round.state, round::RoundState::Generating);
    assert_eq!(round.trigger_message_id, Some(fixture.messages[0].id));
    assert_eq!(run.debug.trigger_message_id, Some(fixture.messages[0].id));
    assert_eq!(run.round_id, Some(round.id));
    assert_eq!(run.slot_position, Some(0));
    assert_eq!(
        run.debug.chosen_because.unwrap(),
        round.slots.0[0].chosen_because
    );
}
