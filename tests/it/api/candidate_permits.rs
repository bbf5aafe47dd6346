//! Copilot candidates use the same permits and limits as runs; runs have priority.

use std::time::Duration;

use serde_json::json;

use super::copilot_candidates::{CandidateFixture, wait_for_candidates, ws_client_of};
use crate::live::fixture::code;
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::poll;

impl CandidateFixture {
    /// Waits until `n` candidates wait for a permit.
    async fn wait_for_n_waiting(&self, n: usize) {
        let permits = &self.live.house.app.engine.context().permits;
        poll::until("the candidates wait for a permit", async || {
            (permits.waiting_candidates().len() == n).then_some(())
        })
        .await;
    }
}

on_sqlite! {
    async fn candidates_call_a_provider_only_within_its_permits(backend) {
        let fixture = CandidateFixture::open_with(backend, &[("TROUPE_MAX_RUNNING_PER_PROVIDER", "2")]).await;
        let (bobs, anns) = (ws_client_of(&fixture.live.bob).await, ws_client_of(&fixture.live.ann).await);
        let gate = fixture.upstream.gate();

        let for_bob = fixture.request_as_bob(json!({"count": 4})).await;
        let for_ann = fixture.request_as_ann(json!({"count": 4})).await;
        fixture.upstream.wait_for_requests(2).await;
        fixture.wait_for_n_waiting(6).await;
        // Each iteration ends one call, which lets one more call begin.
        for n_ended in 0..6 {
            assert_eq!(fixture.upstream.n_requests(), 2 + n_ended);
            gate.step();
            fixture.upstream.wait_for_requests(3 + n_ended).await;
            fixture.wait_for_n_waiting(5 - n_ended).await;
        }
        gate.open();

        for event in wait_for_candidates(&bobs, &for_bob, 4).await.iter().chain(&wait_for_candidates(&anns, &for_ann, 4).await) {
            assert_eq!(event["text"], "Hello.");
        }
        assert_eq!(fixture.upstream.n_requests(), 8);
        fixture.close().await;
    }

    async fn runs_have_priority_over_candidates(backend) {
        let env = [("TROUPE_WORKERS", "1"), ("TROUPE_MAX_RUNNING_RUNS", "1")];
        let fixture = CandidateFixture::open_with(backend, &env).await;
        let client = ws_client_of(&fixture.live.bob).await;
        let gate = fixture.upstream.gate();
        let generation = fixture.request_as_bob(json!({"count": 2})).await;
        fixture.upstream.wait_for_requests(1).await;
        fixture.wait_for_n_waiting(1).await;

        fixture.live.post(&fixture.live.ann, "Hello, Ada.").await;
        gate.open();

        wait_for_candidates(&client, &generation, 2).await;
        fixture.upstream.wait_for_requests(3).await;
        let is_candidate = |at| fixture.upstream.body(at)["messages"].to_string().contains("You write for bob");
        assert_eq!([0, 1, 2].map(is_candidate), [true, false, true]);
        fixture.close().await;
    }

    async fn a_candidate_that_gets_no_permit_in_time_fails_as_rate_limited(backend) {
        let env = [("TROUPE_MAX_RUNNING_RUNS", "1"), ("LLM_FIRST_CHUNK_TIMEOUT_MS", "1000")];
        let fixture = CandidateFixture::open_with(backend, &env).await;
        let client = ws_client_of(&fixture.live.ann).await;
        let alive = ResponseScript::stream().forever(": ping\n\n", Duration::from_millis(50));
        fixture.upstream.always(alive);
        fixture.request_as_bob(json!({"count": 1})).await;
        fixture.upstream.wait_for_requests(1).await;

        let generation = fixture.request_as_ann(json!({"count": 1})).await;

        assert_eq!(code(&wait_for_candidates(&client, &generation, 1).await[0]), "rate_limited");
        assert_eq!(fixture.upstream.n_requests(), 1);
        fixture.close().await;
    }

    async fn a_newer_request_replaces_a_waiting_one(backend) {
        let fixture =
            CandidateFixture::open_with(backend, &[("TROUPE_MAX_RUNNING_RUNS", "1")]).await;
        let client = ws_client_of(&fixture.live.ann).await;
        let gate = fixture.upstream.gate();
        fixture.request_as_bob(json!({"count": 1})).await;
        fixture.upstream.wait_for_requests(1).await;
        let older = fixture.request_as_ann(json!({"count": 4})).await;
        fixture.wait_for_n_waiting(4).await;

        let newer = fixture.request_as_ann(json!({"count": 1})).await;

        for event in wait_for_candidates(&client, &older, 4).await {
            assert_eq!(code(&event), "canceled");
        }
        fixture.wait_for_n_waiting(1).await;
        gate.open();
        assert_eq!(wait_for_candidates(&client, &newer, 1).await[0]["text"], "Hello.");
        assert_eq!(fixture.upstream.n_requests(), 2);
        fixture.close().await;
    }

    async fn each_candidate_counts_as_a_post_but_a_rejected_request_does_not(backend) {
        let fixture =
            CandidateFixture::open_with(backend, &[("LIMIT_POSTS_PER_MINUTE", "5")]).await;
        fixture.request_as_bob(json!({"count": 4})).await;

        let body = json!({"membership_id": fixture.live.bobs_seat, "count": 2});

        assert_eq!(
            fixture.refusal(&fixture.live.bob, body).await,
            (429, "rate_limited".to_owned())
        );
        fixture.request_as_bob(json!({"count": 1})).await;
        fixture.close().await;
    }
}
