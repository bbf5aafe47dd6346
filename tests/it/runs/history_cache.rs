//! Tests that a prompt contains each change of a message, whichever node made it, although a node
//! keeps the newest messages of conversations.

use troupe::conversations::message::Visibility;

use crate::support::backends::on_both;
use crate::support::engine_test::{EngineTest, edit_of};

/// Posts a message and returns the prompt of the reply: the texts of the messages of the
/// conversation, without the names that are sent before them.
async fn prompt_of_reply_to(app: &EngineTest, text: &str) -> Vec<String> {
    app.user.post(text).await;
    app.settle().await;
    newest_prompt(app).await
}

async fn newest_prompt(app: &EngineTest) -> Vec<String> {
    let body = app.upstream.body(app.upstream.n_requests() - 1);
    let messages = body["messages"].as_array().expect("the prompt is a list");
    let sent: Vec<&str> = messages
        .iter()
        .filter_map(|it| it["content"].as_str())
        .collect();
    let sent = sent.join("\n");
    let texts = ["One.", "Two.", "Three.", "Four.", "Edited."];
    let mut found: Vec<(usize, &str)> =
        texts.iter().flat_map(|it| sent.match_indices(it)).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, text)| text.to_owned()).collect()
}

on_both! {
    async fn a_message_that_another_node_edited_is_in_the_next_prompt(backend) {
        let app = EngineTest::builder(backend).open().await;
        let other = app.another_node();
        assert_eq!(prompt_of_reply_to(&app, "One.").await, ["One."]);
        let reply = app.messages().await.pop().expect("a reply");

        other.edit_message(app.scope(), edit_of(&reply, "Edited.")).await.unwrap();

        assert_eq!(prompt_of_reply_to(&app, "Two.").await, ["One.", "Edited.", "Two."]);
        app.close_without_events().await;
    }

    async fn a_message_that_this_node_edited_is_in_the_next_prompt(backend) {
        let app = EngineTest::builder(backend).open().await;
        prompt_of_reply_to(&app, "One.").await;
        let reply = app.messages().await.pop().expect("a reply");

        app.engine.edit_message(app.scope(), edit_of(&reply, "Edited.")).await.unwrap();

        assert_eq!(prompt_of_reply_to(&app, "Two.").await, ["One.", "Edited.", "Two."]);
        app.close().await;
    }

    async fn a_hidden_message_is_in_no_prompt_until_it_is_shown_again(backend) {
        let app = EngineTest::builder(backend).open().await;
        prompt_of_reply_to(&app, "One.").await;
        prompt_of_reply_to(&app, "Two.").await;
        let second = app.messages().await[2].id;

        app.engine.set_visibility(app.scope(), second, Visibility::Hidden).await.unwrap();
        assert_eq!(prompt_of_reply_to(&app, "Three.").await, ["One.", "Three."]);

        app.engine.set_visibility(app.scope(), second, Visibility::Normal).await.unwrap();
        let all = ["One.", "Two.", "Three.", "Four."];
        assert_eq!(prompt_of_reply_to(&app, "Four.").await, all);
        app.close().await;
    }

    async fn messages_of_two_nodes_are_in_the_next_prompt_once_and_in_order(backend) {
        let app = EngineTest::builder(backend).open().await;
        let other = app.another_node();
        prompt_of_reply_to(&app, "One.").await;

        app.user_in_conversation(&other, app.conversation).post("Two.").await;
        app.settle().await;

        assert_eq!(prompt_of_reply_to(&app, "Three.").await, ["One.", "Two.", "Three."]);
        app.close_without_events().await;
    }

    async fn a_regenerated_reply_is_not_in_its_own_prompt(backend) {
        let app = EngineTest::builder(backend).open().await;
        prompt_of_reply_to(&app, "One.").await;
        prompt_of_reply_to(&app, "Two.").await;
        let reply = app.messages().await.pop().expect("a reply");
        app.engine.edit_message(app.scope(), edit_of(&reply, "Edited.")).await.unwrap();

        app.engine.regenerate(app.conversation, Some(reply.id), "Eve".to_owned()).await.unwrap();
        app.settle().await;

        assert_eq!(newest_prompt(&app).await, ["One.", "Two."]);
        app.close().await;
    }
}
