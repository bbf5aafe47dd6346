//! Tests of regenerates in place: they change one message, wherever it is, and nothing follows.

use base::ids::MessageId;
use tavern::macros::variables::VariableChanges;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message::Visibility;
use crate::conversations::swipe::SwipeText;
use crate::runs::scheduling::command::{Command, CommandError, Greeting};
use crate::runs::scheduling::planner::fixture::{
    BOB, PlannerFixture, RETRY, failure, new_version, success,
};
use crate::runs::scheduling::planner::regenerate_tests::answered;
use crate::runs::scheduling::planner::rules_tests::show;
use crate::spaces::space::{GroupRegenerateMode, ReplyOrder};

/// Returns the command to regenerate this message, or the tail, in place.
pub fn regenerate_in_place(message: Option<i64>) -> Command {
    Command::RegenerateInPlace(new_version(message))
}

/// Eve has posted a third message after Ada's reply, in manual order.
fn continued() -> PlannerFixture {
    let mut fixture = answered();
    fixture.state.space.reply_order = ReplyOrder::Manual;
    fixture.post_as_eve("Well?").unwrap();
    fixture
}

#[test]
fn a_regenerate_in_place_changes_an_earlier_message_and_nothing_follows() {
    let mut fixture = continued();
    fixture.fork_point = Some(MessageId(2));

    let plan = fixture.run_command(&regenerate_in_place(Some(2))).unwrap();
    let debug = fixture.state.queued.as_ref().unwrap().debug.clone();
    let claimed = fixture.claim_due();
    let written = fixture.end_run(success("Good day."));

    assert_eq!(plan, ["queue Ada: regenerate, regenerate"]);
    assert_eq!(debug.target_message_id, Some(MessageId(2)));
    assert!(debug.in_place && debug.expected_last_message_id.is_none());
    assert_eq!(claimed, ["claim Ada"]);
    assert_eq!(
        written,
        ["finish Ada: succeeded", r#"another text "Good day.""#]
    );
    let shown: Vec<_> = fixture.messages.iter().map(|it| &*it.content).collect();
    assert_eq!(shown, ["Hi.", "Good day.", "Well?"]);
    assert!(fixture.state.queued.is_none());
}

#[test]
fn a_regenerate_in_place_runs_although_the_tail_changed_before_its_claim() {
    let mut fixture = answered();
    fixture.run_command(&regenerate_in_place(None)).unwrap();
    let greeting = Greeting {
        membership: BOB,
        texts: vec![SwipeText::new("Good evening.".to_owned(), 1)],
        macros: VariableChanges::default(),
    };
    fixture
        .run_command(&Command::InsertGreetings(vec![greeting]))
        .unwrap();

    assert_eq!(fixture.claim_due(), ["claim Ada"]);
}

#[test]
fn a_regenerate_in_place_never_replaces_a_whole_turn() {
    let mut fixture = answered();
    fixture.state.space.group_regenerate_mode = GroupRegenerateMode::LastTurn;

    let plan = fixture.run_command(&regenerate_in_place(None)).unwrap();

    assert_eq!(plan, ["queue Ada: regenerate, regenerate"]);
}

#[test]
fn a_regenerate_in_place_of_a_human_or_hidden_message_is_refused() {
    let mut fixture = continued();

    let of_human = fixture.run_command(&regenerate_in_place(Some(3)));
    let of_tail = fixture.run_command(&regenerate_in_place(None));
    let unknown = fixture.run_command(&regenerate_in_place(Some(9)));
    fixture.run_command(&show(2, Visibility::Hidden)).unwrap();
    let hidden = fixture.run_command(&regenerate_in_place(Some(2)));

    assert_eq!(of_human, Err(CommandError::NotAnAiMessage));
    assert_eq!(of_tail, Err(CommandError::NotAnAiMessage));
    assert_eq!(unknown, Err(CommandError::NotFound));
    assert_eq!(hidden, Err(CommandError::NotFound));
}

#[test]
fn only_a_person_who_may_edit_retries_a_failed_regenerate_in_place() {
    let mut fixture = continued();
    fixture.run_command(&regenerate_in_place(Some(2))).unwrap();
    fixture.claim_due();
    fixture.end_run(failure());

    let refused = fixture.run_command(&Command::Retry {
        may_edit: false,
        viewer: Viewer::Server,
    });
    let retried = fixture.run_command(&RETRY).unwrap();

    assert_eq!(refused, Err(CommandError::InPlaceForbidden));
    assert_eq!(retried, ["queue Ada: regenerate, retry"]);
    assert!(fixture.state.queued.as_ref().unwrap().debug.in_place);
}

#[test]
fn a_retried_regenerate_in_place_is_skipped_if_its_message_was_hidden() {
    let mut fixture = continued();
    fixture.run_command(&regenerate_in_place(Some(2))).unwrap();
    fixture.claim_due();
    fixture.end_run(failure());
    fixture.run_command(&show(2, Visibility::Hidden)).unwrap();

    fixture.run_command(&RETRY).unwrap();

    assert_eq!(fixture.claim_due(), ["skip Ada: target_hidden"]);
}
