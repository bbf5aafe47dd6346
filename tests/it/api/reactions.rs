//! Tests of reactions to messages.

use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::{on_both, on_sqlite};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::ws_client::WsClient;

/// Returns the path of a reaction.
fn path_of(message: i64, emoji: &str) -> String {
    let encoded: String = emoji.bytes().map(|it| format!("%{it:02X}")).collect();
    format!("/api/messages/{message}/reactions/{encoded}")
}

async fn react(user: &HttpClient, message: i64, emoji: &str) -> (u16, Value) {
    user.put(&path_of(message, emoji), Value::Null).await
}

/// Creates a space with one message; returns its conversation and the message.
async fn create_message(user: &HttpClient) -> (Value, i64, i64) {
    let space = user.create_space("Room", json!({})).await;
    let root = root_of(&space);
    let posted = expect(201, user.post_message(root, "Hello.", None).await);
    (space, root, id(&posted["message"]))
}

on_both! {
    async fn others_see_who_reacted_and_a_repeated_reaction_changes_nothing(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let (ann, ben) = (app.admin().await, app.register("ben").await);
        let (space, root, message) = create_message(&ann).await;
        let membership = id(&ann.add_member(id(&space), &ben, "member").await);
        let socket = WsClient::subscribed(&ann, root).await;
        let before = ann.messages(root).await[0].clone();

        expect(204, react(&ben, message, "👍🏽").await);
        expect(204, react(&ben, message, "👍🏽").await);

        let event = socket.wait_for("the reaction", |it| it["type"] == "reactions_updated").await;
        let reactions = json!([{"emoji": "👍🏽", "membership_ids": [membership]}]);
        assert_eq!((&event["message_id"], &event["reactions"]), (&json!(message), &reactions));
        let after = ann.messages(root).await[0].clone();
        assert_eq!((&after["reactions"], &after["version"]), (&reactions, &before["version"]));
        assert_eq!((&after["rev"], after["rev"].as_i64()), (&event["rev"], before["rev"].as_i64().map(|it| it + 1)));

        expect(204, ben.delete(&path_of(message, "👍🏽")).await);
        expect(204, ben.delete(&path_of(message, "👍🏽")).await);
        expect(204, react(&ann, message, "❤️").await);
        let event = socket.wait_for("the other reaction", |it| it["reactions"][0]["emoji"] == "❤️").await;
        assert_eq!(event["rev"].as_i64(), before["rev"].as_i64().map(|it| it + 3));
        app.close().await;
    }

    async fn a_client_that_was_away_gets_the_changed_reactions(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, root, message) = create_message(&ann).await;
        expect(201, ann.post_message(root, "More.", None).await);
        let rev = ann.conversation(root).await["rev"].as_i64();
        expect(204, react(&ann, message, "🎉").await);

        let socket = WsClient::open(&ann).await;
        let answer = socket.subscribe(root, rev).await;

        let messages = answer["snapshot"]["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 1, "{answer}");
        assert_eq!((&messages[0]["id"], &messages[0]["reactions"][0]["emoji"]), (&json!(message), &json!("🎉")));
        app.close().await;
    }

    async fn a_branch_keeps_the_reactions(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, root, message) = create_message(&ann).await;
        expect(204, react(&ann, message, "🎉").await);

        let path = format!("/api/conversations/{root}/branch");
        let made = expect(201, ann.post(&path, json!({"message_id": message})).await);

        let copies = ann.messages(id(&made["conversation"])).await;
        assert_eq!(copies[0]["reactions"], ann.messages(root).await[0]["reactions"]);
        expect(204, ann.delete(&format!("/api/conversations/{}", id(&made["conversation"]))).await);
        assert_eq!(ann.messages(root).await[0]["reactions"][0]["emoji"], "🎉");
        app.close().await;
    }
}

on_sqlite! {
    async fn a_message_has_at_most_20_different_emoji(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let (ann, ben) = (app.admin().await, app.register("ben").await);
        let (space, root, message) = create_message(&ann).await;
        ann.add_member(id(&space), &ben, "member").await;
        let emoji: Vec<String> = ('\u{1f600}'..).take(21).map(String::from).collect();
        for it in &emoji[..20] {
            expect(204, react(&ann, message, it).await);
        }

        assert_eq!(refusal(&react(&ben, message, &emoji[20]).await), (422, "too_many".to_owned()));
        expect(204, react(&ben, message, &emoji[0]).await);
        let shown = ann.messages(root).await[0]["reactions"].clone();
        assert_eq!(shown.as_array().unwrap().len(), 20);
        assert_eq!(shown[0]["membership_ids"].as_array().unwrap().len(), 2);
        app.close().await;
    }

    async fn only_a_single_emoji_is_a_reaction(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, _, message) = create_message(&ann).await;

        for it in ["a", "1", "1🏽", "👍👍", "❤", "ok"] {
            assert_eq!(refusal(&react(&ann, message, it).await), (422, "invalid_value".to_owned()), "{it}");
            assert_eq!(ann.delete(&path_of(message, it)).await.0, 422);
        }
        app.close().await;
    }

    async fn an_observer_cannot_react_and_a_hidden_message_has_no_reactions(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let (ann, ben) = (app.admin().await, app.register("ben").await);
        let (space, _, message) = create_message(&ann).await;
        let membership = ann.add_member(id(&space), &ben, "member").await;
        let path = format!("/api/memberships/{}", id(&membership));
        expect(200, ann.patch(&path, json!({"participation": "observer"})).await);

        assert_eq!(react(&ben, message, "👍").await.0, 403);
        expect(204, ann.delete(&format!("/api/messages/{message}")).await);
        assert_eq!(react(&ann, message, "👍").await.0, 404);
        app.close().await;
    }

    async fn reactions_are_limited_per_minute(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, _, message) = create_message(&ann).await;
        for _ in 0..120 {
            expect(204, react(&ann, message, "👍").await);
        }

        assert_eq!(refusal(&react(&ann, message, "👍").await), (429, "rate_limited".to_owned()));
        app.close().await;
    }
}
