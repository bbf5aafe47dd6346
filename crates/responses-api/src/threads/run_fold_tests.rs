//! Tests of the order of a run's events and of the state after them.

use base::clock::Timestamp;
use serde_json::{Map, Value, json};

use super::{RunFold, StoredRun};
use crate::event::EncodedEvent;
use crate::fold::engine_event::{Completeness, EngineEvent, ResponseEnd, ResponseOutcome};
use crate::item::ItemBody;
use crate::response::{ResponseError, ResponseUsage};
use crate::threads::run_state::{RunHeader, RunState};
use crate::threads::thread_status::ThreadRunStatus;

pub(super) fn new_fold() -> RunFold {
    let header = RunHeader {
        id: "run_1".to_owned(),
        thread_id: "thread_1".to_owned(),
        assistant_id: "asst_1".to_owned(),
        created_at: Timestamp(1_000),
        metadata: json!({}),
        echo: Map::from_iter([("model".to_owned(), json!("m"))]),
    };
    let stored = StoredRun {
        header,
        state: RunState::queued(Timestamp(900_000), 600_000),
        steps: Vec::new(),
        messages: Vec::new(),
        next_seq: 0,
    };
    RunFold::new(stored, Timestamp(2_000))
}

/// The parts of a fold as they are stored, for the next task.
pub(super) fn stored(fold: &RunFold, next_seq: i64) -> StoredRun {
    StoredRun {
        header: fold.header().clone(),
        state: fold.run_state().clone(),
        steps: fold.steps().to_vec(),
        messages: fold.messages().to_vec(),
        next_seq,
    }
}

pub(super) fn call(id: &str) -> ItemBody {
    let call = json!({
        "type": "function_call", "call_id": id, "name": "look", "arguments": "{\"x\":1}",
    });
    serde_json::from_value(call).unwrap()
}

pub(super) fn server_call() -> ItemBody {
    let call = json!({
        "type": "troupe:time", "call_id": "call_t", "arguments": "{}", "output": null, "error": null,
    });
    serde_json::from_value(call).unwrap()
}

pub(super) fn client_call(id: &str) -> EngineEvent {
    EngineEvent::ClientToolCall(call(id), Completeness::Complete)
}

pub(super) fn finished(outcome: ResponseOutcome) -> EngineEvent {
    EngineEvent::Finished(ResponseEnd {
        outcome,
        usage: None,
        at: Timestamp(5_000),
    })
}

pub(super) fn model_call(input_tokens: i64, output_tokens: i64) -> EngineEvent {
    EngineEvent::ModelCallEnded(Some(ResponseUsage {
        input_tokens,
        output_tokens,
        reasoning_tokens: 0,
    }))
}

fn text(text: &str) -> EngineEvent {
    EngineEvent::TextDelta(text.to_owned())
}

fn failure() -> ResponseOutcome {
    ResponseOutcome::Failed(ResponseError {
        code: "rate_limit_exceeded".to_owned(),
        message: "Too fast.".to_owned(),
    })
}

pub(super) fn run(fold: &mut RunFold, events: Vec<EngineEvent>) -> Vec<EncodedEvent> {
    events.into_iter().flat_map(|it| fold.apply(it)).collect()
}

/// The kinds of the events, without the prefix `thread.`.
fn kinds(events: &[EncodedEvent]) -> Vec<&str> {
    let kinds = events.iter().map(|it| it.kind.as_str());
    kinds.map(|it| it.trim_start_matches("thread.")).collect()
}

fn json_of(event: &EncodedEvent) -> Value {
    serde_json::from_str(&event.json).unwrap()
}

const BEGIN: [&str; 3] = ["run.created", "run.queued", "run.in_progress"];
const MESSAGE: [&str; 5] = [
    "run.step.created",
    "run.step.in_progress",
    "message.created",
    "message.in_progress",
    "message.delta",
];

fn begun() -> (RunFold, Vec<EncodedEvent>) {
    let mut fold = new_fold();
    let events = run(&mut fold, vec![EngineEvent::Created, EngineEvent::Started]);
    (fold, events)
}

#[test]
fn a_text_is_a_message_in_a_step() {
    let (mut fold, mut events) = begun();

    events.extend(run(
        &mut fold,
        vec![
            text("One "),
            text("two."),
            model_call(7, 2),
            finished(ResponseOutcome::Completed),
        ],
    ));

    let end = [
        "message.delta",
        "message.completed",
        "run.step.completed",
        "run.completed",
    ];
    assert_eq!(kinds(&events), [&BEGIN[..], &MESSAGE, &end].concat());
    let message = json_of(&events[9]);
    let content = json!([{ "type": "text", "text": { "value": "One two.", "annotations": [] } }]);
    assert_eq!(message["content"], content);
    assert_eq!(message["run_id"], "run_1");
    let usage = json!({ "prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9 });
    assert_eq!(json_of(&events[10])["usage"], usage);
    let ended = json_of(&events[11]);
    assert_eq!(ended["usage"], usage);
    assert_eq!(ended, json!(fold.document()));
    assert_eq!(ended["model"], "m");
    assert_eq!(ended["started_at"], 2);
    assert_eq!(ended["completed_at"], 5);
}

#[test]
fn an_empty_answer_is_an_empty_message() {
    let (mut fold, _) = begun();

    run(&mut fold, vec![finished(ResponseOutcome::Completed)]);

    assert_eq!(fold.messages().len(), 1);
    assert_eq!(fold.run_state().status, ThreadRunStatus::Completed);
}

#[test]
fn open_calls_wait_for_the_client_and_continue_with_its_outputs() {
    let (mut fold, begin) = begun();
    let calls = vec![
        client_call("a"),
        client_call("b"),
        finished(ResponseOutcome::Completed),
    ];

    let mut events = run(&mut fold, vec![text("Hm."), model_call(5, 3)]);
    events.extend(run(&mut fold, calls));

    let tools = [
        "message.completed",
        "run.step.completed",
        "run.step.created",
        "run.step.in_progress",
        "run.step.delta",
        "run.step.delta",
        "run.step.delta",
        "run.step.delta",
        "run.requires_action",
    ];
    assert_eq!(kinds(&events), [&MESSAGE[..], &tools].concat());
    let waiting = json_of(events.last().unwrap());
    let ids = waiting["required_action"]["submit_tool_outputs"]["tool_calls"].as_array();
    let ids: Vec<&Value> = ids.unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(waiting["expires_at"], 605);
    assert_eq!(fold.run_state().work_left_ms, 895_000);

    let next_seq = i64::try_from(begin.len() + events.len()).unwrap();
    let mut next = RunFold::new(stored(&fold, next_seq), Timestamp(9_000));
    let outputs = [
        ("b".to_owned(), "B".to_owned()),
        ("a".to_owned(), "A".to_owned()),
    ];
    let mut resumed = next.submit(&outputs, Timestamp(99_000));
    let mut task = RunFold::new(stored(&next, next_seq + 2), Timestamp(9_000));
    resumed.extend(run(
        &mut task,
        vec![
            EngineEvent::Started,
            text("Done."),
            model_call(9, 1),
            finished(ResponseOutcome::Completed),
        ],
    ));

    let first = ["run.step.completed", "run.queued", "run.in_progress"];
    let last = ["message.completed", "run.step.completed", "run.completed"];
    assert_eq!(kinds(&resumed), [&first[..], &MESSAGE, &last].concat());
    let seqs: Vec<i64> = resumed.iter().map(|it| it.seq - next_seq).collect();
    assert_eq!(seqs, (0..11).collect::<Vec<_>>());
    let outputs = task.steps()[1].calls().iter();
    let outputs: Vec<_> = outputs.map(|it| it.function.output.as_deref()).collect();
    assert_eq!(outputs, [Some("A"), Some("B")]);
    assert_eq!(task.run_state().usage.unwrap().total_tokens, 18);
    assert_eq!(task.run_state().n_model_calls, 2);
}

#[test]
fn tools_of_this_server_end_in_their_step_before_the_answer() {
    let (mut fold, _) = begun();

    let events = run(
        &mut fold,
        vec![
            model_call(1, 1),
            EngineEvent::ToolStarted(server_call()),
            EngineEvent::ToolFinished(Ok("noon".to_owned())),
            EngineEvent::NextIteration,
            text("Noon."),
            finished(ResponseOutcome::Completed),
        ],
    );

    assert_eq!(
        kinds(&events)[..6],
        [
            "run.step.created",
            "run.step.in_progress",
            "run.step.delta",
            "run.step.delta",
            "run.step.delta",
            "run.step.completed",
        ]
    );
    let step = json_of(&events[5]);
    let function = &step["step_details"]["tool_calls"][0]["function"];
    assert_eq!(
        *function,
        json!({ "name": "troupe:time", "arguments": "{}", "output": "noon" })
    );
    assert_eq!(fold.run_state().n_server_calls, 1);
    assert_eq!(fold.run_state().status, ThreadRunStatus::Completed);
}

#[test]
fn every_early_end_closes_the_message_and_the_step() {
    let incomplete = |reason| ResponseOutcome::Incomplete(reason);
    for (outcome, expected, reason) in [
        (
            failure(),
            vec!["message.incomplete", "run.step.failed", "run.failed"],
            "run_failed",
        ),
        (
            ResponseOutcome::Cancelled,
            vec![
                "run.cancelling",
                "run.step.cancelled",
                "message.incomplete",
                "run.cancelled",
            ],
            "run_cancelled",
        ),
        (
            incomplete("run_timeout"),
            vec!["message.incomplete", "run.step.expired", "run.expired"],
            "run_expired",
        ),
        (
            incomplete("max_output_tokens"),
            vec!["message.incomplete", "run.step.completed", "run.incomplete"],
            "max_tokens",
        ),
    ] {
        let (mut fold, _) = begun();
        run(&mut fold, vec![text("One ")]);

        let events = run(&mut fold, vec![finished(outcome)]);

        assert_eq!(kinds(&events), expected);
        let message = events
            .iter()
            .find(|it| it.kind == "thread.message.incomplete");
        assert_eq!(
            json_of(message.unwrap())["incomplete_details"]["reason"],
            reason
        );
        assert_eq!(json_of(events.last().unwrap()), json!(fold.document()));
    }
}

#[test]
fn a_failure_has_a_code_of_the_assistants_api() {
    let (mut fold, _) = begun();

    let events = run(&mut fold, vec![finished(failure())]);

    let run = json_of(&events[0]);
    assert_eq!(
        run["last_error"],
        json!({ "code": "rate_limit_exceeded", "message": "Too fast." })
    );
    assert_eq!(
        (&run["status"], &run["failed_at"]),
        (&json!("failed"), &json!(5))
    );
}

#[test]
fn a_limit_has_its_name_in_the_assistants_api() {
    for (reason, expected) in [
        ("max_output_tokens", "max_completion_tokens"),
        ("max_prompt_tokens", "max_prompt_tokens"),
        ("max_steps", "max_steps"),
        ("max_tool_calls", "max_steps"),
    ] {
        let (mut fold, _) = begun();

        run(
            &mut fold,
            vec![finished(ResponseOutcome::Incomplete(reason))],
        );

        let run = json!(fold.document());
        assert_eq!(run["incomplete_details"]["reason"], expected);
    }
}
