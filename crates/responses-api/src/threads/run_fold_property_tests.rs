//! Property tests of the fold of a run: for any events, the stream is in a valid order and agrees with
//! the stored state, and a run that continues from stored state behaves like one that never stopped.

use base::clock::Timestamp;
use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq};
use proptest::{collection, prop_oneof, proptest};
use regex::Regex;
use serde_json::{Value, json};

use super::tests::{client_call, finished, model_call, new_fold, run, server_call, stored};
use super::{RunFold, ends_stream};
use crate::event::EncodedEvent;
use crate::fold::engine_event::{EngineEvent, ResponseOutcome};
use crate::response::ResponseError;
use crate::threads::run_objects::ThreadRunStepObject;
use crate::threads::run_values::ThreadRunUsage;

/// The order of the events of one task; each kind without its prefix, followed by a blank.
const ORDER: &str = "^run.created run.queued run.in_progress \
    (run.step.created run.step.in_progress (message.created message.in_progress (message.delta )*\
    (message.completed run.step.completed |message.incomplete run.step.(completed|failed|expired) \
    |run.cancelling run.step.cancelled message.incomplete )\
    |(run.step.delta )+(run.step.(completed|failed|expired) |run.cancelling run.step.cancelled )?))*\
    (run.cancelling )?run.(completed|incomplete|failed|cancelled|expired|requires_action) $";

fn any_event() -> impl Strategy<Value = EngineEvent> {
    let word = "[a-zé]{1,4}";
    prop_oneof![
        4 => word.prop_map(EngineEvent::TextDelta),
        1 => word.prop_map(EngineEvent::RefusalDelta),
        1 => word.prop_map(EngineEvent::ReasoningDelta),
        2 => (0..9_i64, 0..9_i64).prop_map(|(input, output)| model_call(input, output)),
        1 => Just(EngineEvent::ModelCallEnded(None)),
        1 => Just(EngineEvent::ToolStarted(server_call())),
        1 => word.prop_map(|it| EngineEvent::ToolFinished(Ok(it))),
        1 => word.prop_map(|it| EngineEvent::ToolFinished(Err(it))),
        1 => Just(client_call("call_1")),
        1 => Just(EngineEvent::NextIteration),
        1 => word.prop_map(|it| EngineEvent::SpeakerChanged(json!({ "speaker": it }))),
    ]
}

fn any_outcome() -> impl Strategy<Value = ResponseOutcome> {
    let error = ResponseError {
        code: "upstream_error".to_owned(),
        message: "It broke.".to_owned(),
    };
    prop_oneof![
        3 => Just(ResponseOutcome::Completed),
        1 => Just(ResponseOutcome::Cancelled),
        1 => Just(ResponseOutcome::Failed(error)),
        1 => Just(ResponseOutcome::Incomplete("run_timeout")),
        1 => Just(ResponseOutcome::Incomplete("max_steps")),
    ]
}

fn json_of(event: &EncodedEvent) -> Value {
    serde_json::from_str(&event.json).unwrap()
}

/// The last event of each object of this kind, in the order in which the objects began.
fn last_states(events: &[EncodedEvent], object: &str) -> Vec<Value> {
    let mut states: Vec<Value> = Vec::new();
    for event in events
        .iter()
        .map(json_of)
        .filter(|it| it["object"] == object)
    {
        match states.iter_mut().find(|it| it["id"] == event["id"]) {
            Some(state) => *state = event,
            None => states.push(event),
        }
    }
    states
}

/// The texts of a message, joined from its deltas.
fn joined(events: &[EncodedEvent], message: &Value) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for event in events.iter().map(json_of) {
        if event["object"] != "thread.message.delta" || event["id"] != message["id"] {
            continue;
        }
        let delta = &event["delta"]["content"][0];
        let at = delta["index"].as_u64().unwrap() as usize;
        let text = delta["text"]["value"]
            .as_str()
            .or(delta["refusal"].as_str());
        parts.resize((at + 1).max(parts.len()), String::new());
        parts[at].push_str(text.unwrap());
    }
    parts
}

fn texts(message: &Value) -> Vec<String> {
    let parts = message["content"].as_array().unwrap().iter();
    let text = |it: &Value| {
        it["text"]["value"]
            .as_str()
            .or(it["refusal"].as_str())
            .map(str::to_owned)
    };
    parts.map(|it| text(it).unwrap()).collect()
}

fn total(fold: &RunFold) -> ThreadRunUsage {
    let usages = fold.steps().iter().filter_map(|it| it.usage);
    usages.fold(ThreadRunUsage::default(), ThreadRunUsage::plus)
}

/// The document and the steps without ids, which are new in each fold.
fn plain(fold: &RunFold) -> Value {
    let steps = fold.steps().iter().map(|it| {
        let mut step = json!(ThreadRunStepObject::new(fold.header(), it));
        step["id"] = Value::Null;
        if step["step_details"]["message_creation"].is_object() {
            step["step_details"]["message_creation"]["message_id"] = Value::Null;
        }
        step
    });
    json!({ "run": fold.document(), "steps": steps.collect::<Vec<_>>() })
}

proptest! {
    #[test]
    fn the_stream_of_any_run_is_ordered_and_equals_its_stored_state(
        body in collection::vec(any_event(), 0..24),
        outcome in any_outcome(),
    ) {
        let mut fold = new_fold();
        let mut input = vec![EngineEvent::Created, EngineEvent::Started];
        input.extend(body);
        input.push(finished(outcome));

        let events = run(&mut fold, input);

        let kind = |it: &EncodedEvent| it.kind.trim_start_matches("thread.").to_owned() + " ";
        let kinds: String = events.iter().map(kind).collect();
        prop_assert!(Regex::new(ORDER).unwrap().is_match(&kinds), "{}", kinds);
        let n_ends = events.iter().filter(|it| ends_stream(&it.kind)).count();
        prop_assert!(n_ends == 1 && ends_stream(&events.last().unwrap().kind));
        for (at, event) in events.iter().enumerate() {
            prop_assert_eq!(event.seq, at as i64);
        }
        prop_assert_eq!(json_of(events.last().unwrap()), json!(fold.document()));
        let messages = last_states(&events, "thread.message");
        for (message, stored) in messages.iter().zip(fold.messages()) {
            prop_assert_eq!(message, &json!(stored.document(fold.header())));
            let (joined, texts) = (joined(&events, message), texts(message));
            prop_assert!(joined == texts || (joined.is_empty() && texts == [""]));
        }
        prop_assert_eq!(messages.len(), fold.messages().len());
        let steps = last_states(&events, "thread.run.step");
        prop_assert_eq!(steps.len(), fold.steps().len());
        let is_waiting = fold.run_state().required_action.is_some();
        for (step, stored) in steps.iter().zip(fold.steps()) {
            if !(is_waiting && stored.is_open()) {
                prop_assert_eq!(step, &json!(ThreadRunStepObject::new(fold.header(), stored)));
            }
        }
        let spent = fold.run_state().usage.unwrap_or_default();
        prop_assert!(total(&fold).total_tokens <= spent.total_tokens);
    }

    #[test]
    fn a_run_that_is_stored_between_two_model_calls_ends_like_one_that_is_not(
        body in collection::vec(any_event(), 0..24),
        outcome in any_outcome(),
    ) {
        let mut input = vec![EngineEvent::Created, EngineEvent::Started];
        input.extend(body);
        input.push(EngineEvent::NextIteration);
        let mut whole = new_fold();
        let n_events = run(&mut whole, input.clone()).len();

        let mut next = RunFold::new(stored(&whole, n_events as i64), Timestamp(2_000));
        run(&mut whole, vec![finished(outcome.clone())]);
        run(&mut next, vec![finished(outcome)]);

        let is_same = plain(&whole)["run"] == plain(&next)["run"];
        prop_assert!(is_same, "{} {}", plain(&whole), plain(&next));
    }
}
