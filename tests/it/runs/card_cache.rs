//! Tests that prompts contain the cards as they are in the database, although a node keeps parsed
//! cards in memory.

use crate::support::backends::on_both;
use crate::support::engine_test::EngineTest;
use crate::support::fixtures;

on_both! {
    async fn a_card_that_another_node_changed_is_in_the_next_prompt(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post("One.").await;
        app.settle().await;

        let ada = app.membership("Ada").await;
        fixtures::set_card_field(&app.db, ada, "description", "Ada is a pirate.").await;
        app.user.post("Two.").await;
        app.settle().await;

        let prompts = [0, 1].map(|it| app.upstream.seen(it).body.to_string());
        assert!(prompts[0].contains("Ada is on stage."), "{}", prompts[0]);
        assert!(prompts[1].contains("Ada is a pirate."), "{}", prompts[1]);
        assert!(!prompts[1].contains("Ada is on stage."), "{}", prompts[1]);
        app.close_without_events().await;
    }
}
