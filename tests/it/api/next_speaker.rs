//! Tests of the preview of the next speaker over HTTP.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::http_client::{HttpClient, expect, id, root_of};

/// No workers: queued runs stay queued.
const IDLE: &[(&str, &str)] = &[("TROUPE_WORKERS", "0")];

/// Ada, Bob and Cid, in a space with these rules.
struct Fixture {
    app: TestApp,
    ann: HttpClient,
    space: Value,
    conversation: i64,
    memberships: Vec<i64>,
}

impl Fixture {
    async fn create(backend: TestBackend, rules: Value) -> Fixture {
        let app = TestApp::start_with(backend, IDLE).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", rules).await;
        let mut memberships = Vec::new();
        for name in ["Ada", "Bob", "Cid"] {
            let character = ann.create_character(name, None).await;
            memberships.push(id(&ann.add_character(&space, &character).await));
        }
        let conversation = root_of(&space);
        Fixture {
            app,
            ann,
            space,
            conversation,
            memberships,
        }
    }

    async fn preview(&self) -> Value {
        let path = format!("/api/conversations/{}/next_speaker", self.conversation);
        expect(200, self.ann.get(&path).await)
    }

    async fn set(&self, rules: Value) {
        let path = format!("/api/spaces/{}", id(&self.space));
        expect(200, self.ann.patch(&path, rules).await);
    }

    /// Returns the probabilities of Ada, Bob and Cid, rounded to thousandths.
    fn odds(&self, preview: &Value) -> Vec<i64> {
        let all = preview["odds"].as_array().expect("a list");
        let of = |member: &i64| {
            let found = all.iter().find(|it| it["membership_id"] == *member);
            let probability = found.map_or(Some(0.0), |it| it["probability"].as_f64());
            (probability.expect("a number") * 1_000.0).round() as i64
        };
        self.memberships.iter().map(of).collect()
    }

    fn decided(&self, preview: &Value) -> Vec<Value> {
        let all = preview["decided"].as_array().expect("a list").iter();
        all.map(|it| it["membership_id"].clone()).collect()
    }
}

on_sqlite! {
    async fn an_idle_conversation_has_only_odds(backend) {
        let it = Fixture::create(backend, json!({"reply_order": "pooled"})).await;

        let preview = it.preview().await;
        assert_eq!((it.decided(&preview), it.odds(&preview)), (vec![], vec![333, 333, 333]));
        assert_eq!(preview["trigger"], "message");
        it.set(json!({"reply_order": "list"})).await;
        assert_eq!(it.odds(&it.preview().await), [1_000, 0, 0]);
        it.set(json!({"reply_order": "list", "replies_per_turn": "activated"})).await;
        assert_eq!(it.odds(&it.preview().await), [1_000, 1_000, 1_000]);
        it.set(json!({"reply_order": "natural"})).await;
        assert_eq!(it.odds(&it.preview().await), [542, 542, 542]);
        it.set(json!({"reply_order": "manual"})).await;
        let manual = it.preview().await;
        assert_eq!((&manual["trigger"], it.odds(&manual)), (&json!("generate"), vec![333, 333, 333]));
        it.app.close().await;
    }

    async fn the_slots_of_a_round_are_decided_and_the_odds_are_those_after_them(backend) {
        let rules = json!({"reply_order": "list", "replies_per_turn": "activated"});
        let it = Fixture::create(backend, rules).await;
        expect(201, it.ann.post_message(it.conversation, "Hi.", None).await);
        it.set(json!({"replies_per_turn": "one", "auto_mode_enabled": true})).await;

        let preview = it.preview().await;

        let all: Vec<Value> = it.memberships.iter().map(|it| json!(it)).collect();
        assert_eq!(it.decided(&preview), all);
        assert_eq!(preview["decided"][0]["because"], "next by position");
        assert_eq!((&preview["trigger"], it.odds(&preview)), (&json!("auto_mode"), vec![1_000, 0, 0]));
        it.app.close().await;
    }

    async fn a_forced_turn_is_decided_and_a_preview_changes_nothing(backend) {
        let it = Fixture::create(backend, json!({"reply_order": "natural"})).await;
        expect(202, it.ann.generate(it.conversation, Some(it.memberships[1])).await);
        let before = it.ann.conversation(it.conversation).await;

        let preview = it.preview().await;

        assert_eq!(it.decided(&preview), [json!(it.memberships[1])]);
        assert_eq!(it.odds(&preview), [0, 0, 1_000]);
        assert_eq!(it.ann.conversation(it.conversation).await, before);
        it.app.close().await;
    }
}
