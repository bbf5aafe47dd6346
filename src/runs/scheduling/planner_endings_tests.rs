//! Tests of what follows a run: every kind of end, a node that dies or shuts down, a stalled round.

use base::ids::RunId;

use crate::rounds::round::RoundState;
use crate::runs::scheduling::command::{Command, CommandError, ExecutionEnd};
use crate::runs::scheduling::planner::fixture::{
    BOB, PlannerFixture, failure, forced, generated_text, queued, running, success,
};
use crate::runs::store::run;
use crate::spaces::membership::Participation;
use crate::spaces::space::{RepliesPerTurn, ReplyOrder};

fn stop(keep_partial: bool) -> Command {
    Command::Stop { keep_partial }
}

#[test]
fn the_slots_of_a_round_speak_one_after_the_other() {
    let mut fixture = running();

    let first = fixture.end_run(success("I am Ada."));
    let tail = fixture.messages.last().unwrap().id;
    let queued = fixture.state.queued.clone().unwrap();
    fixture.claim_due();
    let second = fixture.end_run(success("I am Bob."));

    let expected = [
        "finish Ada: succeeded",
        r#"Ada says "I am Ada.""#,
        "slot 0 spoken",
        "round generating at 1",
        "queue Bob: user_turn, next_slot",
    ];
    assert_eq!(first, expected);
    assert_eq!(queued.debug.expected_last_message_id, Some(tail));
    let expected = [
        "finish Bob: succeeded",
        r#"Bob says "I am Bob.""#,
        "slot 1 spoken",
        "round finished: everybody_spoke",
    ];
    assert_eq!(second, expected);
}

#[test]
fn a_slot_whose_speaker_cannot_be_scheduled_is_skipped() {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob", "Cid"]);
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.member_mut(BOB).participation = Participation::Muted;

    let plan = fixture.end_run(success("Hello."));

    assert_eq!(plan[3], "slot 1 skipped: not_schedulable");
    assert_eq!(plan[4], "round generating at 2");
    assert_eq!(plan[5], "queue Cid: user_turn, next_slot");
}

#[test]
fn in_manual_order_nothing_follows_a_reply() {
    let mut fixture = running();
    fixture.state.space.reply_order = ReplyOrder::Manual;

    let plan = fixture.end_run(success("Hello."));

    assert_eq!(plan[3], "round finished: reply_order_manual");
    assert!(fixture.state.queued.is_none());
}

#[test]
fn nothing_follows_a_reply_of_a_paused_round() {
    let mut fixture = running();
    fixture.run_command(&Command::Pause).unwrap();

    let plan = fixture.end_run(success("Hello."));

    assert_eq!(plan[3], "round paused at 1");
    assert!(fixture.state.queued.is_none());
}

#[test]
fn the_tokens_of_a_run_are_charged_even_if_it_failed() {
    let usage = Some(run::RunUsage {
        prompt_tokens: 7,
        completion_tokens: 5,
        estimated: false,
    });
    let mut good = generated_text("Hello.");
    good.usage = usage;
    let error = run::RunError {
        code: "upstream_error".to_owned(),
        message: String::new(),
        retryable: true,
    };
    let prompt = None;
    let bad = ExecutionEnd::Failed {
        error,
        usage,
        prompt,
    };

    for end in [ExecutionEnd::Succeeded(good), bad] {
        let mut fixture = running();
        fixture.end_run(end);

        assert_eq!(fixture.state.conversation.tokens_used, 12);
        assert_eq!(fixture.ended[0].usage, usage);
    }
}

#[test]
fn a_failure_fails_its_round_at_the_current_slot() {
    let mut fixture = running();

    let plan = fixture.end_run(failure());

    assert_eq!(
        plan,
        ["finish Ada: failed upstream_error", "round failed at 0"]
    );
    assert!(fixture.messages.len() == 1 && fixture.state.queued.is_none());
}

#[test]
fn a_failure_of_a_superseded_round_does_not_fail_the_new_round() {
    let mut fixture = running();
    fixture.post_as_eve("Never mind.").unwrap();

    assert_eq!(
        fixture.end_run(failure()),
        ["finish Ada: failed upstream_error"]
    );
    assert_eq!(fixture.state.round.unwrap().state, RoundState::Generating);
}

#[test]
fn a_stop_that_keeps_the_text_makes_the_slot_spoken() {
    let mut fixture = running();
    fixture.run_command(&stop(true)).unwrap();

    let partial = Some(generated_text("Hel"));
    let plan = fixture.end_run(ExecutionEnd::Canceled {
        partial,
        usage: None,
        prompt: None,
    });

    let expected = [
        "finish Ada: canceled",
        r#"Ada says "Hel""#,
        "slot 0 spoken",
        "round paused at 1",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn a_stop_before_the_first_word_keeps_the_slot_pending() {
    let mut fixture = running();
    fixture.run_command(&stop(true)).unwrap();

    let plan = fixture.end_run(ExecutionEnd::Canceled {
        partial: None,
        usage: None,
        prompt: None,
    });

    assert_eq!(plan, ["finish Ada: canceled"]);
    let round = fixture.state.round.unwrap();
    assert_eq!((round.state, round.cursor), (RoundState::Paused, 0));
}

#[test]
fn a_kept_text_of_a_superseded_round_changes_no_slot() {
    let mut fixture = running();
    fixture.run_command(&stop(true)).unwrap();
    fixture.post_as_eve("Go on.").unwrap();

    let partial = Some(generated_text("Hel"));
    let plan = fixture.end_run(ExecutionEnd::Canceled {
        partial,
        usage: None,
        prompt: None,
    });

    assert_eq!(plan, ["finish Ada: canceled", r#"Ada says "Hel""#]);
}

#[test]
fn an_end_without_the_lease_changes_nothing() {
    let mut fixture = running();
    let (run, lease) = fixture.running();
    let silent_for_ms = 0;
    let stale = lease + 1;
    let other = RunId::new();

    for (run, lease) in [(run, stale), (other, lease)] {
        let end = success("Late.");
        let ended = fixture.run_command(&Command::RunEnded {
            run,
            lease,
            end: Box::new(end),
        });
        let reaped = fixture.run_command(&Command::LeaseExpired {
            run,
            lease,
            silent_for_ms,
        });
        let back = fixture.run_command(&Command::RunReleased {
            run,
            lease,
            usage: None,
        });

        for result in [ended, reaped, back] {
            assert_eq!(result, Err(CommandError::AlreadyFinished));
        }
    }
}

#[test]
fn a_reply_whose_node_died_is_planned_once_more() {
    let mut fixture = running();

    let first = fixture.expire_lease();
    fixture.claim_due();
    let second = fixture.expire_lease();

    let expected = [
        "expire Ada: failed stale_running_run",
        "queue Ada: user_turn, recovered, attempt 2",
    ];
    assert_eq!(first, expected);
    let expected = ["expire Ada: failed stale_running_run", "round failed at 0"];
    assert_eq!(second, expected);
}

#[test]
fn a_forced_turn_whose_node_died_is_planned_once_more_too() {
    let mut fixture = forced();

    let first = fixture.expire_lease();
    fixture.claim_due();
    let second = fixture.expire_lease();

    let expected = [
        "expire Bob: failed stale_running_run",
        "queue Bob: force_talk, recovered, attempt 2",
    ];
    assert_eq!(first, expected);
    assert_eq!(second, ["expire Bob: failed stale_running_run"]);
}

#[test]
fn a_queued_run_takes_precedence_over_a_second_attempt() {
    for (mut fixture, expired) in [(running(), "Ada"), (forced(), "Bob")] {
        fixture.post_as_eve("Are you there?").unwrap();

        let plan = fixture.expire_lease();

        let expected = format!("expire {expired}: failed stale_running_run");
        assert_eq!(plan, [expected]);
        let queued = fixture.state.queued.as_ref().unwrap();
        assert_eq!(
            (queued.reason, queued.attempt),
            (run::RunReason::UserMessage, 1)
        );
        assert!(fixture.claim_due()[0].starts_with("claim"));
    }
}

#[test]
fn a_canceled_run_whose_node_died_is_canceled() {
    let mut fixture = running();
    fixture.run_command(&stop(true)).unwrap();

    assert_eq!(fixture.expire_lease(), ["expire Ada: canceled"]);
    assert_eq!(fixture.state.round.unwrap().state, RoundState::Paused);
}

#[test]
fn a_paused_reply_whose_node_died_fails_the_round() {
    let mut fixture = running();
    fixture.run_command(&Command::Pause).unwrap();

    let expected = ["expire Ada: failed stale_running_run", "round failed at 0"];
    assert_eq!(fixture.expire_lease(), expected);
}

#[test]
fn a_node_that_shuts_down_requeues_its_run() {
    let mut fixture = running();
    let (id, lease) = fixture.running();

    assert_eq!(fixture.release_run(), ["hand back Ada"]);
    assert_eq!(fixture.claim_due(), ["claim Ada"]);
    assert_eq!(
        fixture.running(),
        (id, lease + 1),
        "the same row, a new lease"
    );
}

#[test]
fn a_released_run_is_replaced_by_the_queued_one() {
    let mut fixture = running();
    fixture.post_as_eve("Hello?").unwrap();

    assert_eq!(fixture.release_run(), ["finish Ada: canceled"]);
    assert_eq!(fixture.claim_due(), ["claim Ada"]);
}

#[test]
fn a_run_of_a_paused_round_is_not_queued_again() {
    let mut fixture = running();
    fixture.run_command(&Command::Pause).unwrap();

    assert_eq!(fixture.release_run(), ["finish Ada: canceled"]);
    let resumed = fixture.run_command(&Command::Resume).unwrap();
    assert_eq!(resumed[1], "queue Ada: user_turn, resume");
}

#[test]
fn a_run_that_was_stopped_is_not_queued_again() {
    let mut fixture = forced();
    fixture.run_command(&stop(true)).unwrap();

    assert_eq!(fixture.release_run(), ["finish Bob: canceled"]);
}

#[test]
fn a_round_without_an_active_run_is_canceled() {
    let mut fixture = queued();
    fixture.state.queued = None;

    let ended = fixture.run_command(&Command::RoundStalled).unwrap();

    assert_eq!(ended, ["round canceled: left_without_a_run"]);
}

#[test]
fn a_round_that_waits_for_a_run_or_a_user_is_not_stalled() {
    let mut paused = queued();
    paused.run_command(&Command::Pause).unwrap();
    let mut failed = running();
    failed.end_run(failure());
    let idle = PlannerFixture::with_characters(&["Ada"]);

    for mut fixture in [queued(), running(), paused, failed, idle] {
        assert_eq!(
            fixture.run_command(&Command::RoundStalled),
            Err(CommandError::NoRound)
        );
    }
}
