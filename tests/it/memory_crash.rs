//! Tests a server that is killed between the commit of messages and the end of learning from them.

use serde_json::{Value, json};

use crate::support::backends::{TestBackend, on_both};
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};
use crate::support::http_client::{expect, id};
use crate::support::poll;
use crate::support::test_space::TestSpace;

const FACT: &str = "My dog is called Pixel, and he loves the old lighthouse.";

/// Opens a space and posts a message from which a model makes a memory.
async fn open_with_fact(backend: TestBackend) -> TestSpace {
    let settings = json!({"reply_order": "manual"});
    let space = TestSpace::open(backend, settings, &["Ada"]).await;
    let mut n = 0;
    // Each answer differs, so that learning twice stores two memories.
    space.upstream.answer_with(move |_| {
        n += 1;
        extraction(n)
    });
    space.post(FACT).await;
    space
}

fn extraction(n: usize) -> ResponseScript {
    let memory = json!({
        "kind": "relation", "content": format!("Ann's dog is called Pixel, says answer {n}."),
        "importance": 0.5, "about": null, "owner": null, "replaces": null, "sources": [1],
    });
    ResponseScript::say(&json!({ "memories": [memory] }).to_string())
}

impl TestSpace {
    async fn learn_now(&self) {
        let path = format!("/api/spaces/{}/memories/learn", id(&self.space));
        let body = json!({"conversation_id": self.conversation});
        expect(202, self.person.post(&path, body).await);
    }

    async fn n_tasks(&self, condition: &str) -> i64 {
        let sql = format!("SELECT CAST(count(*) AS TEXT) FROM memory_tasks WHERE {condition}");
        self.facts().await.number(&sql).await
    }

    async fn memory_contents(&self) -> Vec<String> {
        let path = format!("/api/spaces/{}/memories", id(&self.space));
        let list = expect(200, self.person.get(&path).await);
        let all = list["data"].as_array().expect("a list").iter();
        all.map(|it| Value::as_str(&it["content"]).expect("a text").to_owned())
            .collect()
    }

    async fn wait_until_learned(&self) {
        poll::until("the task is done", async || {
            (self.n_tasks("1 = 1").await == 0).then_some(())
        })
        .await;
    }
}

on_both! {
    async fn a_message_is_learned_once_if_the_server_is_killed_after_its_commit(backend) {
        let mut space = open_with_fact(backend).await;
        assert_eq!(space.n_tasks("status = 'queued' AND attempt = 0").await, 1);

        space.server.kill9();
        assert_eq!(space.n_tasks("status = 'queued' AND attempt = 0").await, 1, "it was learned before");
        space.server.restart().await;
        space.learn_now().await;
        space.wait_until_learned().await;

        assert_eq!(space.memory_contents().await, ["Ann's dog is called Pixel, says answer 1."]);
        space.settle().await;
    }

    async fn a_message_is_learned_once_if_the_server_is_killed_while_it_is_learned(backend) {
        let mut space = open_with_fact(backend).await;
        let gate = HoldPoint::closed();
        space.upstream.next(extraction(0).held_at(&gate));
        space.learn_now().await;
        space.upstream.wait_for_requests(1).await;
        assert_eq!(space.n_tasks("status = 'running'").await, 1);

        space.server.kill9();
        gate.open();
        assert_eq!(space.n_tasks("status = 'running' AND attempt = 1").await, 1);
        space.server.restart().await;
        space.wait_until_learned().await;

        assert_eq!(space.memory_contents().await, ["Ann's dog is called Pixel, says answer 1."]);
        space.settle().await;
    }
}
