//! Tests of the limits of `/v1`: concurrent responses, in total and for each user, and requests per
//! minute.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;

use super::fixture::{V1Fixture, deltas, id, lines, text};
use crate::support::backends::on_sqlite;
use crate::support::poll;
use crate::support::v1_client::V1Client;

const ONE_CALL_AND_ONE_WAITING: &[(&str, &str)] = &[
    ("RESPONSES_MAX_CALLS_PER_PROVIDER", "1"),
    ("RESPONSES_MAX_WAITING_PER_PROVIDER", "1"),
];

async fn two_users(fixture: &V1Fixture) -> (V1Client, V1Client) {
    let ben = V1Client::new(&fixture.app.register("ben").await).await;
    let cid = V1Client::new(&fixture.app.register("cid").await).await;
    (ben, cid)
}

/// Waits until this number of calls of the only provider run, and this number wait.
async fn wait_for_calls(fixture: &V1Fixture, running: usize, waiting: usize) {
    poll::until(
        &format!("{running} calls run, {waiting} wait"),
        async || {
            let (_, stats) = fixture.admin.get("/api/admin/stats").await;
            let calls = &stats["provider_calls"][0];
            (calls["running"] == running && calls["waiting"] == waiting).then_some(())
        },
    )
    .await;
}

on_sqlite! {
    async fn a_full_server_rejects_at_once_and_before_any_row(backend) {
        let fixture = V1Fixture::open_with(backend, &[("RESPONSES_MAX_RUNNING", "1")]).await;
        let gate = fixture.upstream.gate();
        let mut stream = fixture.program.stream(json!({ "input": "Hi." })).await;
        stream.until("response.in_progress").await;

        let began = Instant::now();
        let refused = fixture.program.respond_with_error(json!({ "input": "x" })).await;

        assert_eq!((refused.0, refused.1.as_str()), (503, "overloaded"));
        assert!(began.elapsed() < Duration::from_secs(2));
        assert_eq!(fixture.n_rows("responses").await, 1);
        gate.open();
        stream.rest().await;
        assert_eq!(text(&fixture.program.respond(json!({ "input": "x" })).await), "Hello.");
        fixture.close().await;
    }

    async fn a_program_that_sends_one_request_after_the_other_is_never_rejected(backend) {
        let fixture = V1Fixture::open_with(backend, &[("RESPONSES_MAX_RUNNING", "1")]).await;

        for _ in 0..30 {
            let body = json!({ "input": "Hi.", "store": false });
            let stream = fixture.program.stream(body).await;
            assert_eq!(deltas(&stream.rest().await).concat(), "Hello.");
        }

        fixture.close().await;
    }

    async fn one_user_may_fill_three_quarters_of_the_running_responses(backend) {
        let fixture = V1Fixture::open_with(backend, &[("RESPONSES_MAX_RUNNING", "4")]).await;
        let ben = V1Client::new(&fixture.app.register("ben").await).await;
        let gate = fixture.upstream.gate();
        let mut streams = Vec::new();
        for _ in 0..3 {
            let mut stream = fixture.program.stream(json!({ "input": "Hi." })).await;
            stream.until("response.in_progress").await;
            streams.push(stream);
        }

        let refused = fixture.program.respond_with_error(json!({ "input": "x" })).await;
        let mut of_ben = ben.stream(json!({ "input": "Hi." })).await;
        of_ben.until("response.in_progress").await;

        assert_eq!((refused.0, refused.1.as_str()), (429, "rate_limited"));
        gate.open();
        streams.push(of_ben);
        for stream in streams {
            assert_eq!(deltas(&stream.rest().await).concat(), "Hello.");
        }
        fixture.close().await;
    }

    async fn one_user_on_an_idle_server_is_not_limited_to_a_share(backend) {
        let fixture = V1Fixture::open(backend).await;
        let gate = fixture.upstream.gate();
        let program = &fixture.program;
        let streams = join_all((0..150).map(|_| async move {
            let body = json!({ "input": "Hi.", "store": false });
            let mut stream = program.stream(body).await;
            stream.until("response.in_progress").await;
            stream
        }))
        .await;

        gate.open();

        for stream in streams {
            assert_eq!(deltas(&stream.rest().await).concat(), "Hello.");
        }
        fixture.close().await;
    }

    async fn a_free_permit_of_the_provider_goes_to_the_user_with_the_fewest_calls(backend) {
        let env = [
            ("RESPONSES_MAX_CALLS_PER_PROVIDER", "1"),
            ("RESPONSES_MAX_WAITING_PER_PROVIDER", "7"),
        ];
        let fixture = V1Fixture::open_with(backend, &env).await;
        let ben = V1Client::new(&fixture.app.register("ben").await).await;
        let gate = fixture.upstream.gate();
        let mut streams = Vec::new();
        let requests = [(&fixture.program, "first"), (&fixture.program, "second"), (&ben, "third")];
        for (n_waiting, (program, input)) in requests.into_iter().enumerate() {
            streams.push(program.stream(json!({ "input": input })).await);
            wait_for_calls(&fixture, 1, n_waiting).await;
        }

        gate.open();
        for stream in streams {
            stream.rest().await;
        }

        let sent = (0..3).map(|it| lines(&fixture.upstream.body(it)).concat());
        let order: Vec<_> = sent.collect();
        assert!(order[1].contains("third") && order[2].contains("second"), "{order:?}");
        fixture.close().await;
    }

    async fn a_background_response_beyond_the_limit_stays_queued(backend) {
        let fixture = V1Fixture::open_with(backend, &[("RESPONSES_MAX_BACKGROUND", "1")]).await;
        let gate = fixture.upstream.gate();
        let body = json!({ "input": "Hi.", "background": true });
        let first = fixture.program.respond(body.clone()).await;
        let second = fixture.program.respond(body).await;
        fixture.wait_for_status(id(&first), "in_progress").await;

        assert_eq!(fixture.program.get(&format!("/responses/{}", id(&second))).await.1["status"], "queued");

        gate.open();
        fixture.wait_for_status(id(&first), "completed").await;
        fixture.wait_for_status(id(&second), "completed").await;
        fixture.close().await;
    }

    async fn calls_of_a_provider_wait_in_a_bounded_queue(backend) {
        let fixture = V1Fixture::open_with(backend, ONE_CALL_AND_ONE_WAITING).await;
        let (ben, cid) = two_users(&fixture).await;
        let gate = fixture.upstream.gate();
        let mut first = fixture.program.stream(json!({ "input": "Hi." })).await;
        first.until("response.in_progress").await;
        wait_for_calls(&fixture, 1, 0).await;
        let own = fixture.program.respond_with_error(json!({ "input": "x" })).await;
        let mut second = ben.stream(json!({ "input": "Hi." })).await;
        second.until("response.in_progress").await;
        wait_for_calls(&fixture, 1, 1).await;

        let refused = cid.respond_with_error(json!({ "input": "x" })).await;

        assert_eq!((own.0, own.1.as_str()), (429, "rate_limited"));
        assert_eq!((refused.0, refused.1.as_str()), (503, "provider_busy"));
        assert_eq!(fixture.n_rows("responses").await, 2);
        assert_eq!(fixture.upstream.n_requests(), 1);
        gate.open();
        assert_eq!(deltas(&first.rest().await).concat(), "Hello.");
        assert_eq!(deltas(&second.rest().await).concat(), "Hello.");
        assert_eq!(text(&cid.respond(json!({ "input": "x" })).await), "Hello.");
        wait_for_calls(&fixture, 0, 0).await;
        fixture.close().await;
    }

    async fn a_client_that_disconnects_leaves_the_queue_of_the_provider(backend) {
        let fixture = V1Fixture::open_with(backend, ONE_CALL_AND_ONE_WAITING).await;
        let (ben, cid) = two_users(&fixture).await;
        let gate = fixture.upstream.gate();
        let mut first = fixture.program.stream(json!({ "input": "Hi." })).await;
        first.until("response.in_progress").await;
        wait_for_calls(&fixture, 1, 0).await;
        for store in [true, false] {
            let mut second = ben.stream(json!({ "input": "Hi.", "store": store })).await;
            second.until("response.in_progress").await;
            wait_for_calls(&fixture, 1, 1).await;

            drop(second);

            poll::until("the response has ended", async || {
                let leases = &fixture.app.app.responses.services().response_leases;
                (leases.count() == 1).then_some(())
            })
            .await;
            wait_for_calls(&fixture, 1, 0).await;
        }
        let mut third = cid.stream(json!({ "input": "Hi." })).await;
        third.until("response.in_progress").await;
        gate.open();
        first.rest().await;
        assert_eq!(deltas(&third.rest().await).concat(), "Hello.");
        assert_eq!(fixture.upstream.n_requests(), 2);
        wait_for_calls(&fixture, 0, 0).await;
        fixture.close().await;
    }

    async fn v1_requests_per_minute_are_limited(backend) {
        let fixture = V1Fixture::open_with(backend, &[("RESPONSES_RATE_PER_MINUTE", "1")]).await;
        fixture.program.respond(json!({ "input": "Hi." })).await;

        assert_eq!(fixture.program.respond_with_error(json!({ "input": "Hi." })).await.0, 429);

        fixture.app.app.clock.advance_ms(60_000);
        fixture.program.respond(json!({ "input": "Hi." })).await;
        fixture.close().await;
    }
}
