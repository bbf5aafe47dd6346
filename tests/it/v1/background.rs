//! Tests of background responses: they wait, continue without a client, and can be followed and
//! canceled.

use serde_json::json;

use super::fixture::{V1Fixture, id, kinds, text};
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::v1_client::error_of;

on_sqlite! {
    async fn a_background_response_is_queued_at_once_and_completes_without_a_client(backend) {
        let stage = V1Fixture::open(backend).await;

        let response = stage.program.respond(json!({ "input": "Hi.", "background": true })).await;

        assert_eq!(response["status"], "queued");
        assert_eq!(response["output"], json!([]));
        let ended = stage.wait_for_status(id(&response), "completed").await;
        assert_eq!(text(&ended), "Hello.");
        assert_eq!(ended["background"], true);
        stage.close().await;
    }

    async fn its_stream_can_be_had_again_from_any_place(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.reply_with("One two three four five six.");
        let gate = stage.upstream.gate();
        let mut ears = stage.program.stream(json!({ "input": "Hi.", "background": true })).await;
        gate.step();
        let seen = ears.until("response.output_text.delta").await;
        let response = seen[0]["response"]["id"].as_str().unwrap().to_owned();
        let last = seen.last().unwrap()["sequence_number"].as_i64().unwrap();
        drop(ears);
        gate.open();

        let rest = stage.program.replay(&response, Some(last)).await.rest().await;
        let whole = stage.program.replay(&response, None).await.rest().await;

        assert_eq!(whole, [seen, rest].concat());
        assert_eq!(kinds(&whole)[..3], ["created", "queued", "in_progress"]);
        let ended = stage.wait_for_status(&response, "completed").await;
        assert_eq!(whole.last().unwrap()["response"], ended);
        let end = whole.last().unwrap()["sequence_number"].as_i64();
        let beyond = stage.program.replay(&response, end).await.rest().await;
        assert!(beyond.is_empty(), "who has the end is told that there is no more");
        let foreground = stage.program.respond(json!({ "input": "Hi." })).await;
        let refused = stage.program.get(&format!("/responses/{}?stream=true", id(&foreground))).await;
        assert_eq!(error_of(&refused).1, "stream_not_available");
        stage.close().await;
    }

    async fn so_many_may_follow_and_no_more(backend) {
        let stage = V1Fixture::open_with(backend, &[("RESPONSES_MAX_RUNNING", "1")]).await;
        stage.upstream.always(ResponseScript::stream().role().words("One ").hang());
        let body = json!({ "input": "Hi.", "background": true, "stream": true });
        let mut first = stage.program.stream(body.clone()).await;
        first.until("response.output_text.delta").await;

        let (status, code, _) = stage.program.respond_with_error(body).await;

        assert_eq!((status, code.as_str()), (503, "overloaded"));
        assert_eq!(stage.n_rows("responses").await, 1, "nothing began");
        stage.close().await;
    }

    async fn a_cancel_is_sent_to_every_follower(backend) {
        let stage = V1Fixture::open(backend).await;
        stage.upstream.always(ResponseScript::stream().role().words("One two ").hang());
        let mut ears = stage.program.stream(json!({ "input": "Hi.", "background": true })).await;
        let seen = ears.until("response.output_text.delta").await;
        let path = format!("/responses/{}", seen[0]["response"]["id"].as_str().unwrap());

        let (status, cancelled) = stage.program.post(&format!("{path}/cancel"), json!({})).await;

        assert_eq!((status, &cancelled["status"]), (200, &json!("cancelled")));
        stage.upstream.wait_for_disconnect(0).await;
        let rest = ears.rest().await;
        assert_eq!(kinds(&rest)[rest.len() - 4..], ["output_text.done", "content_part.done", "output_item.done", "incomplete"]);
        assert_eq!(rest.last().unwrap()["response"], cancelled);
        assert_eq!(cancelled["output"][0]["status"], "incomplete");
        assert_eq!(stage.program.post(&format!("{path}/cancel"), json!({})).await.1, cancelled);
        assert_eq!(stage.program.get(&path).await.1, cancelled);
        stage.close().await;
    }

    async fn what_still_waits_can_be_cancelled(backend) {
        let stage = V1Fixture::open_with(backend, &[("TROUPE_WORKERS", "0")]).await;
        let response = stage.program.respond(json!({ "input": "Hi.", "background": true })).await;

        let (_, cancelled) = stage.program.post(&format!("/responses/{}/cancel", id(&response)), json!({})).await;

        assert_eq!(cancelled["status"], "cancelled");
        let told = stage.program.replay(id(&response), None).await.rest().await;
        assert_eq!(kinds(&told), ["created", "queued", "incomplete"]);
        stage.close().await;
    }

    async fn only_what_runs_in_the_background_can_be_cancelled(backend) {
        let stage = V1Fixture::open(backend).await;
        let response = stage.program.respond(json!({ "input": "Hi." })).await;

        let refused = stage.program.post(&format!("/responses/{}/cancel", id(&response)), json!({})).await;

        assert_eq!(error_of(&refused).1, "not_cancellable");
        assert_eq!(stage.program.post("/responses/resp_0/cancel", json!({})).await.0, 404);
        stage.close().await;
    }
}

on_both! {
    // With the rows that a dead node leaves behind.
    async fn what_a_dead_node_left_is_taken_up_or_ended(backend) {
        let stage = V1Fixture::open_with(backend, &[("TROUPE_WORKERS", "0")]).await;
        let waits = stage.program.respond(json!({ "input": "Hi.", "background": true })).await;
        let done = stage.program.respond(json!({ "input": "Hi." })).await;
        let abandon = |id: &str, background: bool| format!(
            "UPDATE responses SET status = 'in_progress', completed_at = NULL, worker_id = 'gone', lease = 7, attempt = 1, \
             heartbeat_at = 1, started_at = 1, background = {background} WHERE id = '{id}'"
        );
        let mut facts = DatabaseFacts::open(&stage.app.database).await;
        facts.execute(&abandon(id(&waits), true)).await;
        facts.execute(&abandon(id(&done), false)).await;

        troupe::responses::recovery::recover(stage.app.app.responses.services(), None).await.unwrap();

        let (_, again) = stage.program.get(&format!("/responses/{}", id(&waits))).await;
        assert_eq!(again["status"], "queued", "nothing of it was out");
        let (_, lost) = stage.program.get(&format!("/responses/{}", id(&done))).await;
        assert_eq!((&lost["status"], &lost["error"]["code"]), (&json!("failed"), &json!("instance_lost")));
        stage.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_on_one_node_ends_what_another_works_on() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("no PostgreSQL is given: not tested");
        return;
    }
    let stage = V1Fixture::open(TestBackend::Postgres).await;
    stage
        .upstream
        .always(ResponseScript::stream().role().words("One two ").hang());
    let mut ears = stage
        .program
        .stream(json!({ "input": "Hi.", "background": true }))
        .await;
    let seen = ears.until("response.output_text.delta").await;
    let second = stage.second_node().await;
    let there = stage.program.with_base(&second.base);
    let path = format!("/responses/{}", seen[0]["response"]["id"].as_str().unwrap());

    let (_, cancelled) = there.post(&format!("{path}/cancel"), json!({})).await;

    assert_eq!(cancelled["status"], "cancelled");
    stage.upstream.wait_for_disconnect(0).await;
    assert_eq!(ears.rest().await.last().unwrap()["response"], cancelled);
    second.close().await;
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_closing_node_has_not_answered_yet_another_one_answers() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("no PostgreSQL is given: not tested");
        return;
    }
    let stage = V1Fixture::open(TestBackend::Postgres).await;
    stage.upstream.next(ResponseScript::hang_before_headers());
    let body = json!({ "input": "Hi.", "background": true });
    let response = stage.program.respond(body).await;
    stage.upstream.wait_for_requests(1).await;
    let second = stage.second_node().await;

    let stage = stage.moved_to(second).await;

    let ended = stage.wait_for_status(id(&response), "completed").await;
    assert_eq!(text(&ended), "Hello.");
    let told = stage.program.replay(id(&response), None).await.rest().await;
    assert_eq!(
        kinds(&told)[..4],
        ["created", "queued", "in_progress", "output_item.added"]
    );
    stage.close().await;
}
