//! What people press, hide, edit, mute and archive, and what that does to the schedule.

use crate::conversations::message::Visibility;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::ids::RunId;
use crate::rounds::round::State;
use crate::runs::command::Command;
use crate::runs::command::Refusal;
use crate::runs::planner::stage::ADA;
use crate::runs::planner::stage::BOB;
use crate::runs::planner::stage::Stage;
use crate::runs::planner::stage::failure;
use crate::runs::planner::stage::post;
use crate::runs::planner::stage::success;
use crate::spaces::membership::Participation;
use crate::spaces::membership::Status;
use crate::spaces::space;
use crate::spaces::space::ReplyOrder;

const STOP: Command = Command::Stop {
    keep_partial: false,
};

fn idle() -> Stage {
    Stage::of(&["Ada", "Bob"])
}

/// Ada's turn of a round of Ada and Bob is queued.
fn queued() -> Stage {
    let mut stage = idle();
    stage.wakes_all = true;
    stage.eve_says("Hi.").unwrap();
    stage
}

fn running() -> Stage {
    let mut stage = queued();
    stage.due();
    stage
}

fn paused() -> Stage {
    let mut stage = running();
    stage.does(&STOP).unwrap();
    stage
}

fn failed() -> Stage {
    let mut stage = running();
    stage.ends(failure());
    stage
}

/// A reply of a superseded round runs, Bob's turn is queued.
fn both() -> Stage {
    let mut stage = idle();
    stage.s.space.reply_order = ReplyOrder::Natural;
    stage.eve_says("Ada?").unwrap();
    stage.due();
    stage.eve_says("Bob?").unwrap();
    stage
}

/// Bob was made to speak and failed.
fn forced_in_vain() -> Stage {
    let mut stage = idle();
    stage.eve_says("Hi.").unwrap();
    stage.does(&force(BOB)).unwrap();
    stage.due();
    stage.ends(failure());
    stage
}

fn force(speaker: MembershipId) -> Command {
    let by = "Eve".to_owned();
    let speaker = Some(speaker);
    Command::ForceTalk { speaker, by }
}

fn hide(message: i64) -> Command {
    show(message, Visibility::Hidden)
}

fn show(message: i64, visibility: Visibility) -> Command {
    Command::VisibilityChanged {
        message: MessageId(message),
        visibility,
    }
}

fn edit(message: i64) -> Command {
    Command::Edited {
        message: MessageId(message),
        content: "New.".to_owned(),
        token_count: 1,
    }
}

#[test]
fn a_stop_drops_what_runs_and_the_slot_waits_at_the_cursor() {
    let plan = running().does(&STOP).unwrap();

    assert_eq!(plan, ["finish Ada: canceled", "round paused at 0"]);
}

#[test]
fn a_stop_takes_what_is_queued_too() {
    assert_eq!(
        queued().does(&STOP).unwrap(),
        ["cancel queued Ada", "round paused at 0"]
    );
    assert_eq!(
        both().does(&STOP).unwrap(),
        [
            "finish Ada: canceled",
            "cancel queued Bob",
            "round paused at 0"
        ]
    );
}

#[test]
fn a_stop_that_keeps_the_text_leaves_the_end_to_the_executor() {
    let keep_partial = true;
    let mut stage = running();

    let plan = stage.does(&Command::Stop { keep_partial }).unwrap();

    assert_eq!(plan, ["ask Ada to end", "round paused at 0"]);
    assert!(stage.s.running.is_some());
}

#[test]
fn a_stop_changes_nothing_where_nothing_runs() {
    for mut stage in [idle(), paused(), failed()] {
        let before = stage.s.round.as_ref().map(|it| it.row.state);

        assert!(stage.does(&STOP).unwrap().is_empty());
        assert_eq!(stage.s.round.map(|it| it.row.state), before);
    }
}

#[test]
fn a_pause_lets_the_running_reply_finish() {
    assert_eq!(
        running().does(&Command::Pause).unwrap(),
        ["round paused at 0"]
    );
    assert_eq!(
        queued().does(&Command::Pause).unwrap(),
        ["cancel queued Ada", "round paused at 0"]
    );
}

#[test]
fn a_pause_leaves_a_failed_round_failed_and_needs_a_round() {
    assert!(failed().does(&Command::Pause).unwrap().is_empty());
    assert_eq!(idle().does(&Command::Pause), Err(Refusal::NoRound));
}

#[test]
fn a_resume_queues_the_slot_at_the_cursor() {
    let plan = paused().does(&Command::Resume).unwrap();

    let expected = ["round generating at 0", "queue Ada: user_turn, resume"];
    assert_eq!(plan, expected);
}

#[test]
fn a_resume_passes_over_who_cannot_speak_any_more() {
    let mut stage = paused();
    stage.seat(ADA).participation = Participation::Muted;

    let plan = stage.does(&Command::Resume).unwrap();

    let expected = [
        "round generating at 0",
        "slot 0 skipped: not_schedulable",
        "round generating at 1",
        "queue Bob: user_turn, resume",
    ];
    assert_eq!(plan, expected);
}

#[test]
fn nothing_is_resumed_that_is_not_paused() {
    let mut still_running = running();
    still_running.does(&Command::Pause).unwrap();

    for mut stage in [idle(), queued(), running(), failed(), still_running] {
        assert_eq!(stage.does(&Command::Resume), Err(Refusal::NothingPaused));
    }
}

#[test]
fn a_skip_passes_the_turn_to_the_next_slot() {
    let expected = [
        "slot 0 skipped: skipped_by_a_person",
        "round generating at 1",
        "queue Bob: user_turn, next_slot",
    ];

    let of_queued = queued().does(&Command::Skip).unwrap();
    let of_running = running().does(&Command::Skip).unwrap();

    assert_eq!(of_queued[0], "cancel queued Ada");
    assert_eq!(of_queued[1..], expected);
    assert_eq!(of_running[0], "finish Ada: canceled");
    assert_eq!(of_running[1..], expected);
}

#[test]
fn after_a_skip_a_failed_round_goes_on_and_a_paused_one_stays_paused() {
    let of_failed = failed().does(&Command::Skip).unwrap();
    let of_paused = paused().does(&Command::Skip).unwrap();

    let expected = [
        "round generating at 0",
        "slot 0 skipped: skipped_by_a_person",
        "round generating at 1",
        "queue Bob: user_turn, next_slot",
    ];
    assert_eq!(of_failed, expected);
    let expected = ["slot 0 skipped: skipped_by_a_person", "round paused at 1"];
    assert_eq!(of_paused, expected);
}

#[test]
fn a_skip_of_the_last_slot_finishes_the_round() {
    let mut stage = failed();
    stage.does(&Command::Skip).unwrap();

    let plan = stage.does(&Command::Skip).unwrap();

    assert_eq!(plan[2], "round finished: everybody_spoke");
    assert!(stage.s.queued.is_none());
    assert_eq!(stage.does(&Command::Skip), Err(Refusal::NoRound));
}

#[test]
fn a_retry_gives_the_slot_its_turn_again() {
    for mut stage in [failed(), paused()] {
        let plan = stage.does(&Command::Retry).unwrap();

        let expected = ["round generating at 0", "queue Ada: user_turn, retry"];
        assert_eq!(plan, expected);
    }
}

#[test]
fn two_retries_make_one_run() {
    let mut stage = failed();
    stage.does(&Command::Retry).unwrap();
    let planned = stage.s.queued.as_ref().unwrap().id;

    let again = stage.does(&Command::Retry).unwrap();
    stage.due();
    let late = stage.does(&Command::Retry).unwrap();

    assert!(again.is_empty() && late.is_empty());
    assert_eq!(stage.s.running.unwrap().id, planned);
}

#[test]
fn nothing_is_retried_that_has_not_failed() {
    let mut spoken = running();
    spoken.ends(success("Hello."));

    for mut stage in [idle(), queued(), running(), spoken] {
        assert_eq!(stage.does(&Command::Retry), Err(Refusal::NothingToRetry));
    }
}

#[test]
fn a_forced_turn_that_failed_is_retried_until_something_newer() {
    let mut newer_message = forced_in_vain();
    newer_message.s.space.reply_order = ReplyOrder::Manual;
    newer_message.eve_says("Well.").unwrap();
    let mut newer_run = forced_in_vain();
    newer_run.does(&force(ADA)).unwrap();
    newer_run.does(&STOP).unwrap();

    let retried = forced_in_vain().does(&Command::Retry).unwrap();

    assert_eq!(retried, ["queue Bob: force_talk, retry"]);
    for mut stage in [newer_message, newer_run] {
        assert_eq!(stage.does(&Command::Retry), Err(Refusal::NothingToRetry));
    }
}

#[test]
fn one_run_is_canceled_and_its_round_rests() {
    let cancel = |mut stage: Stage| {
        let run = stage.s.running.as_ref().or(stage.s.queued.as_ref());
        let run = run.unwrap().id;
        stage.does(&Command::Cancel { run }).unwrap()
    };

    assert_eq!(
        cancel(running()),
        ["finish Ada: canceled", "round paused at 0"]
    );
    assert_eq!(cancel(queued()), ["cancel queued Ada", "round paused at 0"]);
    assert_eq!(
        cancel(both()),
        ["finish Ada: canceled"],
        "the newer round waits for its own run"
    );
}

#[test]
fn a_finished_run_cannot_be_canceled() {
    let mut stage = paused();
    let finished = stage.ended[0].id;

    for run in [finished, RunId::new()] {
        let refusal = stage.does(&Command::Cancel { run });
        assert_eq!(refusal, Err(Refusal::AlreadyFinished));
    }
}

#[test]
fn hiding_the_tail_or_the_trigger_takes_the_ground_from_every_reply() {
    let mut second_slot = running();
    second_slot.ends(success("I am Ada."));
    second_slot.due();

    assert_eq!(
        running().does(&hide(1)).unwrap(),
        [
            "message hidden",
            "finish Ada: canceled",
            "round canceled: message_hidden"
        ]
    );
    assert_eq!(
        queued().does(&hide(1)).unwrap(),
        [
            "message hidden",
            "cancel queued Ada",
            "round canceled: message_hidden"
        ]
    );
    for (message, what) in [(1, "the trigger"), (2, "the tail")] {
        let plan = second_slot.clone().does(&hide(message)).unwrap();
        let expected = [
            "message hidden",
            "finish Bob: canceled",
            "round canceled: message_hidden",
        ];
        assert_eq!(plan, expected, "{what}");
    }
}

#[test]
fn hiding_another_message_leaves_the_schedule_alone() {
    let mut stage = running();
    stage.ends(success("One."));
    stage.eve_says("Two.").unwrap();

    assert_eq!(stage.does(&hide(2)).unwrap(), ["message hidden"]);
    assert!(stage.does(&hide(2)).unwrap().is_empty(), "twice is once");
    let shown = stage.does(&show(2, Visibility::Normal)).unwrap();
    assert_eq!(shown, ["message normal"]);
}

#[test]
fn dimming_a_message_leaves_the_schedule_alone() {
    let dimmed = show(1, Visibility::Excluded);

    assert_eq!(running().does(&dimmed).unwrap(), ["message excluded"]);
}

#[test]
fn a_fork_point_is_neither_hidden_nor_edited_and_nothing_unknown_is() {
    let mut stage = queued();
    stage.fork_point = Some(MessageId(1));

    assert_eq!(stage.does(&hide(1)), Err(Refusal::ForkPoint));
    assert_eq!(stage.does(&edit(1)), Err(Refusal::ForkPoint));
    assert!(stage.does(&show(1, Visibility::Excluded)).is_ok());
    assert_eq!(stage.does(&hide(9)), Err(Refusal::NotFound));
    assert_eq!(stage.does(&edit(9)), Err(Refusal::NotFound));
}

#[test]
fn only_the_tail_is_edited_and_not_while_a_reply_is_written() {
    let mut two = idle();
    two.s.space.reply_order = ReplyOrder::Manual;
    two.eve_says("One.").unwrap();
    two.eve_says("Two.").unwrap();

    assert_eq!(two.does(&edit(1)), Err(Refusal::NotTail));
    assert_eq!(two.does(&edit(2)).unwrap(), [r#"message reads "New.""#]);
    assert!(two.does(&edit(2)).unwrap().is_empty(), "twice is once");
    two.does(&hide(2)).unwrap();
    assert_eq!(two.does(&edit(2)), Err(Refusal::NotFound));
    assert!(two.does(&edit(1)).is_ok(), "it is the tail now");
    assert_eq!(running().does(&edit(1)), Err(Refusal::GenerationLocked));
    assert!(queued().does(&edit(1)).is_ok());
}

#[test]
fn a_muted_speaker_loses_the_turn_to_the_next_slot() {
    let muted = |mut stage: Stage| {
        stage.seat(ADA).participation = Participation::Muted;
        stage.does(&Command::MemberChanged { seat: ADA }).unwrap()
    };
    let expected = [
        "slot 0 skipped: not_schedulable",
        "round generating at 1",
        "queue Bob: user_turn, next_slot",
    ];

    let (of_queued, of_running) = (muted(queued()), muted(running()));

    assert_eq!(of_queued[0], "skip Ada: speaker_unavailable");
    assert_eq!(of_queued[1..], expected);
    assert_eq!(of_running[0], "finish Ada: canceled");
    assert_eq!(of_running[1..], expected);
    assert!(muted(paused()).is_empty() && muted(idle()).is_empty());
}

#[test]
fn a_queued_speaker_who_is_muted_is_passed_over_while_another_reply_runs() {
    let mut stage = both();
    stage.seat(BOB).participation = Participation::Muted;

    let plan = stage.does(&Command::MemberChanged { seat: BOB }).unwrap();

    let expected = [
        "skip Bob: speaker_unavailable",
        "slot 0 skipped: not_schedulable",
        "round finished: everybody_spoke",
    ];
    assert_eq!(plan, expected);
    assert!(stage.s.running.is_some());
}

#[test]
fn a_muted_speaker_keeps_a_forced_turn_and_a_removed_one_does_not() {
    let forced = || {
        let mut stage = idle();
        stage.does(&force(ADA)).unwrap();
        stage.due();
        stage
    };
    let told = Command::MemberChanged { seat: ADA };

    let mut muted = forced();
    muted.seat(ADA).participation = Participation::Muted;
    let mut removed = forced();
    removed.seat(ADA).status = Status::Removed;

    assert!(muted.does(&told).unwrap().is_empty());
    assert_eq!(removed.does(&told).unwrap(), ["finish Ada: canceled"]);
}

#[test]
fn a_seat_that_only_changed_its_name_loses_nothing() {
    let told = Command::MemberChanged { seat: ADA };

    assert!(queued().does(&told).unwrap().is_empty());
    assert!(running().does(&told).unwrap().is_empty());
}

#[test]
fn a_change_to_manual_takes_what_is_queued_and_lets_what_runs_finish() {
    let changed = |mut stage: Stage| {
        stage.s.space.reply_order = ReplyOrder::Manual;
        stage.does(&Command::SettingsChanged).unwrap()
    };
    let mut forced = idle();
    forced.does(&force(ADA)).unwrap();

    assert_eq!(
        changed(queued()),
        ["cancel queued Ada", "round canceled: reply_order_manual"]
    );
    assert!(changed(running()).is_empty());
    assert!(changed(forced).is_empty(), "somebody asked for it");
    assert!(changed(paused()).is_empty());
}

#[test]
fn another_change_of_order_leaves_the_round_as_it_is() {
    let mut stage = queued();
    stage.s.space.reply_order = ReplyOrder::Pooled;

    assert!(stage.does(&Command::SettingsChanged).unwrap().is_empty());
}

#[test]
fn nothing_goes_on_in_an_archived_space() {
    let archived = |mut stage: Stage| {
        stage.s.space.status = space::Status::Archived;
        stage.does(&Command::Closed).unwrap()
    };

    assert_eq!(
        archived(both()),
        [
            "finish Ada: canceled",
            "cancel queued Bob",
            "round canceled: space_closed"
        ]
    );
    assert_eq!(archived(paused()), ["round canceled: space_closed"]);
    assert!(archived(idle()).is_empty());
}

#[test]
fn nothing_begins_in_an_archived_space() {
    let commands = [
        post("Hi."),
        force(ADA),
        Command::Retry,
        Command::Resume,
        Command::Skip,
        edit(1),
        hide(1),
    ];
    for mut stage in [forced_in_vain(), failed(), paused()] {
        stage.s.space.status = space::Status::Archived;
        for command in &commands {
            let refusal = stage.does(command);
            assert_eq!(refusal, Err(Refusal::SpaceArchived), "{command:?}");
        }
    }
}

#[test]
fn what_rests_is_told_apart_from_what_goes_on() {
    let state = |stage: Stage| stage.s.round.map(|it| it.row.state);

    assert_eq!(state(queued()), Some(State::Generating));
    assert_eq!(state(paused()), Some(State::Paused));
    assert_eq!(state(failed()), Some(State::Failed));
}
