//! Tests of the limits of `/v1`: concurrent responses, in total and for each user, and requests per
//! minute.

use std::time::{Duration, Instant};

use serde_json::json;

use super::fixture::{V1Fixture, id, text};
use crate::support::backends::on_sqlite;
use crate::support::v1_client::V1Client;

on_sqlite! {
    async fn a_full_server_rejects_at_once_and_before_any_row(backend) {
        let stage = V1Fixture::open_with(backend, &[("RESPONSES_MAX_RUNNING", "1")]).await;
        let gate = stage.upstream.gate();
        let mut ears = stage.program.stream(json!({ "input": "Hi." })).await;
        ears.until("response.in_progress").await;

        let began = Instant::now();
        let refused = stage.program.respond_with_error(json!({ "input": "x" })).await;

        assert_eq!((refused.0, refused.1.as_str()), (503, "overloaded"));
        assert!(began.elapsed() < Duration::from_secs(2));
        assert_eq!(stage.n_rows("responses").await, 1);
        gate.open();
        ears.rest().await;
        assert_eq!(text(&stage.program.respond(json!({ "input": "x" })).await), "Hello.");
        stage.close().await;
    }

    async fn one_person_gets_a_quarter(backend) {
        let stage = V1Fixture::open_with(backend, &[("RESPONSES_MAX_RUNNING", "4")]).await;
        let ben = V1Client::new(&stage.app.register("ben").await).await;
        let gate = stage.upstream.gate();
        let mut ears = stage.program.stream(json!({ "input": "Hi." })).await;
        ears.until("response.in_progress").await;

        let refused = stage.program.respond_with_error(json!({ "input": "x" })).await;

        assert_eq!((refused.0, refused.1.as_str()), (429, "rate_limited"));
        gate.open();
        assert_eq!(text(&ben.respond(json!({ "input": "x" })).await), "Hello.");
        ears.rest().await;
        stage.close().await;
    }

    async fn what_does_not_fit_into_the_background_waits(backend) {
        let stage = V1Fixture::open_with(backend, &[("RESPONSES_MAX_BACKGROUND", "1")]).await;
        let gate = stage.upstream.gate();
        let body = json!({ "input": "Hi.", "background": true });
        let first = stage.program.respond(body.clone()).await;
        let second = stage.program.respond(body).await;
        stage.wait_for_status(id(&first), "in_progress").await;

        assert_eq!(stage.program.get(&format!("/responses/{}", id(&second))).await.1["status"], "queued");

        gate.open();
        stage.wait_for_status(id(&first), "completed").await;
        stage.wait_for_status(id(&second), "completed").await;
        stage.close().await;
    }

    async fn a_key_asks_only_so_often_a_minute(backend) {
        let stage = V1Fixture::open_with(backend, &[("RESPONSES_RATE_PER_MINUTE", "1")]).await;
        stage.program.respond(json!({ "input": "Hi." })).await;

        assert_eq!(stage.program.respond_with_error(json!({ "input": "Hi." })).await.0, 429);

        stage.app.app.clock.advance_ms(60_000);
        stage.program.respond(json!({ "input": "Hi." })).await;
        stage.close().await;
    }
}
