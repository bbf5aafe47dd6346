//! Tests of pruning: which memories are deleted, and that a dry run only counts.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_both};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id};
use crate::support::http_response::refusal;

struct PruneFixture {
    app: TestApp,
    owner: HttpClient,
    path: String,
    facts: DatabaseFacts,
}

impl PruneFixture {
    async fn open(backend: TestBackend) -> Self {
        let app = TestApp::start(backend).await;
        let owner = app.admin().await;
        let space = owner.create_space("Harbor", json!({})).await;
        Self {
            path: format!("/api/spaces/{}/memories", id(&space)),
            facts: DatabaseFacts::open(&app.database).await,
            owner,
            app,
        }
    }

    async fn remember(&self, content: &str, importance: f64) -> i64 {
        let body = json!({"content": content, "kind": "event", "importance": importance});
        id(&expect(201, self.owner.post(&self.path, body).await))
    }

    async fn prune(&self, body: Value) -> u64 {
        let path = format!("{}/prune", self.path);
        let pruned = expect(200, self.owner.post(&path, body).await);
        pruned["deleted"].as_u64().expect("a number")
    }

    /// Returns the contents that are left, in alphabetical order.
    async fn contents(&self) -> Vec<String> {
        let list = expect(200, self.owner.get(&self.path).await);
        let all = list["data"].as_array().unwrap().iter();
        let mut contents: Vec<_> = all
            .map(|it| it["content"].as_str().unwrap().to_owned())
            .collect();
        contents.sort();
        contents
    }

    /// Moves the creation of a memory into the past.
    async fn make_older(&mut self, memory: i64, days: i64) {
        let ms = days * 24 * 60 * 60 * 1_000;
        let sql = format!("UPDATE memories SET created_at = created_at - {ms} WHERE id = {memory}");
        self.facts.execute(&sql).await;
    }
}

on_both! {
    async fn a_dry_run_deletes_nothing_and_counts(backend) {
        let it = PruneFixture::open(backend).await;
        for n in 0..4 {
            it.remember(&format!("Fact {n}."), 0.2).await;
        }

        assert_eq!(it.prune(json!({})).await, 4);
        assert_eq!(it.prune(json!({"keep": 3, "dry_run": true})).await, 1);
        assert_eq!(it.contents().await.len(), 4);

        assert_eq!(it.prune(json!({"keep": 3, "dry_run": false})).await, 1);
        assert_eq!(it.contents().await.len(), 3);
        assert_eq!(it.prune(json!({"keep": 3, "dry_run": false})).await, 0);
        it.app.close().await;
    }

    async fn pinned_and_important_memories_are_kept(backend) {
        let it = PruneFixture::open(backend).await;
        let pinned = it.remember("Pinned.", 0.1).await;
        let pin = json!({"pinned": true, "expected_version": 1});
        expect(200, it.owner.patch(&format!("{}/{pinned}", it.path), pin).await);
        for (content, importance) in [("At 0.9.", 0.9), ("At 0.91.", 0.91), ("At 0.4.", 0.4), ("At 0.6.", 0.6)] {
            it.remember(content, importance).await;
        }

        assert_eq!(it.prune(json!({"keep_importance": 0.5, "dry_run": false})).await, 1);
        assert_eq!(it.contents().await, ["At 0.6.", "At 0.9.", "At 0.91.", "Pinned."]);

        assert_eq!(it.prune(json!({"dry_run": false})).await, 2);
        assert_eq!(it.contents().await, ["At 0.91.", "Pinned."]);
        it.app.close().await;
    }

    async fn the_least_valuable_memories_are_deleted_first(backend) {
        let mut it = PruneFixture::open(backend).await;
        let recalled = it.remember("Recalled long ago.", 0.5).await;
        let newer = it.remember("Recalled lately.", 0.5).await;
        let old = it.remember("Old, never recalled.", 0.5).await;
        it.remember("New, never recalled.", 0.5).await;
        it.remember("Trivial.", 0.1).await;
        it.make_older(old, 1).await;
        it.facts.execute(&format!("UPDATE memories SET last_recalled_at = 1000 WHERE id = {recalled}")).await;
        it.facts.execute(&format!("UPDATE memories SET last_recalled_at = 2000 WHERE id = {newer}")).await;

        let mut order = Vec::new();
        for keep in (0..5).rev() {
            let before = it.contents().await;
            assert_eq!(it.prune(json!({"keep": keep, "dry_run": false})).await, 1);
            let after = it.contents().await;
            order.extend(before.into_iter().filter(|it| !after.contains(it)));
        }

        assert_eq!(order, ["Trivial.", "Old, never recalled.", "New, never recalled.", "Recalled long ago.", "Recalled lately."]);
        it.app.close().await;
    }

    async fn only_memories_that_are_old_enough_are_deleted(backend) {
        let mut it = PruneFixture::open(backend).await;
        for (content, days) in [("Ten days.", 10), ("Thirty days.", 30), ("Today.", 0)] {
            let memory = it.remember(content, 0.2).await;
            it.make_older(memory, days).await;
        }

        assert_eq!(it.prune(json!({"older_than_days": 40, "dry_run": false})).await, 0);
        assert_eq!(it.prune(json!({"older_than_days": 9, "keep": 2, "dry_run": false})).await, 1);
        assert_eq!(it.prune(json!({"older_than_days": 1, "dry_run": false})).await, 1);

        assert_eq!(it.contents().await, ["Today."]);
        it.app.close().await;
    }

    async fn a_pruned_memory_is_found_by_no_search(backend) {
        let it = PruneFixture::open(backend).await;
        it.remember("The lighthouse keeper fears the sea.", 0.2).await;
        let search = format!("{}?q=lighthouse%20keeper", it.path);
        assert_eq!(expect(200, it.owner.get(&search).await)["data"].as_array().unwrap().len(), 1);

        it.prune(json!({"dry_run": false})).await;

        assert_eq!(expect(200, it.owner.get(&search).await)["data"], json!([]));
        // The same content can be stored again.
        it.remember("The lighthouse keeper fears the sea.", 0.2).await;
        it.app.close().await;
    }

    async fn an_invalid_rule_is_named(backend) {
        let it = PruneFixture::open(backend).await;
        let path = format!("{}/prune", it.path);

        for (body, field) in [
            (json!({"older_than_days": -1}), "older_than_days"),
            (json!({"keep": -1}), "keep"),
            (json!({"keep_importance": 2}), "keep_importance"),
        ] {
            let refused = it.owner.post(&path, body).await;
            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()));
            assert_eq!(refused.1["error"]["param"], field);
        }
        it.app.close().await;
    }
}
