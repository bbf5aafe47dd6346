//! Tests of the streams of runs: the order of events, and that they equal what is stored.

use serde_json::{Value, json};

use super::support::{RunStream, ThreadClient, function, joined, names, text_of, user};
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::expect;
use crate::v1::fixture::{V1Fixture, id};

const BEGIN: [&str; 3] = ["run.created", "run.queued", "run.in_progress"];
const MESSAGE: [&str; 4] = [
    "run.step.created",
    "run.step.in_progress",
    "message.created",
    "message.in_progress",
];
const END: [&str; 3] = ["message.completed", "run.step.completed", "run.completed"];

/// The names without the deltas.
fn frame_names(events: &[(String, Value)]) -> Vec<&str> {
    let names = names(events).into_iter();
    names.filter(|it| !it.ends_with(".delta")).collect()
}

fn last<'a>(events: &'a [(String, Value)], name: &str) -> &'a Value {
    let found = events.iter().rev().find(|it| it.0 == name);
    &found.unwrap_or_else(|| panic!("no {name}")).1
}

on_both! {
    async fn a_stream_has_the_documented_order_and_equals_what_is_stored(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(ResponseScript::say("One two three four."));
        let client = ThreadClient::new(&fixture.program, json!({}), &["Count."]).await;

        let events = client.stream(json!({})).await.rest().await;

        assert_eq!(frame_names(&events), [&BEGIN[..], &MESSAGE, &END].concat());
        let message = last(&events, "thread.message.completed");
        assert_eq!((joined(&events).as_str(), text_of(message).as_str()), ("One two three four.", "One two three four."));
        assert_eq!(client.messages().await.last().unwrap(), message);
        let run = last(&events, "thread.run.completed");
        assert_eq!(&client.show(id(run)).await, run);
        assert_eq!(&client.steps(id(run)).await[0], last(&events, "thread.run.step.completed"));
        assert_eq!(events[0].1["status"], "queued");
        fixture.close().await;
    }

    async fn tools_are_streamed_and_a_resumed_stream_continues(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::calls(&[("call_1", "look", "{\"x\":1}"), ("call_2", "look", "{}")]));
        fixture.upstream.next(ResponseScript::say("Done."));
        let client = ThreadClient::new(&fixture.program, json!({ "tools": [function("look")] }), &["Look."]).await;

        let asked = client.stream(json!({})).await.rest().await;
        let run = id(&asked[0].1).to_owned();
        let resumed = client.submit_streamed(&run, &[("call_2", "two"), ("call_1", "one")]).await.rest().await;

        let tools = ["run.step.created", "run.step.in_progress", "run.requires_action"];
        assert_eq!(frame_names(&asked), [&BEGIN[..], &tools].concat());
        let deltas = asked.iter().filter(|it| it.0 == "thread.run.step.delta");
        let calls: Vec<&Value> = deltas.map(|it| &it.1["delta"]["step_details"]["tool_calls"][0]).collect();
        assert_eq!((&calls[0]["index"], &calls[0]["id"], &calls[0]["function"]["name"]), (&json!(0), &json!("call_1"), &json!("look")));
        assert_eq!(calls[1]["function"]["arguments"], "{\"x\":1}");
        assert_eq!(calls[2]["index"], 1);
        let action = &last(&asked, "thread.run.requires_action")["required_action"];
        assert_eq!(action["submit_tool_outputs"]["tool_calls"][1]["id"], "call_2");
        let begin = ["run.step.completed", "run.queued", "run.in_progress"];
        assert_eq!(frame_names(&resumed), [&begin[..], &MESSAGE, &END].concat());
        let outputs = &resumed[0].1["step_details"]["tool_calls"];
        assert_eq!((&outputs[0]["function"]["output"], &outputs[1]["function"]["output"]), (&json!("one"), &json!("two")));
        assert_eq!(joined(&resumed), "Done.");
        assert_eq!(client.show(&run).await["usage"]["total_tokens"], 10 + 8);
        fixture.close().await;
    }
}

on_sqlite! {
    async fn a_stream_with_a_new_thread_begins_with_the_thread(backend) {
        let fixture = V1Fixture::open(backend).await;
        let client = ThreadClient::new(&fixture.program, json!({}), &[]).await;
        let thread = json!({ "messages": [user("Hi.")] });
        let body = json!({ "assistant_id": client.assistant, "thread": thread, "stream": true });

        let events = RunStream::open(&fixture.program, "/threads/runs", &body).await.rest().await;

        assert_eq!(names(&events)[..3], ["created", "run.created", "run.queued"]);
        assert_eq!(events[0].1["object"], "thread");
        assert_eq!(events[0].1["id"], events[1].1["thread_id"]);
        fixture.close().await;
    }

    async fn a_failure_ends_the_message_the_step_and_the_run(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.next(ResponseScript::stream().role().words("One two ").error("It broke."));
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;

        let events = client.stream(json!({})).await.rest().await;

        let end = ["message.incomplete", "run.step.failed", "run.failed"];
        assert_eq!(frame_names(&events), [&BEGIN[..], &MESSAGE, &end].concat());
        let run = last(&events, "thread.run.failed");
        assert_eq!(run["last_error"]["code"], "server_error");
        assert_eq!(last(&events, "thread.run.step.failed")["last_error"], run["last_error"]);
        assert_eq!(client.messages().await[1]["status"], "incomplete");
        assert_eq!(&client.show(id(run)).await, run);
        expect(200, client.say("Again.").await);
        client.run_until(json!({}), "completed").await;
        fixture.close().await;
    }

    async fn a_client_that_disconnects_from_a_stream_changes_nothing(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.reply_with("One two three.");
        let gate = fixture.upstream.gate();
        let client = ThreadClient::new(&fixture.program, json!({}), &["Hi."]).await;
        let mut stream = client.stream(json!({})).await;
        gate.step();
        let seen = stream.until("thread.message.delta").await;

        drop(stream);
        gate.open();

        client.wait_for(id(&seen[0].1), "completed").await;
        assert_eq!(client.texts().await, ["Hi.", "One two three."]);
        fixture.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_and_outputs_may_reach_another_node_than_the_one_that_executes_the_run() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    // The first node accepts requests and executes no runs.
    let fixture = V1Fixture::open_with(TestBackend::Postgres, &[("TROUPE_WORKERS", "0")]).await;
    let second = fixture.second_node().await;
    fixture
        .upstream
        .next(ResponseScript::calls(&[("call_1", "look", "{}")]));
    fixture.upstream.next(ResponseScript::say("Done."));
    let assistant = json!({ "tools": [function("look")] });
    let client = ThreadClient::new(&fixture.program, assistant, &["Look."]).await;

    let asked = client.stream(json!({})).await.rest().await;
    let run = id(&asked[0].1).to_owned();
    let elsewhere = client.with_base(&second.base);
    let resumed = elsewhere.submit_streamed(&run, &[("call_1", "one")]).await;
    let resumed = resumed.rest().await;

    assert_eq!(names(&asked).last(), Some(&"run.requires_action"));
    assert_eq!(names(&resumed).last(), Some(&"run.completed"));
    assert_eq!(client.show(&run).await, resumed.last().unwrap().1);
    second.close().await;
    fixture.close().await;
}
