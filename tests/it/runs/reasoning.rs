//! Tests reasoning: it is stored with its message and its swipe, and is never sent to a model.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use serde_json::{Value, json};
use troupe::conversations::{message, swipe};
use troupe::runs::store::run::RunStatus;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;

fn thought(piece: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": { "reasoning_content": piece } }] })
}

/// A response of a model that reasons before its text.
fn thinks(thoughts: &str, says: &str) -> ResponseScript {
    ResponseScript::stream()
        .role()
        .event(&thought(thoughts))
        .words(says)
        .finish("stop")
        .usage(7, 5)
        .done()
}

async fn room(backend: TestBackend) -> EngineTest {
    EngineTest::builder(backend).cast(&["Ada"]).open().await
}

async fn tail(room: &EngineTest) -> message::Model {
    room.messages().await.pop().expect("a message")
}

on_sqlite! {
    async fn reasoning_is_stored_with_the_message_and_sent_to_no_model(backend) {
        let room = room(backend).await;
        room.upstream.next(thinks("Eve greets me, the pl\0otter. ", "Hi, Eve."));

        room.user.post("Hi.").await;
        room.settle().await;
        room.user.post("And?").await;
        room.settle().await;

        let answer = &room.messages().await[1];
        assert_eq!(answer.content, "Hi, Eve.");
        assert_eq!(answer.metadata, json!({ "reasoning": "Eve greets me, the plotter." }));
        let told = room.upstream.body(1).to_string();
        assert!(told.contains("Hi, Eve.") && !told.contains("plotter"), "{told}");
        // Every subscriber receives it with the message.
        let heard = room.events.wait_for_event("message_created").await;
        assert!(heard["message"]["metadata"].is_object());
        room.close().await;
    }

    async fn each_text_of_a_message_has_its_own(backend) {
        let room = room(backend).await;
        room.upstream.next(thinks("First thoughts.", "One."));
        room.upstream.next(thinks("Second thoughts.", "Two."));
        room.user.post("Hi.").await;
        room.settle().await;

        let again = room.engine.regenerate(room.conversation, None, "Eve".to_owned());
        again.await.unwrap();
        room.settle().await;

        let message = tail(&room).await;
        assert_eq!(message.metadata["reasoning"], "Second thoughts.");
        let texts = swipe::Entity::find()
            .filter(swipe::Column::MessageId.eq(message.id))
            .order_by_asc(swipe::Column::Position)
            .all(room.db.reader())
            .await
            .unwrap();
        let kept: Vec<_> = texts.iter().map(|it| (it.content.as_str(), &it.metadata["reasoning"])).collect();
        assert_eq!(kept, [("One.", &json!("First thoughts.")), ("Two.", &json!("Second thoughts."))]);
        assert!(!room.upstream.body(1).to_string().contains("thoughts"));
        room.close().await;
    }

    async fn a_text_that_was_stopped_keeps_what_was_thought(backend) {
        let room = room(backend).await;
        let gate = room.upstream.gate();
        room.upstream.next(thinks("Should I go on?", "One two three."));
        room.user.post("Count.").await;
        gate.step();
        room.events.wait_for_text("One").await;

        room.engine.stop(room.conversation, true).await.unwrap();
        gate.open();
        room.settle().await;

        let partial = tail(&room).await;
        assert_eq!(partial.content, "One");
        assert_eq!(partial.metadata, json!({ "reasoning": "Should I go on?", "stopped": true }));
        room.close().await;
    }

    async fn overlong_reasoning_is_truncated_and_marked(backend) {
        let room = room(backend).await;
        let flood = (0..20).fold(ResponseScript::stream(), |it, _| it.event(&thought(&"hm ".repeat(2_000))));
        room.upstream.next(flood.words("Well.").finish("stop").done());

        room.user.post("Hi.").await;
        room.settle().await;

        let answer = tail(&room).await;
        assert_eq!(answer.content, "Well.");
        assert_eq!(answer.metadata["reasoning_truncated"], true);
        assert_eq!(answer.metadata["reasoning"].as_str().map(str::len), Some(64 * 1024));
        room.close().await;
    }

    async fn thoughts_alone_are_no_answer_and_nothing_is_stored(backend) {
        let room = room(backend).await;
        room.upstream.always(thinks("Should I?", ""));

        room.user.post("Hi.").await;
        room.settle().await;

        let run = room.only_run().await;
        assert_eq!(run.status, RunStatus::Failed);
        assert_eq!(run.error.map(|it| it.code).as_deref(), Some("empty_response"));
        assert!(room.answers().await.is_empty());
        room.close().await;
    }
}
