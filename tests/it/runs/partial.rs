//! A stop that keeps what was streamed.

use serde_json::Value;
use troupe::conversations::message::Role;
use troupe::runs::run::Status;
use troupe::runs::situation::State;

use crate::support::backends::on_both;
use crate::support::engine_room::EngineRoom;
use crate::support::upstream::script::Script;

/// The types of the durable events among these frames.
fn durable(log: &[Value]) -> Vec<&str> {
    let durable = log.iter().filter(|it| it["rev"].is_i64());
    durable.filter_map(|it| it["type"].as_str()).collect()
}

on_both! {
    async fn the_text_so_far_becomes_a_message_and_every_rev_comes_in_its_turn(backend) {
        let room = EngineRoom::on(backend).open().await;
        let gate = room.upstream.gate();
        room.upstream.next(Script::say("One two three."));
        room.human.says("Count.").await;
        gate.step();
        room.ear.hears_text("One").await;
        let n_before = room.ear.log().len();

        room.engine.stop(room.conversation, true).await.unwrap();
        room.settle().await;

        let kept = room.messages().await.pop().unwrap();
        assert_eq!((kept.role, kept.content.as_str()), (Role::Assistant, "One"));
        assert_eq!(kept.metadata["stopped"], true);
        assert_eq!(room.only_run().await.status, Status::Canceled);
        assert_eq!(room.runtime().await.state(), State::Idle, "its only slot has spoken");
        let log = room.ends().await; // which holds the revs to growing by one
        let expected = ["queue_updated", "message_created", "run_canceled", "queue_updated"];
        assert_eq!(durable(&log[n_before..]), expected);
    }
}
