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

/// A server with a model and a program. The server goes first, the database last.
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

    /// Waits until a response has this status, and nothing else is under way.
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

fn thought(text: &str) -> Value {
    let delta = json!({ "reasoning_content": text });
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

/// The id of the response in these events.
fn of(events: &[Value]) -> String {
    id(&events[0]["response"]).to_owned()
}

on_both! {
    async fn a_killed_foreground_response_is_lost_with_the_items_that_were_done(backend) {
        let mut house = RestartableServer::open(backend, &[]).await;
        house.upstream.next(ResponseScript::stream().role().event(&thought("Hm.")).words("One two ").hang());
        let mut ears = house.program.stream(json!({ "input": "Hi." })).await;
        let seen = ears.until("response.output_text.delta").await;

        house.kill_and_start_again().await;

        let lost = house.wait_for_status(&of(&seen), "failed").await;
        assert_eq!(lost["error"]["code"], "instance_lost");
        assert_eq!(types(&lost), ["reasoning"]);
        assert_eq!(lost["output"][0]["summary"][0]["text"], "Hm.");
        let next = json!({ "input": "Go on.", "previous_response_id": id(&lost) });
        assert_eq!(house.program.respond_with_error(next).await.1, "previous_response_not_usable");
        assert_eq!(text(&house.program.respond(json!({ "input": "Hi." })).await), "Hello.");
    }

    async fn a_killed_background_response_keeps_what_was_already_sent(backend) {
        let mut house = RestartableServer::open(backend, &[]).await;
        house.upstream.next(ResponseScript::stream().role().event(&thought("Hm.")).words("One two ").hang());
        let mut ears = house.program.stream(json!({ "input": "Hi.", "background": true })).await;
        let seen = ears.until("response.output_text.delta").await;
        let last = seen.last().unwrap()["sequence_number"].as_i64();

        house.kill_and_start_again().await;

        let lost = house.wait_for_status(&of(&seen), "failed").await;
        assert_eq!(lost["error"]["code"], "instance_lost");
        assert_eq!(types(&lost), ["reasoning", "message"]);
        assert_eq!(lost["output"][1]["status"], "incomplete");
        let whole = house.program.replay(id(&lost), None).await.rest().await;
        let rest = house.program.replay(id(&lost), last).await.rest().await;
        assert_eq!(whole, [seen, rest].concat(), "what was told stays told");
        assert_eq!(whole.last().unwrap()["response"], lost);
        assert_eq!(deltas(&whole).concat(), text(&lost));
        assert_eq!(json!(fold_items(&whole)), lost["output"]);
        assert_eq!(house.upstream.n_requests(), 1, "nobody asks the model twice for what was told");
    }

    async fn a_killed_background_response_of_which_nothing_was_out_is_answered(backend) {
        let mut house = RestartableServer::open(backend, &[]).await;
        house.upstream.next(ResponseScript::hang_before_headers());
        let queued = house.program.respond(json!({ "input": "Hi.", "background": true })).await;
        house.upstream.wait_for_requests(1).await;

        house.kill_and_start_again().await;

        let ended = house.wait_for_status(id(&queued), "completed").await;
        assert_eq!((text(&ended).as_str(), house.upstream.n_requests()), ("Hello.", 2));
        let told = house.program.replay(id(&queued), None).await.rest().await;
        assert_eq!(kinds(&told)[..4], ["created", "queued", "in_progress", "output_item.added"]);
        for (at, event) in told.iter().enumerate() {
            assert_eq!(event["sequence_number"], at);
        }
        assert_eq!(json!(fold_items(&told)), ended["output"]);
    }

    async fn a_background_response_that_is_killed_twice_is_lost(backend) {
        let mut house = RestartableServer::open(backend, &[]).await;
        house.upstream.next(ResponseScript::hang_before_headers());
        house.upstream.next(ResponseScript::hang_before_headers());
        let queued = house.program.respond(json!({ "input": "Hi.", "background": true })).await;

        for n in 1..=2 {
            house.upstream.wait_for_requests(n).await;
            house.kill_and_start_again().await;
        }

        let lost = house.wait_for_status(id(&queued), "failed").await;
        assert_eq!(lost["error"]["code"], "instance_lost");
        assert_eq!(house.upstream.n_requests(), 2);
    }

    async fn what_waits_outlives_a_kill(backend) {
        let mut house = RestartableServer::open(backend, &[("TROUPE_WORKERS", "0")]).await;
        let queued = house.program.respond(json!({ "input": "Hi.", "background": true })).await;

        house.server.set_env("TROUPE_WORKERS", "1");
        house.kill_and_start_again().await;

        assert_eq!(text(&house.wait_for_status(id(&queued), "completed").await), "Hello.");
    }

    async fn a_conversation_is_free_again_after_a_kill(backend) {
        let mut house = RestartableServer::open(backend, &[]).await;
        let (_, conversation) = house.program.post("/conversations", json!({})).await;
        house.upstream.next(ResponseScript::stream().role().words("One two ").hang());
        let turn = |text: &str| json!({ "input": text, "conversation": id(&conversation) });
        let mut ears = house.program.stream(turn("one")).await;
        let seen = ears.until("response.output_text.delta").await;

        house.kill_and_start_again().await;

        house.wait_for_status(&of(&seen), "failed").await;
        assert_eq!(text(&house.program.respond(turn("two")).await), "Hello.");
        assert_eq!(prompt_texts(&house.upstream.body(1)), ["two"], "what failed is no part of it");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_node_answers_and_ends_what_a_killed_one_left() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let mut house = RestartableServer::open(TestBackend::Postgres, &[]).await;
    house.upstream.next(ResponseScript::hang_before_headers());
    let body = json!({ "input": "Hi.", "background": true });
    let untold = house.program.respond(body).await;
    house.upstream.wait_for_requests(1).await;
    house
        .upstream
        .next(ResponseScript::stream().role().words("One two ").hang());
    let mut ears = house.program.stream(json!({ "input": "Hi." })).await;
    let told = ears.until("response.output_text.delta").await;
    let second = start(&house.database, &house.upstream, &[]).await;

    house.server.kill9();

    let there = house.program.with_base(&second.url());
    let ended = wait_for_status(&there, id(&untold), "completed").await;
    assert_eq!(text(&ended), "Hello.");
    let lost = wait_for_status(&there, &of(&told), "failed").await;
    assert_eq!(lost["error"]["code"], "instance_lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stood_still_writes_nothing_into_what_another_ended() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let house = RestartableServer::open(TestBackend::Postgres, &[]).await;
    let gate = HoldPoint::closed();
    gate.step();
    let words = ResponseScript::say("One two three.").held_at(&gate);
    house.upstream.next(words);
    let body = json!({ "input": "Hi.", "background": true });
    let mut ears = house.program.stream(body).await;
    let seen = ears.until("response.output_text.delta").await;
    let second = start(&house.database, &house.upstream, &[]).await;
    let there = house.program.with_base(&second.url());

    house.server.sigstop();
    let lost = wait_for_status(&there, &of(&seen), "failed").await;
    gate.open();
    house.server.sigcont();
    // A second answer through its own endpoint shows that it runs, and gives it time for a wrong
    // write.
    let mut lively = house.program.stream(json!({ "input": "Hi." })).await;
    lively.until("response.completed").await;

    let rest = ears.rest().await;
    assert_eq!(
        rest.last().unwrap()["response"],
        lost,
        "who listened is told the same end"
    );
    assert_eq!(
        there.get(&format!("/responses/{}", id(&lost))).await.1,
        lost
    );
    let whole = there.replay(id(&lost), None).await.rest().await;
    assert_eq!(json!(fold_items(&whole)), lost["output"]);
}
