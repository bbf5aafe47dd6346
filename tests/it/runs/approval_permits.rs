//! Tests that runs which wait for a tool approval return their permits and acquire them again in
//! order.

use serde_json::{Value, json};

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::fake_provider::script::ResponseScript;
use crate::support::http_client::{expect, id, root_of};
use crate::support::poll;
use crate::support::test_space::TestSpace;

const ROLL: (&str, &str) = ("troupe_dice", "{\"roll\":\"3d1+4\"}");

/// Ann's space, in which rolling dice needs approval, on a node with `n_permits` permits.
async fn open_space(backend: TestBackend, n_permits: &str) -> TestSpace {
    let env = [
        ("TROUPE_MAX_RUNNING_RUNS", n_permits),
        ("TROUPE_MAX_RUNNING_PER_PROVIDER", n_permits),
    ];
    TestSpace::open_with(backend, with_approval(), &["Mina"], &env).await
}

fn with_approval() -> Value {
    json!({"settings": {"tools": {"dice": "with_approval"}}})
}

/// A model that calls dice once and then reports the result.
fn rolls_once(body: &Value) -> ResponseScript {
    match (body.get("tools").is_some(), answers(body).is_empty()) {
        (true, true) => ResponseScript::calls(&[("c1", ROLL.0, ROLL.1)]),
        (true, false) => ResponseScript::say("Seven!"),
        (false, _) => ResponseScript::say("Hello."),
    }
}

/// The tool outputs that the model received.
fn answers(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap().iter();
    let answers = messages.filter(|it| it["role"] == "tool");
    answers
        .map(|it| it["content"].as_str().unwrap().to_owned())
        .collect()
}

impl TestSpace {
    /// The conversation of another space with a character of its own.
    async fn another_space(&self, name: &str, settings: Value) -> i64 {
        let space = self.person.create_space(name, settings).await;
        let character = self.person.create_character(name, None).await;
        self.person.add_character(&space, &character).await;
        root_of(&space)
    }

    async fn post_in(&self, conversation: i64) {
        expect(
            201,
            self.person
                .post_message(conversation, "Roll, please.", None)
                .await,
        );
    }

    /// Waits until a conversation has `n` open approval requests, and returns them.
    async fn open_approvals(&self, conversation: i64, n: usize) -> Vec<Value> {
        let path = format!("/api/conversations/{conversation}/tool_approvals");
        poll::until("the approvals are open", async || {
            let open = expect(200, self.person.get(&path).await);
            let open = open["data"].as_array().unwrap().clone();
            (open.len() == n).then_some(open)
        })
        .await
    }

    async fn approve(&self, approvals: &[Value]) {
        for it in approvals {
            let path = format!("/api/tool_approvals/{}", id(it));
            expect(200, self.person.post(&path, json!({"approve": true})).await);
        }
    }

    async fn wait_for(&self, conversation: i64, what: &str) {
        poll::until(what, async || {
            let now = self.person.conversation(conversation).await;
            (now["running_run"]["waiting_for"] == what).then_some(())
        })
        .await;
    }

    async fn wait_until_idle(&self, conversation: i64) {
        poll::until("the conversation is idle", async || {
            let now = self.person.conversation(conversation).await;
            (now["state"] == "idle").then_some(())
        })
        .await;
    }

    async fn wait_until_answered(&self, conversation: i64, text: &str) {
        poll::until(text, async || {
            let messages = self.person.messages(conversation).await;
            (messages.last()?["content"] == text).then_some(())
        })
        .await;
    }
}

on_sqlite! {
    async fn runs_that_wait_for_an_approval_hold_no_permits(backend) {
        let test_space = open_space(backend, "2").await;
        test_space.upstream.answer_with(rolls_once);
        let second = test_space.another_space("Second", with_approval()).await;
        let third = test_space.another_space("Third", json!({})).await;
        for conversation in [test_space.conversation, second] {
            test_space.post_in(conversation).await;
            test_space.wait_for(conversation, "approval").await;
        }

        test_space.post_in(third).await;

        test_space.wait_until_answered(third, "Hello.").await;
        for conversation in [test_space.conversation, second] {
            let open = test_space.open_approvals(conversation, 1).await;
            test_space.approve(&open).await;
            test_space.wait_until_answered(conversation, "Seven!").await;
            assert!(test_space.person.conversation(conversation).await["running_run"].is_null());
        }
        test_space.settle().await;
    }

    async fn an_approved_run_continues_before_runs_that_became_due_later(backend) {
        let test_space = open_space(backend, "1").await;
        test_space.upstream.answer_with(rolls_once);
        let (second, third) = (
            test_space.another_space("Second", json!({})).await,
            test_space.another_space("Third", json!({})).await,
        );
        test_space.post_in(test_space.conversation).await;
        let open = test_space.open_approvals(test_space.conversation, 1).await;
        let gate = test_space.hold_next_reply();
        test_space.post_in(second).await;
        test_space.upstream.wait_for_requests(2).await;

        test_space.approve(&open).await;
        test_space.wait_for(test_space.conversation, "place").await;
        assert_eq!(test_space.upstream.n_requests(), 2, "there is one permit");
        test_space.post_in(third).await;
        gate.open();

        test_space.wait_until_answered(third, "Hello.").await;
        assert_eq!(answers(&test_space.upstream.body(2)).len(), 1);
        assert!(answers(&test_space.upstream.body(3)).is_empty());
        test_space.wait_until_answered(test_space.conversation, "Seven!").await;
        test_space.settle().await;
    }

    async fn a_stop_ends_the_wait_for_a_permit(backend) {
        let test_space = open_space(backend, "1").await;
        test_space.upstream.answer_with(rolls_once);
        let second = test_space.another_space("Second", json!({})).await;
        test_space.post_in(test_space.conversation).await;
        let open = test_space.open_approvals(test_space.conversation, 1).await;
        let gate = test_space.hold_next_reply();
        test_space.post_in(second).await;
        test_space.upstream.wait_for_requests(2).await;
        test_space.approve(&open).await;
        test_space.wait_for(test_space.conversation, "place").await;

        expect(202, test_space.person.stop(test_space.conversation).await);
        gate.open();

        test_space.wait_until_idle(second).await;
        test_space.settle().await;
        assert_eq!(test_space.run_statuses().await, ["canceled"]);
        let run = &test_space.person.runs(test_space.conversation).await[0];
        assert!(run["waiting_for"].is_null(), "{run}");
        assert_eq!(test_space.upstream.n_requests(), 2);
    }

    async fn a_space_has_at_most_eight_open_approvals_and_a_ninth_call_is_rejected(backend) {
        let test_space = open_space(backend, "9").await;
        let ids: Vec<String> = (0..8).map(|n| format!("c{n}")).collect();
        let eight: Vec<_> = ids.iter().map(|id| (id.as_str(), ROLL.0, ROLL.1)).collect();
        test_space.upstream.next(ResponseScript::calls(&eight));
        test_space.post_in(test_space.conversation).await;
        let open = test_space.open_approvals(test_space.conversation, 8).await;
        let path = format!("/api/spaces/{}/conversations", id(&test_space.space));
        let other = test_space.person.post(&path, json!({"title": "Aside"})).await;
        let other = id(&expect(201, other));
        test_space.upstream.next(ResponseScript::calls(&[("c9", ROLL.0, ROLL.1)]));
        test_space.upstream.next(ResponseScript::say("Later, then."));

        test_space.post_in(other).await;

        test_space.wait_until_answered(other, "Later, then.").await;
        assert_eq!(answers(&test_space.upstream.body(2)), ["Error: too many open questions"]);
        assert_eq!(test_space.open_approvals(test_space.conversation, 8).await, open);
        test_space.upstream.next(ResponseScript::say("All rolled."));
        test_space.approve(&open).await;
        test_space.wait_until_answered(test_space.conversation, "All rolled.").await;
        test_space.settle().await;
    }
}
