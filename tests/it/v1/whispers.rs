//! Tests which prompts contain a whisper, and that people and programs outside its audience find its text
//! nowhere: in no preview, stored prompt, lore activation, memory or answer of `/v1`.

use serde_json::{Value, json};

use super::fixture::V1Fixture;
use super::persona_models::space as model_of;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::database_facts::DatabaseFacts;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::poll;
use crate::support::v1_client::V1Client;

/// The word of the whisper, in no other text.
const CANARY: &str = "canary";
const WHISPER: &str = "The canary sings at noon.";
const MARKED: &str = "(whispered to Ada) The canary sings at noon.";

/// Ada, who heard a whisper of the admin, and Vera, who did not; Bob is a moderator and did not, either.
struct Stage {
    fixture: V1Fixture,
    space: Value,
    root: i64,
    ada: i64,
    vera: i64,
    bob: HttpClient,
}

impl Stage {
    async fn open(backend: TestBackend) -> Stage {
        let fixture = V1Fixture::open(backend).await;
        fixture
            .upstream
            .answer_with(|_| ResponseScript::say("(whispered to Bob) I see."));
        let admin = &fixture.admin;
        let rules = json!({"reply_order": "manual"});
        let space = admin.create_space("The stage", rules).await;
        let mut members = Vec::new();
        for name in ["Ada", "Vera"] {
            let card = expect(201, admin.post("/api/characters", card(name)).await);
            members.push(id(&admin.add_character(&space, &card).await));
        }
        let bob = fixture.app.register("bob").await;
        admin.add_member(id(&space), &bob, "moderator").await;
        let stage = Stage {
            root: root_of(&space),
            ada: members[0],
            vera: members[1],
            space,
            bob,
            fixture,
        };
        stage.whisper(WHISPER).await;
        stage
    }

    async fn whisper(&self, text: &str) -> Value {
        let path = format!("/api/conversations/{}/messages", self.root);
        let body = json!({"content": text, "audience": [self.ada]});
        expect(201, self.fixture.admin.post(&path, body).await)["message"].clone()
    }

    async fn say(&self, text: &str) {
        let admin = &self.fixture.admin;
        expect(201, admin.post_message(self.root, text, None).await);
    }

    /// Lets a member reply; returns the run and what models received meanwhile.
    async fn reply(&self, speaker: i64) -> (Value, String) {
        let before = self.fixture.upstream.n_requests();
        let admin = &self.fixture.admin;
        let run = expect(202, admin.generate(self.root, Some(speaker)).await)["run"].clone();
        poll::until("the run has succeeded", async || {
            let runs = admin.runs(self.root).await;
            let run = runs.iter().find(|it| it["id"] == run["id"])?;
            (run["status"] == "succeeded").then_some(())
        })
        .await;
        (run, self.sent_since(before))
    }

    /// Returns all requests to models since the first `before`.
    fn sent_since(&self, before: usize) -> String {
        let upstream = &self.fixture.upstream;
        let bodies = (before..upstream.n_requests()).map(|it| upstream.body(it).to_string());
        bodies.collect()
    }

    async fn preview(&self, reader: &HttpClient, speaker: i64) -> Value {
        let path = format!(
            "/api/conversations/{}/prompt?speaker_id={speaker}",
            self.root
        );
        expect(200, reader.get(&path).await)
    }
}

/// Returns a card of which a macro repeats the newest message, and whose lore the whisper activates.
fn card(name: &str) -> Value {
    let entry = json!({
        "name": "Birds", "keys": [CANARY], "content": "Birds fly away.", "enabled": true,
        "insertion_order": 10, "extensions": {"position": 0, "sticky": 9},
    });
    json!({
        "name": name, "description": "{{char}} listens.", "personality": "Heard: {{lastMessage}}",
        "character_book": {"name": "Book", "entries": [entry], "scan_depth": 9},
    })
}

fn of_run(run: &Value, what: &str) -> String {
    let id = run["id"].as_str().expect("a run has an id");
    format!("/api/runs/{id}/{what}")
}

/// Asserts that a document contains neither the whisper nor what it activated.
fn assert_unheard(what: &str, document: &Value) {
    let text = document.to_string();
    for word in [CANARY, "whispered to Ada", "Birds"] {
        assert!(!text.contains(word), "{what} contains {word:?}: {text}");
    }
}

on_both! {
    async fn a_whisper_is_only_in_the_prompts_of_characters_that_heard_it(backend) {
        let stage = Stage::open(backend).await;
        stage.say("Good day, all of you.").await;

        let (_, sent) = stage.reply(stage.ada).await;
        assert!(sent.contains(MARKED), "{sent}");
        assert!(sent.contains("Birds fly away."), "{sent}");

        for _ in 0..2 {
            let (_, sent) = stage.reply(stage.vera).await;
            assert!(sent.contains("Good day"), "{sent}");
            assert!(!sent.contains(CANARY), "{sent}");
            assert!(!sent.contains("Birds"), "an effect of Ada's prompt: {sent}");
        }
        let replies = stage.fixture.admin.messages(stage.root).await;
        assert_eq!(replies.last().expect("a reply")["content"], "(whispered to Bob) I see.");
        let of_ada = replies.iter().find(|it| it["space_membership_id"] == json!(stage.ada));
        assert_eq!(of_ada.expect("Ada replied")["content"], "I see.", "without the marker");
        stage.fixture.close().await;
    }

    async fn the_inspector_shows_a_whisper_to_its_audience_alone(backend) {
        let stage = Stage::open(backend).await;
        let admin = &stage.fixture.admin;

        let (whole, shown) = (stage.preview(admin, stage.ada).await, stage.preview(&stage.bob, stage.ada).await);
        assert!(whole.to_string().contains(MARKED), "{whole}");
        assert!(whole.to_string().contains("Heard: The canary"), "{whole}");
        assert_eq!(whole["lore"][0]["name"], "Birds");
        assert_unheard("the preview", &shown);
        assert!(shown.to_string().contains("only as Ada"), "{shown}");
        assert_eq!(shown["total_tokens"], whole["total_tokens"]);
        assert_unheard("the preview of another speaker", &stage.preview(admin, stage.vera).await);

        stage.say("Good day.").await;
        let (public, _) = stage.reply(stage.ada).await;
        let whole = expect(200, admin.get(&of_run(&public, "prompt")).await);
        let shown = expect(200, stage.bob.get(&of_run(&public, "prompt")).await);
        assert!(whole.to_string().contains(MARKED), "{whole}");
        assert_eq!(whole["lore"][0]["name"], "Birds");
        assert_unheard("the stored prompt", &shown);
        assert!(shown.to_string().contains("Good day."), "{shown}");
        assert_eq!(shown["total_tokens"], whole["total_tokens"]);
        assert_unheard("the recalled memories", &expect(200, stage.bob.get(&of_run(&public, "memories")).await));

        let whisper = stage.whisper("The canary is silent.").await;
        let (private, sent) = stage.reply(stage.ada).await;
        assert!(sent.contains("The canary is silent."), "{sent}");
        assert!(expect(200, admin.get(&of_run(&private, "prompt")).await).to_string().contains("is silent"));
        for what in ["prompt", "memories"] {
            assert_eq!(stage.bob.get(&of_run(&private, what)).await.0, 404, "{what}");
        }
        expect(204, admin.delete(&format!("/api/messages/{}", whisper["id"])).await);
        assert_unheard("the stored prompt", &expect(200, stage.bob.get(&of_run(&public, "prompt")).await));
        stage.fixture.close().await;
    }

    async fn memories_that_a_whisper_recalled_are_listed_for_its_audience_alone(backend) {
        let stage = Stage::open(backend).await;
        let admin = &stage.fixture.admin;
        let memory = json!({"content": "A canary lives in the mine.", "kind": "event"});
        expect(201, admin.post(&format!("/api/spaces/{}/memories", stage.space["id"]), memory).await);
        stage.say("Good day.").await;

        let (heard, sent) = stage.reply(stage.ada).await;
        assert!(sent.contains("lives in the mine"), "the whisper recalls it: {sent}");
        stage.say("Who keeps the canary?").await;
        let (unheard, sent) = stage.reply(stage.vera).await;
        assert!(sent.contains("lives in the mine"), "the post recalls it: {sent}");

        for (run, n_of_bob) in [(heard, 0), (unheard, 1)] {
            for (reader, n) in [(admin, 1), (&stage.bob, n_of_bob)] {
                let listed = expect(200, reader.get(&of_run(&run, "memories")).await);
                assert_eq!(listed["data"].as_array().expect("a list").len(), n, "{listed}");
            }
        }
        stage.fixture.close().await;
    }

    async fn a_quotation_of_a_whisper_is_in_the_prompts_of_its_audience_alone(backend) {
        let stage = Stage::open(backend).await;
        let admin = &stage.fixture.admin;
        let whisper = id(&admin.messages(stage.root).await[0]);
        let path = format!("/api/conversations/{}/messages", stage.root);
        let answer = json!({"content": "Aloud.", "reply_to_id": whisper, "audience": null});
        expect(201, admin.post(&path, answer).await);

        let quoted = "> admin: The canary sings at noon.\\nAloud.";
        let (run, sent) = stage.reply(stage.ada).await;
        assert!(sent.contains(quoted), "{sent}");
        let (_, sent) = stage.reply(stage.vera).await;
        assert!(sent.contains("Aloud.") && !sent.contains(CANARY), "{sent}");
        let shown = expect(200, stage.bob.get(&of_run(&run, "prompt")).await);
        assert!(shown.to_string().contains("Aloud."), "{shown}");
        assert_unheard("the stored prompt", &shown);
        assert_unheard("the preview", &stage.preview(&stage.bob, stage.ada).await);
        stage.fixture.close().await;
    }
}

on_sqlite! {
    async fn no_answer_of_v1_contains_a_whisper_for_someone_outside_its_audience(backend) {
        let stage = Stage::open(backend).await;
        stage.say("Good day.").await;
        let program = V1Client::new(&stage.bob).await;
        let query = json!({"conversation_id": stage.root, "query": CANARY, "threshold": 0.1});

        let newest = expect(200, program.post("/memory/query", query.clone()).await);
        assert_eq!(newest["short"].as_array().expect("a list").len(), 1, "{newest}");
        assert_unheard("the newest messages", &newest);
        let heard = expect(200, stage.fixture.program.post("/memory/query", query).await);
        assert!(heard["short"].to_string().contains(WHISPER), "{heard}");

        let before = stage.fixture.upstream.n_requests();
        program.respond(json!({"model": model_of(&stage.space), "input": "What did you hear, Ada?"})).await;
        let sent = stage.sent_since(before);
        assert!(sent.contains("What did you hear"), "{sent}");
        assert!(!sent.contains(CANARY), "{sent}");
        stage.fixture.close().await;
    }

    async fn a_whisper_among_people_is_in_no_prompt(backend) {
        let stage = Stage::open(backend).await;
        let roster = expect(200, stage.bob.get(&format!("/api/spaces/{}/memberships", stage.space["id"])).await);
        let people = roster["data"].as_array().expect("a list").iter();
        let people: Vec<i64> = people.filter(|it| it["kind"] == "human").map(id).collect();
        let path = format!("/api/conversations/{}/messages", stage.root);
        expect(201, stage.bob.post(&path, json!({"content": "The nightingale, too.", "audience": people})).await);

        let (_, sent) = stage.reply(stage.ada).await;
        assert!(!sent.contains("nightingale"), "{sent}");
        let own = people.iter().copied().min().expect("the admin is the first member");
        let candidates = json!({"count": 1, "membership_id": own});
        let path = format!("/api/conversations/{}/copilot_candidates", stage.root);
        let before = stage.fixture.upstream.n_requests();
        let asked = stage.fixture.admin.post(&path, candidates).await;
        assert!(asked.0 < 300, "{asked:?}");
        stage.fixture.upstream.wait_for_requests(before + 1).await;
        let sent = stage.sent_since(before);
        assert!(sent.contains(CANARY), "the admin heard it: {sent}");
        assert!(!sent.contains("nightingale"), "{sent}");
        stage.fixture.close().await;
    }

    async fn the_database_has_no_copy_of_a_whisper_outside_its_message(backend) {
        let stage = Stage::open(backend).await;
        stage.say("Good day.").await;
        stage.reply(stage.ada).await;
        stage.reply(stage.vera).await;

        let mut facts = DatabaseFacts::open(&stage.fixture.app.database).await;
        for (table, column) in [
            ("memories", "content"),
            ("conversation_summaries", "content"),
            ("conversations", "variables"),
        ] {
            let found = format!("SELECT CAST(count(*) AS TEXT) FROM {table} WHERE CAST({column} AS TEXT) LIKE '%{CANARY}%'");
            assert_eq!(facts.number(&found).await, 0, "{table}");
        }
        stage.fixture.close().await;
    }
}
