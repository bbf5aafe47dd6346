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
async fn room(backend: TestBackend, n_permits: &str) -> TestSpace {
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
    async fn questions(&self, conversation: i64, n: usize) -> Vec<Value> {
        let door = format!("/api/conversations/{conversation}/tool_approvals");
        poll::until("the questions are open", async || {
            let open = expect(200, self.person.get(&door).await);
            let open = open["data"].as_array().unwrap().clone();
            (open.len() == n).then_some(open)
        })
        .await
    }

    async fn approve(&self, questions: &[Value]) {
        for it in questions {
            let door = format!("/api/tool_approvals/{}", id(it));
            expect(200, self.person.post(&door, json!({"approve": true})).await);
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
        poll::until("it is idle", async || {
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
    async fn with_all_permits_of_two_spaces_waiting_for_approvals_a_third_space_is_answered(backend) {
        let room = room(backend, "2").await;
        room.upstream.answer_with(rolls_once);
        let second = room.another_space("Second", with_approval()).await;
        let third = room.another_space("Third", json!({})).await;
        for conversation in [room.conversation, second] {
            room.post_in(conversation).await;
            room.wait_for(conversation, "approval").await;
        }

        room.post_in(third).await;

        room.wait_until_answered(third, "Hello.").await;
        for conversation in [room.conversation, second] {
            let open = room.questions(conversation, 1).await;
            room.approve(&open).await;
            room.wait_until_answered(conversation, "Seven!").await;
            assert!(room.person.conversation(conversation).await["running_run"].is_null());
        }
        room.settle().await;
    }

    async fn a_run_that_was_decided_comes_before_those_that_became_due_after_it(backend) {
        let room = room(backend, "1").await;
        room.upstream.answer_with(rolls_once);
        let (second, third) = (
            room.another_space("Second", json!({})).await,
            room.another_space("Third", json!({})).await,
        );
        room.post_in(room.conversation).await;
        let open = room.questions(room.conversation, 1).await;
        let gate = room.hold_next_reply();
        room.post_in(second).await;
        room.upstream.wait_for_requests(2).await;

        room.approve(&open).await;
        room.wait_for(room.conversation, "place").await;
        assert_eq!(room.upstream.n_requests(), 2, "there is one permit");
        room.post_in(third).await;
        gate.open();

        room.wait_until_answered(third, "Hello.").await;
        assert_eq!(answers(&room.upstream.body(2)).len(), 1);
        assert!(answers(&room.upstream.body(3)).is_empty());
        room.wait_until_answered(room.conversation, "Seven!").await;
        room.settle().await;
    }

    async fn a_stop_ends_the_wait_for_a_place(backend) {
        let room = room(backend, "1").await;
        room.upstream.answer_with(rolls_once);
        let second = room.another_space("Second", json!({})).await;
        room.post_in(room.conversation).await;
        let open = room.questions(room.conversation, 1).await;
        let gate = room.hold_next_reply();
        room.post_in(second).await;
        room.upstream.wait_for_requests(2).await;
        room.approve(&open).await;
        room.wait_for(room.conversation, "place").await;

        expect(202, room.person.stop(room.conversation).await);
        gate.open();

        room.wait_until_idle(second).await;
        room.settle().await;
        assert_eq!(room.run_statuses().await, ["canceled"]);
        let run = &room.person.runs(room.conversation).await[0];
        assert!(run["waiting_for"].is_null(), "{run}");
        assert_eq!(room.upstream.n_requests(), 2);
    }

    async fn at_most_eight_questions_are_open_in_a_space_and_a_ninth_is_not_asked(backend) {
        let room = room(backend, "9").await;
        let ids: Vec<String> = (0..8).map(|n| format!("c{n}")).collect();
        let eight: Vec<_> = ids.iter().map(|id| (id.as_str(), ROLL.0, ROLL.1)).collect();
        room.upstream.next(ResponseScript::calls(&eight));
        room.post_in(room.conversation).await;
        let open = room.questions(room.conversation, 8).await;
        let door = format!("/api/spaces/{}/conversations", id(&room.space));
        let other = id(&expect(201, room.person.post(&door, json!({"title": "Aside"})).await));
        room.upstream.next(ResponseScript::calls(&[("c9", ROLL.0, ROLL.1)]));
        room.upstream.next(ResponseScript::say("Later, then."));

        room.post_in(other).await;

        room.wait_until_answered(other, "Later, then.").await;
        assert_eq!(answers(&room.upstream.body(2)), ["Error: too many open questions"]);
        assert_eq!(room.questions(room.conversation, 8).await, open);
        room.upstream.next(ResponseScript::say("All rolled."));
        room.approve(&open).await;
        room.wait_until_answered(room.conversation, "All rolled.").await;
        room.settle().await;
    }
}
