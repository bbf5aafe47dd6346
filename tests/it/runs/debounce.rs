//! Tests the debounce: several quick messages get one reply, and a steady stream cannot delay it
//! forever.

use serde_json::Value;

use crate::support::backends::on_sqlite;
use crate::support::engine_test::EngineTest;

on_sqlite! {
    async fn two_messages_within_the_debounce_get_one_answer(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;

        let first = app.user.post("Hello.").await;
        app.clock.advance_ms(300);
        let second = app.user.post("Are you there?").await;
        app.clock.advance_ms(500);
        app.settle().await;

        assert_eq!(app.answers().await, ["Hello."]);
        assert_eq!(app.upstream.n_requests(), 1);
        let run = app.only_run().await;
        assert_eq!(first.run.map(|it| it.id), Some(run.id));
        assert_eq!(second.run.map(|it| it.id), Some(run.id));
        assert_eq!(run.cutoff_seq, Some(2));
        let asked = app.upstream.body(0)["messages"].to_string();
        assert!(asked.contains("Hello.") && asked.contains("Are you there?"));
        app.close().await;
    }

    async fn no_run_starts_before_its_due_time(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        app.user.post("Hello.").await;
        let planned = app.only_run().await;

        for _ in 0..5 {
            app.clock.advance_ms(100);
        }
        app.settle().await;

        let run = app.only_run().await;
        assert_eq!(run.run_after, planned.run_after);
        assert!(run.started_at >= planned.run_after, "{run:?}");
        app.close().await;
    }

    async fn an_endless_burst_of_messages_is_answered_after_ten_seconds(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        let gate = app.upstream.gate();
        let began = app.clock.now();

        for _ in 0..24 {
            app.user.post("And another thing.").await;
            app.clock.advance_ms(400);
        }
        app.user.post("And the last one.").await;
        app.clock.advance_ms(400);
        app.events.wait_for_event("typing_start").await;
        let after = app.user.post("No, one more.").await;
        gate.open();
        app.clock.advance_ms(500);
        app.settle().await;

        let runs = app.runs().await;
        assert_eq!(runs.len(), 2);
        let waited = runs[0].started_at.map(|it| it.ms_since(began));
        assert_eq!(waited, Some(10_000));
        assert_eq!(runs[0].cutoff_seq, Some(25));
        assert_eq!(after.run.map(|it| it.id), Some(runs[1].id));
        app.close().await;
    }

    async fn every_message_of_a_burst_is_announced_at_once(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 60_000)
            .open()
            .await;

        for text in ["One", "two", "three"] {
            app.user.post(text).await;
        }

        let is_message = |it: &&Value| it["type"] == "message_created";
        let log = app.events.log();
        let announced: Vec<_> = log.iter().filter(is_message).map(|it| &it["message"]["content"]).collect();
        assert_eq!(announced, ["One", "two", "three"]);
        app.close().await;
    }
}
