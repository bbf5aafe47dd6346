//! Copilot candidates use the same permits and limits as runs; runs have priority.

use std::time::Duration;

use serde_json::json;

use super::copilot_candidates::{CandidateFixture, all_of, ws_client_of};
use crate::live::fixture::code;
use crate::support::backends::on_sqlite;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::poll;

impl CandidateFixture {
    /// Waits until `n` candidates wait for a permit.
    async fn n_waiting(&self, n: usize) {
        let permits = &self.stage.house.app.engine.context().permits;
        poll::until("candidates wait", async || {
            (permits.waiting_candidates().len() == n).then_some(())
        })
        .await;
    }
}

on_sqlite! {
    async fn candidates_call_a_provider_with_its_permits_alone(backend) {
        let room = CandidateFixture::open_with(backend, &[("TROUPE_MAX_RUNNING_PER_PROVIDER", "2")]).await;
        let (bobs, anns) = (ws_client_of(&room.stage.bob).await, ws_client_of(&room.stage.ann).await);
        let gate = room.upstream.gate();

        let for_bob = room.request_as_bob(json!({"count": 4})).await;
        let for_ann = room.request_as_ann(json!({"count": 4})).await;
        room.upstream.wait_for_requests(2).await;
        room.n_waiting(6).await;
        // Each iteration ends one call, which lets one more call begin.
        for n_ended in 0..6 {
            assert_eq!(room.upstream.n_requests(), 2 + n_ended);
            gate.step();
            room.upstream.wait_for_requests(3 + n_ended).await;
            room.n_waiting(5 - n_ended).await;
        }
        gate.open();

        for told in all_of(&bobs, &for_bob, 4).await.iter().chain(&all_of(&anns, &for_ann, 4).await) {
            assert_eq!(told["text"], "Hello.");
        }
        assert_eq!(room.upstream.n_requests(), 8);
        room.close().await;
    }

    async fn runs_come_before_candidates(backend) {
        let env = [("TROUPE_WORKERS", "1"), ("TROUPE_MAX_RUNNING_RUNS", "1")];
        let room = CandidateFixture::open_with(backend, &env).await;
        let ear = ws_client_of(&room.stage.bob).await;
        let gate = room.upstream.gate();
        let generation = room.request_as_bob(json!({"count": 2})).await;
        room.upstream.wait_for_requests(1).await;
        room.n_waiting(1).await;

        room.stage.post(&room.stage.ann, "Hello, Ada.").await;
        gate.open();

        all_of(&ear, &generation, 2).await;
        room.upstream.wait_for_requests(3).await;
        let is_candidate = |at| room.upstream.body(at)["messages"].to_string().contains("You write for bob");
        assert_eq!([0, 1, 2].map(is_candidate), [true, false, true]);
        room.close().await;
    }

    async fn a_candidate_that_gets_no_permit_in_time_says_so(backend) {
        let env = [("TROUPE_MAX_RUNNING_RUNS", "1"), ("LLM_FIRST_CHUNK_TIMEOUT_MS", "1000")];
        let room = CandidateFixture::open_with(backend, &env).await;
        let ear = ws_client_of(&room.stage.ann).await;
        let alive = ResponseScript::stream().forever(": ping\n\n", Duration::from_millis(50));
        room.upstream.always(alive);
        room.request_as_bob(json!({"count": 1})).await;
        room.upstream.wait_for_requests(1).await;

        let generation = room.request_as_ann(json!({"count": 1})).await;

        assert_eq!(code(&all_of(&ear, &generation, 1).await[0]), "rate_limited");
        assert_eq!(room.upstream.n_requests(), 1);
        room.close().await;
    }

    async fn a_newer_request_replaces_a_waiting_one(backend) {
        let room = CandidateFixture::open_with(backend, &[("TROUPE_MAX_RUNNING_RUNS", "1")]).await;
        let ear = ws_client_of(&room.stage.ann).await;
        let gate = room.upstream.gate();
        room.request_as_bob(json!({"count": 1})).await;
        room.upstream.wait_for_requests(1).await;
        let older = room.request_as_ann(json!({"count": 4})).await;
        room.n_waiting(4).await;

        let newer = room.request_as_ann(json!({"count": 1})).await;

        for told in all_of(&ear, &older, 4).await {
            assert_eq!(code(&told), "canceled");
        }
        room.n_waiting(1).await;
        gate.open();
        assert_eq!(all_of(&ear, &newer, 1).await[0]["text"], "Hello.");
        assert_eq!(room.upstream.n_requests(), 2);
        room.close().await;
    }

    async fn each_candidate_counts_as_a_post_and_a_refused_wish_as_none(backend) {
        let room = CandidateFixture::open_with(backend, &[("LIMIT_POSTS_PER_MINUTE", "5")]).await;
        room.request_as_bob(json!({"count": 4})).await;

        let wish = json!({"membership_id": room.stage.bobs_seat, "count": 2});

        assert_eq!(room.refusal(&room.stage.bob, wish).await, (429, "rate_limited".to_owned()));
        room.request_as_bob(json!({"count": 1})).await;
        room.close().await;
    }
}
