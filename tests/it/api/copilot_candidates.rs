//! Tests of copilot candidates: suggested texts that are sent only to the requesting user and never
//! stored.

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

/// A space with Ann, Bob and Ada on a server without workers, because candidates need no worker.
pub struct CandidateFixture {
    pub live: LiveFixture,
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
        let live = LiveFixture::open_on(backend, &[&model, env].concat(), |_| {}).await;
        let ada = live.ann.create_character("Ada", None).await;
        live.ann
            .add_character(&json!({"id": live.space}), &ada)
            .await;
        CandidateFixture { live, upstream }
    }

    fn path(&self) -> String {
        let id = self.live.conversation;
        format!("/api/conversations/{id}/copilot_candidates")
    }

    /// Requests candidates as Bob; returns the id of the generation.
    pub async fn request_as_bob(&self, body: Value) -> Value {
        let mut body = body;
        body["membership_id"] = json!(self.live.bobs_seat);
        let answer = expect(202, self.live.bob.post(&self.path(), body).await);
        answer["generation_id"].clone()
    }

    pub async fn request_as_ann(&self, mut body: Value) -> Value {
        body["membership_id"] = json!(self.live.anns_seat);
        let answer = expect(202, self.live.ann.post(&self.path(), body).await);
        answer["generation_id"].clone()
    }

    pub async fn refusal(&self, user: &HttpClient, body: Value) -> (u16, String) {
        let (status, answer) = user.post(&self.path(), body).await;
        (status, code(&answer).to_owned())
    }

    async fn facts(&self) -> DatabaseFacts {
        DatabaseFacts::open(&self.live.house.database).await
    }

    async fn tokens_used(&self) -> i64 {
        let id = self.live.space;
        let used = format!(
            "SELECT CAST(SUM(tokens_used) AS TEXT) FROM conversations WHERE space_id = {id}"
        );
        self.facts().await.number(&used).await
    }

    async fn wait_until_idle(&self) {
        let candidates = &self.live.house.app.engine.candidates;
        poll::until("no candidate is being generated", async || {
            (candidates.count() == 0).then_some(())
        })
        .await;
    }

    pub async fn close(self) {
        self.live.close().await;
    }
}

/// Opens a socket of a user without any subscription.
pub async fn ws_client_of(person: &HttpClient) -> WsClient {
    let client = WsClient::open(person).await;
    // The response shows that the socket is registered.
    assert_eq!(client.call(json!({"op": "ping"})).await["ok"], true);
    client
}

/// Waits for all events of a generation; returns them in the order of the candidates.
pub async fn wait_for_candidates(client: &WsClient, generation: &Value, count: i64) -> Vec<Value> {
    let mut events = Vec::new();
    for index in 0..count {
        let is_it = |it: &Value| it["generation_id"] == *generation && it["index"] == index;
        events.push(client.wait_for("a candidate", is_it).await);
    }
    events
}

fn is_candidate(it: &Value) -> bool {
    let kind = it["type"].as_str().unwrap_or_default();
    kind.starts_with("copilot_candidate")
}

on_sqlite! {
    async fn candidates_reach_all_sockets_of_the_user_and_no_others(backend) {
        let fixture = CandidateFixture::open(backend).await;
        let (first, second) = (ws_client_of(&fixture.live.bob).await, fixture.live.bobs_ws_client().await);
        let anns = WsClient::subscribed(&fixture.live.ann, fixture.live.conversation.0).await;

        let generation = fixture.request_as_bob(json!({"count": 2})).await;

        for client in [&first, &second] {
            for (index, event) in (0..).zip(wait_for_candidates(client, &generation, 2).await) {
                let expected = json!({
                    "type": "copilot_candidate", "generation_id": generation,
                    "membership_id": fixture.live.bobs_seat, "index": index, "text": "Hello.",
                });
                assert_eq!(event, expected);
            }
        }
        anns.call(json!({"op": "ping"})).await;
        assert!(!anns.log().iter().any(is_candidate));
        fixture.close().await;
    }

    async fn candidates_store_nothing_and_do_not_change_the_schedule(backend) {
        let fixture = CandidateFixture::open(backend).await;
        // The run stays queued because there are no workers.
        fixture.live.post(&fixture.live.ann, "Hello, Bob.").await;
        let client = fixture.live.bobs_ws_client().await;
        let is_stored = |it: &String| !it.starts_with("sessions");
        let mut facts = fixture.facts().await;
        let before = facts.everything().await;

        let generation = fixture.request_as_bob(json!({"count": 4})).await;
        wait_for_candidates(&client, &generation, 4).await;
        fixture.wait_until_idle().await;

        assert_ne!(fixture.tokens_used().await, 0);
        // They change only the count of tokens.
        facts.execute("UPDATE conversations SET tokens_used = 0").await;
        let after = facts.everything().await;
        let stored = |all: &[String]| all.iter().filter(|it| is_stored(it)).cloned().collect::<Vec<_>>();
        assert_eq!(stored(&before), stored(&after));
        fixture.close().await;
    }

    async fn candidates_are_written_as_the_user_and_follow_the_instruction(backend) {
        let fixture = CandidateFixture::open(backend).await;
        let membership = format!("/api/memberships/{}", fixture.live.bobs_seat);
        expect(200, fixture.live.bob.patch(&membership, json!({"persona": "A shy baker."})).await);
        fixture.live.post(&fixture.live.ann, "Who wants tea?").await;
        fixture.upstream.reply_with("bob: With pleasure.\nAda: I do.");
        let client = ws_client_of(&fixture.live.bob).await;

        let generation = fixture.request_as_bob(json!({"count": 1, "instruction": " Say yes. "})).await;

        assert_eq!(wait_for_candidates(&client, &generation, 1).await[0]["text"], "With pleasure.");
        let body = fixture.upstream.body(0);
        let messages = body["messages"].as_array().expect("the request contains messages").clone();
        let text = |it: &Value| it["content"].as_str().unwrap_or_default().to_owned();
        let (first, last) = (
            text(&messages[0]),
            text(messages.last().expect("the prompt has messages")),
        );
        assert!(first.contains("You write for bob"), "{first}");
        assert!(first.contains("[Persona of bob]\nA shy baker.\n[End of bob]"), "{first}");
        assert!(last.ends_with("[bob asks for this: Say yes.]"), "{last}");
        assert!(messages.iter().any(|it| text(it).contains("Who wants tea?")), "{messages:?}");
        assert_eq!(body["max_tokens"], 200);
        fixture.close().await;
    }

    async fn a_newer_request_replaces_the_older_one(backend) {
        let fixture = CandidateFixture::open(backend).await;
        let client = ws_client_of(&fixture.live.bob).await;
        fixture.upstream.next(ResponseScript::hang_before_first_chunk());
        let older = fixture.request_as_bob(json!({"count": 1})).await;
        fixture.upstream.wait_for_requests(1).await;

        let newer = fixture.request_as_bob(json!({"count": 1})).await;

        fixture.upstream.wait_for_disconnect(0).await;
        let dropped = &wait_for_candidates(&client, &older, 1).await[0];
        assert_eq!((dropped["type"].as_str(), code(dropped)), (Some("copilot_candidate_error"), "canceled"));
        assert_eq!(wait_for_candidates(&client, &newer, 1).await[0]["text"], "Hello.");
        fixture.wait_until_idle().await;
        fixture.close().await;
    }

    async fn generation_stops_when_the_last_socket_of_the_user_closes(backend) {
        let fixture = CandidateFixture::open(backend).await;
        let (first, second) = (ws_client_of(&fixture.live.bob).await, ws_client_of(&fixture.live.bob).await);
        fixture.upstream.always(ResponseScript::hang_before_first_chunk());
        fixture.request_as_bob(json!({"count": 1})).await;
        fixture.upstream.wait_for_requests(1).await;

        drop(first);
        assert_eq!(second.call(json!({"op": "ping"})).await["ok"], true);
        assert_eq!(fixture.live.house.app.engine.candidates.count(), 1);
        drop(second);

        fixture.upstream.wait_for_disconnect(0).await;
        fixture.wait_until_idle().await;
        fixture.close().await;
    }

    async fn generation_stops_for_a_removed_member(backend) {
        let fixture = CandidateFixture::open(backend).await;
        let client = ws_client_of(&fixture.live.bob).await;
        fixture.upstream.always(ResponseScript::hang_before_first_chunk());
        let generation = fixture.request_as_bob(json!({"count": 1})).await;
        fixture.upstream.wait_for_requests(1).await;

        let membership = format!("/api/memberships/{}", fixture.live.bobs_seat);
        expect(204, fixture.live.ann.delete(&membership).await);

        fixture.upstream.wait_for_disconnect(0).await;
        assert_eq!(code(&wait_for_candidates(&client, &generation, 1).await[0]), "canceled");
        fixture.close().await;
    }

    async fn a_text_for_a_member_removed_on_another_node_is_not_sent(backend) {
        let fixture = CandidateFixture::open(backend).await;
        let client = ws_client_of(&fixture.live.bob).await;
        let gate = fixture.upstream.gate();
        let generation = fixture.request_as_bob(json!({"count": 1})).await;
        fixture.upstream.wait_for_requests(1).await;

        let remove = format!(
            "UPDATE space_memberships SET status = 'removed' WHERE id = {}",
            fixture.live.bobs_seat
        );
        fixture.facts().await.execute(&remove).await;
        gate.open();

        assert_eq!(code(&wait_for_candidates(&client, &generation, 1).await[0]), "canceled");
        fixture.close().await;
    }

    async fn generation_stops_when_the_space_is_archived(backend) {
        let fixture = CandidateFixture::open(backend).await;
        let client = ws_client_of(&fixture.live.bob).await;
        fixture.upstream.always(ResponseScript::hang_before_first_chunk());
        let generation = fixture.request_as_bob(json!({"count": 1})).await;
        fixture.upstream.wait_for_requests(1).await;

        let space = format!("/api/spaces/{}", fixture.live.space);
        expect(200, fixture.live.ann.patch(&space, json!({"status": "archived"})).await);

        assert_eq!(code(&wait_for_candidates(&client, &generation, 1).await[0]), "canceled");
        fixture.close().await;
    }

    async fn candidates_use_tokens_of_the_space_and_respect_its_limit(backend) {
        let fixture = CandidateFixture::open(backend).await;
        let client = ws_client_of(&fixture.live.bob).await;
        fixture.upstream.reply_with("One two three.");
        let generation = fixture.request_as_bob(json!({"count": 3})).await;
        wait_for_candidates(&client, &generation, 3).await;
        assert_eq!(fixture.tokens_used().await, 30);

        let space = format!("/api/spaces/{}", fixture.live.space);
        expect(200, fixture.live.ann.patch(&space, json!({"token_limit": 30})).await);
        let generation = fixture.request_as_bob(json!({"count": 2})).await;

        for event in wait_for_candidates(&client, &generation, 2).await {
            assert_eq!(code(&event), "token_limit_exceeded");
        }
        assert_eq!(fixture.upstream.n_requests(), 3);
        fixture.close().await;
    }

    async fn a_candidate_without_reported_usage_is_estimated(backend) {
        let fixture = CandidateFixture::open(backend).await;
        let client = ws_client_of(&fixture.live.bob).await;
        fixture.upstream.always(ResponseScript::stream().role().words("One two three.").finish("stop").done());

        let generation = fixture.request_as_bob(json!({"count": 1})).await;
        wait_for_candidates(&client, &generation, 1).await;

        let body = fixture.upstream.body(0);
        let messages = body["messages"].as_array().expect("the request contains messages").iter();
        let sent: i64 = messages.map(|it| tokens::count(it["content"].as_str().unwrap_or_default())).sum();
        assert_eq!(fixture.tokens_used().await, sent + tokens::count("One two three."));
        fixture.close().await;
    }

    async fn each_candidate_fails_alone_with_its_own_error(backend) {
        let fixture = CandidateFixture::open(backend).await;
        let client = ws_client_of(&fixture.live.bob).await;
        fixture.upstream.next(ResponseScript::status(400));

        let generation = fixture.request_as_bob(json!({"count": 2})).await;

        let events = wait_for_candidates(&client, &generation, 2).await;
        let failed: Vec<_> = events.iter().filter(|it| !it["error"].is_null()).collect();
        assert_eq!((failed.len(), code(failed[0])), (1, "upstream_error"));
        assert!(failed[0]["error"]["message"].as_str().is_some_and(|it| it.contains("Scripted 400")));
        fixture.close().await;
    }

    async fn without_a_provider_every_candidate_fails(backend) {
        let fixture = CandidateFixture::open(backend).await;
        let client = ws_client_of(&fixture.live.bob).await;
        fixture.facts().await.execute("UPDATE llm_providers SET disabled = TRUE").await;

        let generation = fixture.request_as_bob(json!({"count": 2})).await;

        for event in wait_for_candidates(&client, &generation, 2).await {
            assert_eq!(code(&event), "no_provider");
        }
        fixture.close().await;
    }

    async fn a_user_requests_candidates_only_for_their_own_membership_that_may_post(backend) {
        let fixture = CandidateFixture::open(backend).await;
        let (ann, bob) = (&fixture.live.ann, &fixture.live.bob);
        let memberships = expect(200, ann.get(&format!("/api/spaces/{}/memberships", fixture.live.space)).await);
        let ada = id(&memberships["data"][2]);

        for another in [fixture.live.bobs_seat, ada, 999] {
            let body = json!({"membership_id": another, "count": 1});
            assert_eq!(
                fixture.refusal(ann, body).await,
                (403, "forbidden".to_owned()),
                "{another}"
            );
        }
        let membership = format!("/api/memberships/{}", fixture.live.bobs_seat);
        expect(200, ann.patch(&membership, json!({"participation": "observer"})).await);
        let body = json!({"membership_id": fixture.live.bobs_seat, "count": 1});
        assert_eq!(fixture.refusal(bob, body).await, (403, "forbidden".to_owned()));
        assert_eq!(fixture.upstream.n_requests(), 0);
        fixture.close().await;
    }

    async fn a_request_is_for_one_to_four_texts_with_an_instruction_of_limited_length(backend) {
        let fixture = CandidateFixture::open(backend).await;
        let ann = &fixture.live.ann;
        let invalid = (422, "invalid_value".to_owned());
        for count in [0, 5, -1] {
            let body = json!({"membership_id": fixture.live.anns_seat, "count": count});
            assert_eq!(fixture.refusal(ann, body).await, invalid, "{count}");
        }
        let body = json!({"membership_id": fixture.live.anns_seat, "count": 1, "instruction": "x".repeat(2_001)});
        assert_eq!(fixture.refusal(ann, body).await, invalid);
        fixture.close().await;
    }

    async fn candidate_requests_count_as_posts(backend) {
        let fixture =
            CandidateFixture::open_with(backend, &[("LIMIT_POSTS_PER_MINUTE", "2")]).await;
        fixture.live.post(&fixture.live.bob, "Hello.").await;
        fixture.request_as_bob(json!({"count": 1})).await;

        let body = json!({"membership_id": fixture.live.bobs_seat, "count": 1});

        assert_eq!(
            fixture.refusal(&fixture.live.bob, body).await,
            (429, "rate_limited".to_owned())
        );
        fixture.close().await;
    }
}
