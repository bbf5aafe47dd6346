//! Tests a response whose server process is killed in the middle, and started again.

use serde_json::{Value, json};

use super::fixture::{deltas, id, kinds, prompt_texts, text, types};
use super::simple_client::fold_items;
use crate::support::backends::{TestBackend, TestDatabase, fresh_database, on_both};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::HttpClient;
use crate::support::poll;
use crate::support::process::Server;
use crate::support::test_space::{SHORT_LEASES, model_env};
use crate::support::v1_client::V1Client;

/// A server with a model and a client. The server is dropped first, the database last.
struct RestartableServer {
    server: Server,
    program: V1Client,
    upstream: FakeProvider,
    database: TestDatabase,
}

impl RestartableServer {
    async fn open(backend: TestBackend, env: &[(&str, &str)]) -> RestartableServer {
        let database = fresh_database(&backend).await;
        let upstream = FakeProvider::start().await;
        let server = start(&database, &upstream, env).await;
        let person = HttpClient::set_up(&server.url(), "ann").await;
        let program = V1Client::new(&person).await;
        RestartableServer {
            server,
            program,
            upstream,
            database,
        }
    }

    async fn kill_and_start_again(&mut self) {
        self.server.kill9();
        self.server.restart().await;
    }

    /// Waits until a response has this status, and checks that no response is unfinished.
    async fn wait_for_status(&self, id: &str, status: &str) -> Value {
        let found = wait_for_status(&self.program, id, status).await;
        let open = "SELECT CAST(count(*) AS TEXT) FROM responses WHERE status IN ('queued', 'in_progress')";
        assert_eq!(
            DatabaseFacts::open(&self.database).await.number(open).await,
            0
        );
        found
    }
}

async fn start(database: &TestDatabase, upstream: &FakeProvider, env: &[(&str, &str)]) -> Server {
    let base_url = upstream.base_url();
    let env = [SHORT_LEASES, &model_env(&base_url), env].concat();
    Server::start(database, &env).await
}

async fn wait_for_status(program: &V1Client, id: &str, status: &str) -> Value {
    let path = format!("/responses/{id}");
    poll::until(&format!("{id} becomes {status}"), async || {
        let (_, response) = program.get(&path).await;
        (response["status"] == status).then_some(response)
    })
    .await
}

fn reasoning(text: &str) -> Value {
    let delta = json!({ "reasoning_content": text });
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

/// The id of the response in these events.
fn response_id(events: &[Value]) -> String {
    id(&events[0]["response"]).to_owned()
}

on_both! {
    async fn a_killed_foreground_response_fails_and_keeps_its_finished_items(backend) {
        let mut fixture = RestartableServer::open(backend, &[]).await;
        fixture.upstream.next(ResponseScript::stream().role().event(&reasoning("Hm.")).words("One two ").hang());
        let mut stream = fixture.program.stream(json!({ "input": "Hi." })).await;
        let seen = stream.until("response.output_text.delta").await;

        fixture.kill_and_start_again().await;

        let lost = fixture.wait_for_status(&response_id(&seen), "failed").await;
        assert_eq!(lost["error"]["code"], "instance_lost");
        assert_eq!(types(&lost), ["reasoning"]);
        assert_eq!(lost["output"][0]["summary"][0]["text"], "Hm.");
        let next = json!({ "input": "Go on.", "previous_response_id": id(&lost) });
        assert_eq!(
            fixture.program.respond_with_error(next).await.1,
            "previous_response_not_usable",
        );
        assert_eq!(text(&fixture.program.respond(json!({ "input": "Hi." })).await), "Hello.");
    }

    async fn a_killed_background_response_keeps_what_was_already_sent(backend) {
        let mut fixture = RestartableServer::open(backend, &[]).await;
        fixture.upstream.next(ResponseScript::stream().role().event(&reasoning("Hm.")).words("One two ").hang());
        let mut stream =
            fixture.program.stream(json!({ "input": "Hi.", "background": true })).await;
        let seen = stream.until("response.output_text.delta").await;
        let last = seen.last().unwrap()["sequence_number"].as_i64();

        fixture.kill_and_start_again().await;

        let lost = fixture.wait_for_status(&response_id(&seen), "failed").await;
        assert_eq!(lost["error"]["code"], "instance_lost");
        assert_eq!(types(&lost), ["reasoning", "message"]);
        assert_eq!(lost["output"][1]["status"], "incomplete");
        let whole = fixture.program.replay(id(&lost), None).await.rest().await;
        let rest = fixture.program.replay(id(&lost), last).await.rest().await;
        assert_eq!(whole, [seen, rest].concat(), "the replay differs from the live stream");
        assert_eq!(whole.last().unwrap()["response"], lost);
        assert_eq!(deltas(&whole).concat(), text(&lost));
        assert_eq!(json!(fold_items(&whole)), lost["output"]);
        assert_eq!(
            fixture.upstream.n_requests(),
            1,
            "the model was called again after output was sent",
        );
    }

    async fn a_killed_background_response_without_output_is_answered_after_the_restart(backend) {
        let mut fixture = RestartableServer::open(backend, &[]).await;
        fixture.upstream.next(ResponseScript::hang_before_headers());
        let queued = fixture.program.respond(json!({ "input": "Hi.", "background": true })).await;
        fixture.upstream.wait_for_requests(1).await;

        fixture.kill_and_start_again().await;

        let ended = fixture.wait_for_status(id(&queued), "completed").await;
        assert_eq!((text(&ended).as_str(), fixture.upstream.n_requests()), ("Hello.", 2));
        let events = fixture.program.replay(id(&queued), None).await.rest().await;
        assert_eq!(kinds(&events)[..4], ["created", "queued", "in_progress", "output_item.added"]);
        for (at, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], at);
        }
        assert_eq!(json!(fold_items(&events)), ended["output"]);
    }

    async fn a_background_response_that_is_killed_twice_fails(backend) {
        let mut fixture = RestartableServer::open(backend, &[]).await;
        fixture.upstream.next(ResponseScript::hang_before_headers());
        fixture.upstream.next(ResponseScript::hang_before_headers());
        let queued = fixture.program.respond(json!({ "input": "Hi.", "background": true })).await;

        for n in 1..=2 {
            fixture.upstream.wait_for_requests(n).await;
            fixture.kill_and_start_again().await;
        }

        let lost = fixture.wait_for_status(id(&queued), "failed").await;
        assert_eq!(lost["error"]["code"], "instance_lost");
        assert_eq!(fixture.upstream.n_requests(), 2);
    }

    async fn a_queued_response_survives_a_kill(backend) {
        let mut fixture = RestartableServer::open(backend, &[("TROUPE_WORKERS", "0")]).await;
        let queued = fixture.program.respond(json!({ "input": "Hi.", "background": true })).await;

        fixture.server.set_env("TROUPE_WORKERS", "1");
        fixture.kill_and_start_again().await;

        assert_eq!(text(&fixture.wait_for_status(id(&queued), "completed").await), "Hello.");
    }

    async fn an_api_conversation_is_unlocked_after_a_kill(backend) {
        let mut fixture = RestartableServer::open(backend, &[]).await;
        let (_, conversation) = fixture.program.post("/conversations", json!({})).await;
        fixture.upstream.next(ResponseScript::stream().role().words("One two ").hang());
        let turn = |text: &str| json!({ "input": text, "conversation": id(&conversation) });
        let mut stream = fixture.program.stream(turn("one")).await;
        let seen = stream.until("response.output_text.delta").await;

        fixture.kill_and_start_again().await;

        fixture.wait_for_status(&response_id(&seen), "failed").await;
        assert_eq!(text(&fixture.program.respond(turn("two")).await), "Hello.");
        assert_eq!(
            prompt_texts(&fixture.upstream.body(1)),
            ["two"],
            "the conversation contains items of the failed response",
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_node_finishes_the_responses_of_a_killed_node() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let mut fixture = RestartableServer::open(TestBackend::Postgres, &[]).await;
    fixture.upstream.next(ResponseScript::hang_before_headers());
    let body = json!({ "input": "Hi.", "background": true });
    let queued = fixture.program.respond(body).await;
    fixture.upstream.wait_for_requests(1).await;
    fixture
        .upstream
        .next(ResponseScript::stream().role().words("One two ").hang());
    let mut stream = fixture.program.stream(json!({ "input": "Hi." })).await;
    let seen = stream.until("response.output_text.delta").await;
    let second = start(&fixture.database, &fixture.upstream, &[]).await;

    fixture.server.kill9();

    let second_client = fixture.program.with_base(&second.url());
    let ended = wait_for_status(&second_client, id(&queued), "completed").await;
    assert_eq!(text(&ended), "Hello.");
    let lost = wait_for_status(&second_client, &response_id(&seen), "failed").await;
    assert_eq!(lost["error"]["code"], "instance_lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_node_does_not_write_to_a_response_that_another_node_ended() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let fixture = RestartableServer::open(TestBackend::Postgres, &[]).await;
    let gate = HoldPoint::closed();
    gate.step();
    let words = ResponseScript::say("One two three.").held_at(&gate);
    fixture.upstream.next(words);
    let body = json!({ "input": "Hi.", "background": true });
    let mut stream = fixture.program.stream(body).await;
    let seen = stream.until("response.output_text.delta").await;
    let second = start(&fixture.database, &fixture.upstream, &[]).await;
    let second_client = fixture.program.with_base(&second.url());

    fixture.server.sigstop();
    let lost = wait_for_status(&second_client, &response_id(&seen), "failed").await;
    gate.open();
    fixture.server.sigcont();
    // A second response on the resumed node shows that it runs, and gives it time for a wrong
    // write.
    let mut second_stream = fixture.program.stream(json!({ "input": "Hi." })).await;
    second_stream.until("response.completed").await;

    let rest = stream.rest().await;
    assert_eq!(
        rest.last().unwrap()["response"],
        lost,
        "the live stream ended with another response"
    );
    assert_eq!(
        second_client
            .get(&format!("/responses/{}", id(&lost)))
            .await
            .1,
        lost
    );
    let whole = second_client.replay(id(&lost), None).await.rest().await;
    assert_eq!(json!(fold_items(&whole)), lost["output"]);
}
