//! Tests the debounce: several quick messages get one reply, and a steady stream cannot delay it
//! forever.

use serde_json::Value;

use crate::support::backends::on_sqlite;
use crate::support::engine_test::EngineTest;

on_sqlite! {
    async fn two_messages_within_the_debounce_get_one_answer(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;

        let first = room.user.post("Hello.").await;
        room.clock.advance_ms(300);
        let second = room.user.post("Are you there?").await;
        room.clock.advance_ms(500);
        room.settle().await;

        assert_eq!(room.answers().await, ["Hello."]);
        assert_eq!(room.upstream.n_requests(), 1);
        let run = room.only_run().await;
        assert_eq!(first.run.map(|it| it.id), Some(run.id));
        assert_eq!(second.run.map(|it| it.id), Some(run.id));
        assert_eq!(run.cutoff_seq, Some(2));
        let asked = room.upstream.body(0)["messages"].to_string();
        assert!(asked.contains("Hello.") && asked.contains("Are you there?"));
        room.close().await;
    }

    async fn no_run_begins_before_its_time(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        room.user.post("Hello.").await;
        let planned = room.only_run().await;

        for _ in 0..5 {
            room.clock.advance_ms(100);
        }
        room.settle().await;

        let run = room.only_run().await;
        assert_eq!(run.run_after, planned.run_after);
        assert!(run.started_at >= planned.run_after, "{run:?}");
        room.close().await;
    }

    async fn a_burst_that_never_ends_is_answered_after_ten_seconds(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 500)
            .open()
            .await;
        let gate = room.upstream.gate();
        let began = room.clock.now();

        for _ in 0..24 {
            room.user.post("And another thing.").await;
            room.clock.advance_ms(400);
        }
        room.user.post("And the last one.").await;
        room.clock.advance_ms(400);
        room.events.wait_for_event("typing_start").await;
        let after = room.user.post("No, one more.").await;
        gate.open();
        room.clock.advance_ms(500);
        room.settle().await;

        let runs = room.runs().await;
        assert_eq!(runs.len(), 2);
        let waited = runs[0].started_at.map(|it| it.ms_since(began));
        assert_eq!(waited, Some(10_000));
        assert_eq!(runs[0].cutoff_seq, Some(25));
        assert_eq!(after.run.map(|it| it.id), Some(runs[1].id));
        room.close().await;
    }

    async fn every_message_of_a_burst_is_announced_at_once(backend) {
        let room = EngineTest::builder(backend)
            .rules(|it| it.user_turn_debounce_ms = 60_000)
            .open()
            .await;

        for text in ["One", "two", "three"] {
            room.user.post(text).await;
        }

        let is_message = |it: &&Value| it["type"] == "message_created";
        let log = room.events.log();
        let told: Vec<_> = log.iter().filter(is_message).map(|it| &it["message"]["content"]).collect();
        assert_eq!(told, ["One", "two", "three"]);
        room.close().await;
    }
}
