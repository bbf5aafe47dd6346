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

async fn open_app(backend: TestBackend) -> EngineTest {
    EngineTest::builder(backend).cast(&["Ada"]).open().await
}

async fn tail(app: &EngineTest) -> message::Model {
    app.messages()
        .await
        .pop()
        .expect("the conversation is empty")
}

on_sqlite! {
    async fn reasoning_is_stored_with_the_message_and_sent_to_no_model(backend) {
        let app = open_app(backend).await;
        app.upstream.next(thinks("Eve greets me, the pl\0otter. ", "Hi, Eve."));

        app.user.post("Hi.").await;
        app.settle().await;
        app.user.post("And?").await;
        app.settle().await;

        let answer = &app.messages().await[1];
        assert_eq!(answer.content, "Hi, Eve.");
        assert_eq!(answer.metadata, json!({ "reasoning": "Eve greets me, the plotter." }));
        let request = app.upstream.body(1).to_string();
        assert!(request.contains("Hi, Eve.") && !request.contains("plotter"), "{request}");
        // Every subscriber receives it with the message.
        let event = app.events.wait_for_event("message_created").await;
        assert!(event["message"]["metadata"].is_object());
        app.close().await;
    }

    async fn each_swipe_has_its_own_reasoning(backend) {
        let app = open_app(backend).await;
        app.upstream.next(thinks("First thoughts.", "One."));
        app.upstream.next(thinks("Second thoughts.", "Two."));
        app.user.post("Hi.").await;
        app.settle().await;

        let again = app.engine.regenerate(app.conversation, None, "Eve".to_owned());
        again.await.unwrap();
        app.settle().await;

        let message = tail(&app).await;
        assert_eq!(message.metadata["reasoning"], "Second thoughts.");
        let texts = swipe::Entity::find()
            .filter(swipe::Column::MessageId.eq(message.id))
            .order_by_asc(swipe::Column::Position)
            .all(app.db.reader())
            .await
            .unwrap();
        let kept: Vec<_> = texts.iter().map(|it| (it.content.as_str(), &it.metadata["reasoning"])).collect();
        assert_eq!(kept, [("One.", &json!("First thoughts.")), ("Two.", &json!("Second thoughts."))]);
        assert!(!app.upstream.body(1).to_string().contains("thoughts"));
        app.close().await;
    }

    async fn a_stopped_reply_keeps_its_reasoning(backend) {
        let app = open_app(backend).await;
        let gate = app.upstream.gate();
        app.upstream.next(thinks("Should I go on?", "One two three."));
        app.user.post("Count.").await;
        gate.step();
        app.events.wait_for_text("One").await;

        app.engine.stop(app.conversation, true).await.unwrap();
        gate.open();
        app.settle().await;

        let partial = tail(&app).await;
        assert_eq!(partial.content, "One");
        assert_eq!(partial.metadata, json!({ "reasoning": "Should I go on?", "stopped": true }));
        app.close().await;
    }

    async fn overlong_reasoning_is_truncated_and_marked(backend) {
        let app = open_app(backend).await;
        let flood = (0..20).fold(ResponseScript::stream(), |it, _| it.event(&thought(&"hm ".repeat(2_000))));
        app.upstream.next(flood.words("Well.").finish("stop").done());

        app.user.post("Hi.").await;
        app.settle().await;

        let answer = tail(&app).await;
        assert_eq!(answer.content, "Well.");
        assert_eq!(answer.metadata["reasoning_truncated"], true);
        assert_eq!(answer.metadata["reasoning"].as_str().map(str::len), Some(64 * 1024));
        app.close().await;
    }

    async fn a_reply_of_only_reasoning_fails_and_stores_no_message(backend) {
        let app = open_app(backend).await;
        app.upstream.always(thinks("Should I?", ""));

        app.user.post("Hi.").await;
        app.settle().await;

        let run = app.only_run().await;
        assert_eq!(run.status, RunStatus::Failed);
        assert_eq!(run.error.map(|it| it.code).as_deref(), Some("empty_response"));
        assert!(app.answers().await.is_empty());
        app.close().await;
    }
}
