//! Tests of background responses: they wait, continue without a client, and can be followed and
//! canceled.

use std::time::Duration;

use base::clock::Timestamp;
use leased_jobs::clock_jump_guard::ClockJumpGuard;
use leased_jobs::job::{Job, JobTiming};
use serde_json::json;
use tokio::time::Instant;
use troupe::responses::worker::ResponseJob;

use super::fixture::{V1Fixture, id, kinds, text};
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_postgres_clock;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::v1_client::error_of;

/// In milliseconds.
const HOUR: i64 = 3_600_000;

/// A node that executes no background responses, and does not recover any during a test.
const PATIENT: &[(&str, &str)] = &[
    ("TROUPE_WORKERS", "0"),
    ("RUN_STALE_AFTER_MS", "600000"),
    ("REAPER_INTERVAL_MS", "600000"),
];

/// Returns the statement after which another node executes a response.
fn start_elsewhere(id: &str, heartbeat_at: Timestamp) -> String {
    format!(
        "UPDATE responses SET status = 'in_progress', worker_id = 'elsewhere', lease = 7, attempt = 1, \
         heartbeat_at = {}, started_at = 1 WHERE id = '{id}'",
        heartbeat_at.0
    )
}

on_sqlite! {
    async fn a_background_response_is_queued_at_once_and_completes_without_a_client(backend) {
        let fixture = V1Fixture::open(backend).await;

        let response = fixture.program.respond(json!({ "input": "Hi.", "background": true })).await;

        assert_eq!(response["status"], "queued");
        assert_eq!(response["output"], json!([]));
        let ended = fixture.wait_for_status(id(&response), "completed").await;
        assert_eq!(text(&ended), "Hello.");
        assert_eq!(ended["background"], true);
        fixture.close().await;
    }

    async fn a_background_stream_can_be_replayed_from_any_event(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.reply_with("One two three four five six.");
        let gate = fixture.upstream.gate();
        let mut stream =
            fixture.program.stream(json!({ "input": "Hi.", "background": true })).await;
        gate.step();
        let seen = stream.until("response.output_text.delta").await;
        let response = seen[0]["response"]["id"].as_str().unwrap().to_owned();
        let last = seen.last().unwrap()["sequence_number"].as_i64().unwrap();
        drop(stream);
        gate.open();

        let rest = fixture.program.replay(&response, Some(last)).await.rest().await;
        let whole = fixture.program.replay(&response, None).await.rest().await;

        assert_eq!(whole, [seen, rest].concat());
        assert_eq!(kinds(&whole)[..3], ["created", "queued", "in_progress"]);
        let ended = fixture.wait_for_status(&response, "completed").await;
        assert_eq!(whole.last().unwrap()["response"], ended);
        let end = whole.last().unwrap()["sequence_number"].as_i64();
        let beyond = fixture.program.replay(&response, end).await.rest().await;
        assert!(beyond.is_empty(), "a replay after the last event must be empty");
        let foreground = fixture.program.respond(json!({ "input": "Hi." })).await;
        let refused = fixture.program.get(&format!("/responses/{}?stream=true", id(&foreground))).await;
        assert_eq!(error_of(&refused).1, "stream_not_available");
        fixture.close().await;
    }

    async fn a_background_stream_beyond_the_running_limit_is_rejected(backend) {
        let fixture = V1Fixture::open_with(backend, &[("RESPONSES_MAX_RUNNING", "1")]).await;
        fixture.upstream.always(ResponseScript::stream().role().words("One ").hang());
        let body = json!({ "input": "Hi.", "background": true, "stream": true });
        let mut first = fixture.program.stream(body.clone()).await;
        first.until("response.output_text.delta").await;

        let (status, code, _) = fixture.program.respond_with_error(body).await;

        assert_eq!((status, code.as_str()), (503, "overloaded"));
        assert_eq!(fixture.n_rows("responses").await, 1, "the rejected response was stored");
        fixture.close().await;
    }

    async fn a_cancel_is_sent_to_every_follower(backend) {
        let fixture = V1Fixture::open(backend).await;
        fixture.upstream.always(ResponseScript::stream().role().words("One two ").hang());
        let mut stream =
            fixture.program.stream(json!({ "input": "Hi.", "background": true })).await;
        let seen = stream.until("response.output_text.delta").await;
        let path = format!("/responses/{}", seen[0]["response"]["id"].as_str().unwrap());

        let (status, cancelled) = fixture.program.post(&format!("{path}/cancel"), json!({})).await;

        assert_eq!((status, &cancelled["status"]), (200, &json!("cancelled")));
        fixture.upstream.wait_for_disconnect(0).await;
        let rest = stream.rest().await;
        assert_eq!(kinds(&rest)[rest.len() - 4..], ["output_text.done", "content_part.done", "output_item.done", "incomplete"]);
        assert_eq!(rest.last().unwrap()["response"], cancelled);
        assert_eq!(cancelled["output"][0]["status"], "incomplete");
        assert_eq!(fixture.program.post(&format!("{path}/cancel"), json!({})).await.1, cancelled);
        assert_eq!(fixture.program.get(&path).await.1, cancelled);
        fixture.close().await;
    }

    async fn a_queued_background_response_can_be_canceled(backend) {
        let fixture = V1Fixture::open_with(backend, &[("TROUPE_WORKERS", "0")]).await;
        let response = fixture.program.respond(json!({ "input": "Hi.", "background": true })).await;

        let (_, cancelled) = fixture.program.post(&format!("/responses/{}/cancel", id(&response)), json!({})).await;

        assert_eq!(cancelled["status"], "cancelled");
        let events = fixture.program.replay(id(&response), None).await.rest().await;
        assert_eq!(kinds(&events), ["created", "queued", "incomplete"]);
        fixture.close().await;
    }

    async fn only_background_responses_can_be_canceled(backend) {
        let fixture = V1Fixture::open(backend).await;
        let response = fixture.program.respond(json!({ "input": "Hi." })).await;

        let refused = fixture.program.post(&format!("/responses/{}/cancel", id(&response)), json!({})).await;

        assert_eq!(error_of(&refused).1, "not_cancellable");
        assert_eq!(fixture.program.post("/responses/resp_0/cancel", json!({})).await.0, 404);
        fixture.close().await;
    }
}

on_both! {
    /// Such a heartbeat was written before the clock was set back.
    async fn a_response_with_a_heartbeat_in_the_future_is_recovered(backend) {
        let fixture = V1Fixture::open_with(backend, PATIENT).await;
        let response = fixture.program.respond(json!({ "input": "Hi.", "background": true })).await;
        let services = fixture.app.app.responses.services();
        let (now, stale_after) = (services.clock.now(), services.settings.stale_after);
        let mut facts = DatabaseFacts::open(&fixture.app.database).await;

        for (heartbeat_at, status) in [(now, "in_progress"), (now.plus_ms(HOUR), "queued")] {
            facts.execute(&start_elsewhere(id(&response), heartbeat_at)).await;
            troupe::responses::recovery::recover(services, Some(stale_after)).await.unwrap();
            let (_, seen) = fixture.program.get(&format!("/responses/{}", id(&response))).await;
            assert_eq!(seen["status"], status);
        }

        fixture.close().await;
    }

    async fn a_response_that_was_queued_for_an_hour_expires(backend) {
        let fixture = V1Fixture::open_with(backend, PATIENT).await;
        let response = fixture.program.respond(json!({ "input": "Hi.", "background": true })).await;
        let services = fixture.app.app.responses.services();

        for (advance_ms, status) in [(HOUR - 60_000, "queued"), (60_000, "incomplete")] {
            services.clock.advance_ms(advance_ms);
            troupe::responses::recovery::clean_up(services).await.unwrap();
            let (_, seen) = fixture.program.get(&format!("/responses/{}", id(&response))).await;
            assert_eq!(seen["status"], status);
        }

        let events = fixture.program.replay(id(&response), None).await.rest().await;
        assert_eq!(kinds(&events), ["created", "queued", "incomplete"]);
        assert_eq!(events[2]["response"]["incomplete_details"]["reason"], "expired");
        fixture.close().await;
    }

    async fn a_second_attempt_has_the_deadline_of_the_first_one(backend) {
        let fixture = V1Fixture::open_with(backend, PATIENT).await;
        let response = fixture.program.respond(json!({ "input": "Hi.", "background": true })).await;
        let services = fixture.app.app.responses.services();
        let mut facts = DatabaseFacts::open(&fixture.app.database).await;
        // Its first attempt began long ago.
        facts.execute(&start_elsewhere(id(&response), services.clock.now())).await;
        troupe::responses::recovery::recover(services, None).await.unwrap();

        let claimed = ResponseJob::new(services.clone()).claim().await;

        assert!(claimed.is_ok());
        let ended = fixture.wait_for_status(id(&response), "incomplete").await;
        assert_eq!(ended["incomplete_details"]["reason"], "run_timeout");
        assert_eq!(fixture.upstream.n_requests(), 0);
        fixture.close().await;
    }

    // Writes the rows that a dead node leaves.
    async fn recovery_requeues_or_ends_the_responses_of_a_dead_node(backend) {
        let fixture = V1Fixture::open_with(backend, &[("TROUPE_WORKERS", "0")]).await;
        let queued = fixture.program.respond(json!({ "input": "Hi.", "background": true })).await;
        let done = fixture.program.respond(json!({ "input": "Hi." })).await;
        let abandon_sql = |id: &str, background: bool| format!(
            "UPDATE responses SET status = 'in_progress', completed_at = NULL, worker_id = 'gone', lease = 7, attempt = 1, \
             heartbeat_at = 1, started_at = 1, background = {background} WHERE id = '{id}'"
        );
        let mut facts = DatabaseFacts::open(&fixture.app.database).await;
        facts.execute(&abandon_sql(id(&queued), true)).await;
        facts.execute(&abandon_sql(id(&done), false)).await;

        troupe::responses::recovery::recover(fixture.app.app.responses.services(), None).await.unwrap();

        let (_, again) = fixture.program.get(&format!("/responses/{}", id(&queued))).await;
        assert_eq!(again["status"], "queued", "a response without output must be queued again");
        let (_, lost) = fixture.program.get(&format!("/responses/{}", id(&done))).await;
        assert_eq!((&lost["status"], &lost["error"]["code"]), (&json!("failed"), &json!("instance_lost")));
        fixture.close().await;
    }
}

/// After a change of the clock, every heartbeat looks stale until the next one. No loop of the node
/// recovers responses during the test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_clock_that_is_set_ends_no_response() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let fixture = V1Fixture::open_with(TestBackend::Postgres, PATIENT).await;
    let body = json!({ "input": "Hi.", "background": true });
    let response = fixture.program.respond(body).await;
    fake_postgres_clock::install(&fixture.app.database).await;
    let services = fixture.app.app.responses.services();
    let mut job = ResponseJob::new(services.clone());
    let JobTiming {
        heartbeat,
        stale_after,
        recovery_interval,
        ..
    } = job.timing();
    let gap = recovery_interval + heartbeat;
    let mut facts = DatabaseFacts::open(&fixture.app.database).await;
    let path = format!("/responses/{}", id(&response));
    let now = services.clock.now();
    facts.execute(&start_elsewhere(id(&response), now)).await;

    for set_by in [-1, 1] {
        let mut guard = ClockJumpGuard::new(gap, heartbeat, stale_after, Instant::now());
        for hours in [0, set_by] {
            fake_postgres_clock::set(&mut facts, hours).await;
            job.recover(&mut guard).await.unwrap();
            let (_, seen) = fixture.program.get(&path).await;
            assert_eq!(seen["status"], "in_progress", "{hours} of {set_by} hours");
        }
    }

    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_on_one_node_ends_a_response_on_another_node() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let fixture = V1Fixture::open(TestBackend::Postgres).await;
    fixture
        .upstream
        .always(ResponseScript::stream().role().words("One two ").hang());
    let mut stream = fixture
        .program
        .stream(json!({ "input": "Hi.", "background": true }))
        .await;
    let seen = stream.until("response.output_text.delta").await;
    let second = fixture.second_node().await;
    let second_client = fixture.program.with_base(&second.base);
    let path = format!("/responses/{}", seen[0]["response"]["id"].as_str().unwrap());

    let (_, cancelled) = second_client
        .post(&format!("{path}/cancel"), json!({}))
        .await;

    assert_eq!(cancelled["status"], "cancelled");
    fixture.upstream.wait_for_disconnect(0).await;
    assert_eq!(stream.rest().await.last().unwrap()["response"], cancelled);
    second.close().await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_on_another_node_reaches_the_model_before_the_next_heartbeat() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let rare_heartbeats = [
        ("RUN_HEARTBEAT_MS", "60000"),
        ("RUN_STALE_AFTER_MS", "600000"),
        ("REAPER_INTERVAL_MS", "600000"),
    ];
    let fixture = V1Fixture::open_with(TestBackend::Postgres, &rare_heartbeats).await;
    let without_worker = [("TROUPE_WORKERS", "0")];
    let second = fixture.second_node_with(&without_worker).await;
    fixture
        .upstream
        .always(ResponseScript::hang_before_headers());
    let body = json!({ "input": "Hi.", "background": true });
    let response = fixture.program.respond(body).await;
    fixture.upstream.wait_for_requests(1).await;
    let path = format!("/responses/{}/cancel", id(&response));
    let (began, other_node) = (Instant::now(), fixture.program.with_base(&second.base));

    let (_, cancelled) = other_node.post(&path, json!({})).await;
    fixture.upstream.wait_for_disconnect(0).await;

    assert_eq!(cancelled["status"], "cancelled");
    assert!(began.elapsed() < Duration::from_secs(2));
    second.close().await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_node_answers_a_response_that_a_closing_node_left_without_output() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let fixture = V1Fixture::open(TestBackend::Postgres).await;
    fixture.upstream.next(ResponseScript::hang_before_headers());
    let body = json!({ "input": "Hi.", "background": true });
    let response = fixture.program.respond(body).await;
    fixture.upstream.wait_for_requests(1).await;
    let second = fixture.second_node().await;

    let fixture = fixture.moved_to(second).await;

    let ended = fixture.wait_for_status(id(&response), "completed").await;
    assert_eq!(text(&ended), "Hello.");
    let events = fixture
        .program
        .replay(id(&response), None)
        .await
        .rest()
        .await;
    assert_eq!(
        kinds(&events)[..4],
        ["created", "queued", "in_progress", "output_item.added"]
    );
    fixture.close().await;
}
