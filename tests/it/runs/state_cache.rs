//! Tests that a node uses what it remembers of a conversation only until another node changes it.

use troupe::conversations::message::Visibility;

use crate::support::backends::on_both;
use crate::support::engine_test::EngineTest;

on_both! {
    async fn a_message_that_another_node_hid_is_not_the_newest(backend) {
        let app = EngineTest::builder(backend).open().await;
        let other = app.another_node();
        app.user.post("One.").await;
        app.settle().await;
        let reply = app.messages().await[1].id;

        other.set_visibility(app.conversation, reply, Visibility::Hidden).await.unwrap();
        let ada = app.membership("Ada").await.id;
        app.engine.force_talk(app.conversation, Some(ada), "Eve".to_owned()).await.unwrap();
        app.settle().await;

        let runs = app.runs().await;
        let forced = runs.last().expect("the forced run");
        let tail = app.messages().await[0].id;
        assert_eq!(forced.debug.trigger_message_id, Some(tail), "{forced:?}");
        app.close_without_events().await;
    }

    async fn a_foreign_message_is_seen_by_the_next_step(backend) {
        let app = EngineTest::builder(backend).open().await;
        let other = app.another_node();
        app.user.post("One.").await;
        app.settle().await;

        let of_other = app.user_in_conversation(&other, app.conversation).post("Two.").await;
        app.settle().await;
        let third = app.user.post("Three.").await;
        app.settle().await;

        assert_eq!(third.message.seq, of_other.message.seq + 2);
        assert_eq!(app.answers().await.len(), 3);
        app.close_without_events().await;
    }
}
