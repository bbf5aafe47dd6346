//! Copilot candidates are texts that a user might post: sent to that user only and never stored.

use llm::tokens;
use serde_json::{Value, json};

use crate::live::fixture::{LiveFixture, code};
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::poll;
use crate::support::ws_client::WsClient;

/// A space with Ann, Bob and Ada on a server without workers: candidates do not need a worker.
pub struct CandidateFixture {
    pub stage: LiveFixture,
    pub upstream: FakeProvider,
}

impl CandidateFixture {
    async fn open(backend: TestBackend) -> CandidateFixture {
        CandidateFixture::open_with(backend, &[]).await
    }

    pub async fn open_with(backend: TestBackend, env: &[(&str, &str)]) -> CandidateFixture {
        let upstream = FakeProvider::start().await;
        let base_url = upstream.base_url();
        let model = [
            ("TROUPE_LLM_BASE_URL", base_url.as_str()),
            ("TROUPE_LLM_MODEL", "scripted"),
            ("TROUPE_ALLOW_PRIVATE_PROVIDERS", "true"),
        ];
        let stage = LiveFixture::open_on(backend, &[&model, env].concat(), |_| {}).await;
        let ada = stage.ann.create_character("Ada", None).await;
        stage
            .ann
            .add_character(&json!({"id": stage.space}), &ada)
            .await;
        CandidateFixture { stage, upstream }
    }

    fn path(&self) -> String {
        let id = self.stage.conversation;
        format!("/api/conversations/{id}/copilot_candidates")
    }

    /// Requests candidates as Bob; returns the id of the generation.
    pub async fn request_as_bob(&self, wish: Value) -> Value {
        let mut wish = wish;
        wish["membership_id"] = json!(self.stage.bobs_seat);
        let answer = expect(202, self.stage.bob.post(&self.path(), wish).await);
        answer["generation_id"].clone()
    }

    pub async fn request_as_ann(&self, mut wish: Value) -> Value {
        wish["membership_id"] = json!(self.stage.anns_seat);
        let answer = expect(202, self.stage.ann.post(&self.path(), wish).await);
        answer["generation_id"].clone()
    }

    pub async fn refusal(&self, who: &HttpClient, wish: Value) -> (u16, String) {
        let (status, answer) = who.post(&self.path(), wish).await;
        (status, code(&answer).to_owned())
    }

    async fn facts(&self) -> DatabaseFacts {
        DatabaseFacts::open(&self.stage.house.database).await
    }

    async fn tokens_used(&self) -> i64 {
        let id = self.stage.space;
        let used = format!("SELECT CAST(tokens_used AS TEXT) FROM spaces WHERE id = {id}");
        self.facts().await.number(&used).await
    }

    async fn wait_until_over(&self) {
        let candidates = &self.stage.house.app.engine.candidates;
        poll::until("nothing is written", async || {
            (candidates.count() == 0).then_some(())
        })
        .await;
    }

    pub async fn close(self) {
        self.stage.close().await;
    }
}

/// Opens Bob's socket without any subscription.
pub async fn ws_client_of(person: &HttpClient) -> WsClient {
    let ear = WsClient::open(person).await;
    // The answer shows that the socket is registered.
    assert_eq!(ear.call(json!({"op": "ping"})).await["ok"], true);
    ear
}

/// Waits for all events of a generation; returns them in the order of the candidates.
pub async fn all_of(ear: &WsClient, generation: &Value, count: i64) -> Vec<Value> {
    let mut told = Vec::new();
    for index in 0..count {
        let is_it = |it: &Value| it["generation_id"] == *generation && it["index"] == index;
        told.push(ear.wait_for("a candidate", is_it).await);
    }
    told
}

fn is_candidate(it: &Value) -> bool {
    let told = it["type"].as_str().unwrap_or_default();
    told.starts_with("copilot_candidate")
}

on_sqlite! {
    async fn candidates_reach_all_sockets_of_the_person_and_no_others(backend) {
        let room = CandidateFixture::open(backend).await;
        let (first, second) = (ws_client_of(&room.stage.bob).await, room.stage.bobs_ws_client().await);
        let anns = WsClient::subscribed(&room.stage.ann, room.stage.conversation.0).await;

        let generation = room.request_as_bob(json!({"count": 2})).await;

        for ear in [&first, &second] {
            for (index, told) in (0..).zip(all_of(ear, &generation, 2).await) {
                let expected = json!({
                    "type": "copilot_candidate", "generation_id": generation,
                    "membership_id": room.stage.bobs_seat, "index": index, "text": "Hello.",
                });
                assert_eq!(told, expected);
            }
        }
        anns.call(json!({"op": "ping"})).await;
        assert!(!anns.log().iter().any(is_candidate));
        room.close().await;
    }

    async fn candidates_store_nothing_and_leave_the_schedule_alone(backend) {
        let room = CandidateFixture::open(backend).await;
        room.stage.post(&room.stage.ann, "Hello, Bob.").await; // stays queued: there are no workers
        let ear = room.stage.bobs_ws_client().await;
        let is_stored = |it: &String| !it.starts_with("spaces") && !it.starts_with("sessions");
        let before = room.facts().await.everything().await;

        let generation = room.request_as_bob(json!({"count": 4})).await;
        all_of(&ear, &generation, 4).await;
        room.wait_until_over().await;

        let after = room.facts().await.everything().await;
        let stored = |all: &[String]| all.iter().filter(|it| is_stored(it)).cloned().collect::<Vec<_>>();
        assert_eq!(stored(&before), stored(&after));
        room.close().await;
    }

    async fn candidates_are_written_as_the_person_and_as_they_ask(backend) {
        let room = CandidateFixture::open(backend).await;
        let seat = format!("/api/memberships/{}", room.stage.bobs_seat);
        expect(200, room.stage.bob.patch(&seat, json!({"persona": "A shy baker."})).await);
        room.stage.post(&room.stage.ann, "Who wants tea?").await;
        room.upstream.reply_with("bob: With pleasure.\nAda: I do.");
        let ear = ws_client_of(&room.stage.bob).await;

        let generation = room.request_as_bob(json!({"count": 1, "instruction": " Say yes. "})).await;

        assert_eq!(all_of(&ear, &generation, 1).await[0]["text"], "With pleasure.");
        let body = room.upstream.body(0);
        let messages = body["messages"].as_array().expect("a prompt").clone();
        let text = |it: &Value| it["content"].as_str().unwrap_or_default().to_owned();
        let (first, last) = (text(&messages[0]), text(messages.last().expect("some")));
        assert!(first.contains("You write for bob"), "{first}");
        assert!(first.contains("About bob: A shy baker."), "{first}");
        assert!(last.ends_with("[bob asks for this: Say yes.]"), "{last}");
        assert!(messages.iter().any(|it| text(it).contains("Who wants tea?")), "{messages:?}");
        assert_eq!(body["max_tokens"], 200);
        room.close().await;
    }

    async fn a_newer_request_replaces_the_older_one(backend) {
        let room = CandidateFixture::open(backend).await;
        let ear = ws_client_of(&room.stage.bob).await;
        room.upstream.next(ResponseScript::hang_before_first_chunk());
        let older = room.request_as_bob(json!({"count": 1})).await;
        room.upstream.wait_for_requests(1).await;

        let newer = room.request_as_bob(json!({"count": 1})).await;

        room.upstream.wait_for_disconnect(0).await;
        let dropped = &all_of(&ear, &older, 1).await[0];
        assert_eq!((dropped["type"].as_str(), code(dropped)), (Some("copilot_candidate_error"), "canceled"));
        assert_eq!(all_of(&ear, &newer, 1).await[0]["text"], "Hello.");
        room.wait_until_over().await;
        room.close().await;
    }

    async fn nothing_is_written_on_when_the_last_socket_of_the_person_has_gone(backend) {
        let room = CandidateFixture::open(backend).await;
        let (first, second) = (ws_client_of(&room.stage.bob).await, ws_client_of(&room.stage.bob).await);
        room.upstream.always(ResponseScript::hang_before_first_chunk());
        room.request_as_bob(json!({"count": 1})).await;
        room.upstream.wait_for_requests(1).await;

        drop(first);
        assert_eq!(second.call(json!({"op": "ping"})).await["ok"], true);
        assert_eq!(room.stage.house.app.engine.candidates.count(), 1);
        drop(second);

        room.upstream.wait_for_disconnect(0).await;
        room.wait_until_over().await;
        room.close().await;
    }

    async fn generation_stops_for_a_removed_member(backend) {
        let room = CandidateFixture::open(backend).await;
        let ear = ws_client_of(&room.stage.bob).await;
        room.upstream.always(ResponseScript::hang_before_first_chunk());
        let generation = room.request_as_bob(json!({"count": 1})).await;
        room.upstream.wait_for_requests(1).await;

        let seat = format!("/api/memberships/{}", room.stage.bobs_seat);
        expect(204, room.stage.ann.delete(&seat).await);

        room.upstream.wait_for_disconnect(0).await;
        assert_eq!(code(&all_of(&ear, &generation, 1).await[0]), "canceled");
        room.close().await;
    }

    async fn a_text_for_a_member_removed_on_another_node_is_not_sent(backend) {
        let room = CandidateFixture::open(backend).await;
        let ear = ws_client_of(&room.stage.bob).await;
        let gate = room.upstream.gate();
        let generation = room.request_as_bob(json!({"count": 1})).await;
        room.upstream.wait_for_requests(1).await;

        let lost = format!(
            "UPDATE space_memberships SET status = 'removed' WHERE id = {}",
            room.stage.bobs_seat
        );
        room.facts().await.execute(&lost).await;
        gate.open();

        assert_eq!(code(&all_of(&ear, &generation, 1).await[0]), "canceled");
        room.close().await;
    }

    async fn nothing_is_written_on_in_a_space_that_is_archived(backend) {
        let room = CandidateFixture::open(backend).await;
        let ear = ws_client_of(&room.stage.bob).await;
        room.upstream.always(ResponseScript::hang_before_first_chunk());
        let generation = room.request_as_bob(json!({"count": 1})).await;
        room.upstream.wait_for_requests(1).await;

        let space = format!("/api/spaces/{}", room.stage.space);
        expect(200, room.stage.ann.patch(&space, json!({"status": "archived"})).await);

        assert_eq!(code(&all_of(&ear, &generation, 1).await[0]), "canceled");
        room.close().await;
    }

    async fn what_candidates_cost_counts_and_the_limit_of_the_space_holds(backend) {
        let room = CandidateFixture::open(backend).await;
        let ear = ws_client_of(&room.stage.bob).await;
        room.upstream.reply_with("One two three.");
        let generation = room.request_as_bob(json!({"count": 3})).await;
        all_of(&ear, &generation, 3).await;
        assert_eq!(room.tokens_used().await, 30);

        let space = format!("/api/spaces/{}", room.stage.space);
        expect(200, room.stage.ann.patch(&space, json!({"token_limit": 30})).await);
        let generation = room.request_as_bob(json!({"count": 2})).await;

        for told in all_of(&ear, &generation, 2).await {
            assert_eq!(code(&told), "token_limit_exceeded");
        }
        assert_eq!(room.upstream.n_requests(), 3);
        room.close().await;
    }

    async fn a_candidate_without_reported_usage_is_estimated(backend) {
        let room = CandidateFixture::open(backend).await;
        let ear = ws_client_of(&room.stage.bob).await;
        room.upstream.always(ResponseScript::stream().role().words("One two three.").finish("stop").done());

        let generation = room.request_as_bob(json!({"count": 1})).await;
        all_of(&ear, &generation, 1).await;

        let body = room.upstream.body(0);
        let messages = body["messages"].as_array().expect("a prompt").iter();
        let sent: i64 = messages.map(|it| tokens::count(it["content"].as_str().unwrap_or_default())).sum();
        assert_eq!(room.tokens_used().await, sent + tokens::count("One two three."));
        room.close().await;
    }

    async fn each_candidate_fails_alone_and_says_why(backend) {
        let room = CandidateFixture::open(backend).await;
        let ear = ws_client_of(&room.stage.bob).await;
        room.upstream.next(ResponseScript::status(400));

        let generation = room.request_as_bob(json!({"count": 2})).await;

        let told = all_of(&ear, &generation, 2).await;
        let failed: Vec<_> = told.iter().filter(|it| !it["error"].is_null()).collect();
        assert_eq!((failed.len(), code(failed[0])), (1, "upstream_error"));
        assert!(failed[0]["error"]["message"].as_str().is_some_and(|it| it.contains("Scripted 400")));
        room.close().await;
    }

    async fn without_a_model_every_candidate_says_so(backend) {
        let room = CandidateFixture::open(backend).await;
        let ear = ws_client_of(&room.stage.bob).await;
        room.facts().await.execute("UPDATE llm_providers SET disabled = TRUE").await;

        let generation = room.request_as_bob(json!({"count": 2})).await;

        for told in all_of(&ear, &generation, 2).await {
            assert_eq!(code(&told), "no_provider");
        }
        room.close().await;
    }

    async fn one_asks_for_oneself_alone_and_with_a_voice(backend) {
        let room = CandidateFixture::open(backend).await;
        let (ann, bob) = (&room.stage.ann, &room.stage.bob);
        let seats = expect(200, ann.get(&format!("/api/spaces/{}/memberships", room.stage.space)).await);
        let ada = id(&seats["data"][2]);

        for another in [room.stage.bobs_seat, ada, 999] {
            let wish = json!({"membership_id": another, "count": 1});
            assert_eq!(room.refusal(ann, wish).await, (403, "forbidden".to_owned()), "{another}");
        }
        let seat = format!("/api/memberships/{}", room.stage.bobs_seat);
        expect(200, ann.patch(&seat, json!({"participation": "observer"})).await);
        let wish = json!({"membership_id": room.stage.bobs_seat, "count": 1});
        assert_eq!(room.refusal(bob, wish).await, (403, "forbidden".to_owned()));
        assert_eq!(room.upstream.n_requests(), 0);
        room.close().await;
    }

    async fn a_wish_is_for_one_to_four_texts_and_an_instruction_of_some_length(backend) {
        let room = CandidateFixture::open(backend).await;
        let ann = &room.stage.ann;
        let invalid = (422, "invalid_value".to_owned());
        for count in [0, 5, -1] {
            let wish = json!({"membership_id": room.stage.anns_seat, "count": count});
            assert_eq!(room.refusal(ann, wish).await, invalid, "{count}");
        }
        let wish = json!({"membership_id": room.stage.anns_seat, "count": 1, "instruction": "x".repeat(2_001)});
        assert_eq!(room.refusal(ann, wish).await, invalid);
        room.close().await;
    }

    async fn wishes_count_as_posts(backend) {
        let room = CandidateFixture::open_with(backend, &[("LIMIT_POSTS_PER_MINUTE", "2")]).await;
        room.stage.post(&room.stage.bob, "Hello.").await;
        room.request_as_bob(json!({"count": 1})).await;

        let wish = json!({"membership_id": room.stage.bobs_seat, "count": 1});

        assert_eq!(room.refusal(&room.stage.bob, wish).await, (429, "rate_limited".to_owned()));
        room.close().await;
    }
}
