//! Tests of replies that quote another message.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{on_both, on_sqlite};
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::http_response::refusal;
use crate::support::ws_client::WsClient;

/// Posts an answer to a message.
async fn answer(user: &HttpClient, conversation: i64, to: i64, body: Value) -> (u16, Value) {
    let mut body = body;
    body["reply_to_id"] = json!(to);
    let path = format!("/api/conversations/{conversation}/messages");
    user.post(&path, body).await
}

/// Posts a message; returns its id.
async fn post(user: &HttpClient, conversation: i64, text: &str) -> i64 {
    id(&expect(201, user.post_message(conversation, text, None).await)["message"])
}

on_both! {
    async fn a_reply_shows_the_author_and_the_first_line_of_its_target(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({})).await;
        let root = root_of(&space);
        let target = post(&ann, root, "First line.\nSecond line.").await;
        let socket = WsClient::subscribed(&ann, root).await;

        let posted = expect(201, answer(&ann, root, target, json!({"content": "Indeed."})).await);

        let quote = json!({
            "id": target, "seq": 1, "author_name": "admin", "excerpt": "First line. Second line.", "hidden": false,
        });
        let reply = posted["message"]["reply_to"].clone();
        assert_eq!(reply, quote);
        assert_eq!(ann.messages(root).await[1]["reply_to"], reply);
        let event = socket.wait_for("the reply", |it| it["type"] == "message_created" && it["message"]["content"] == "Indeed.").await;
        assert_eq!(event["message"]["reply_to"], reply);
        expect(204, ann.delete(&format!("/api/messages/{target}")).await);
        let shown = ann.messages(root).await[0]["reply_to"].clone();
        assert_eq!((&shown["id"], &shown["excerpt"], &shown["hidden"]), (&json!(target), &json!(""), &json!(true)));
        app.close().await;
    }

    async fn a_branch_answers_the_copied_message(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({"reply_order": "manual"})).await;
        let root = root_of(&space);
        let target = post(&ann, root, "One.").await;
        let reply = id(&expect(201, answer(&ann, root, target, json!({"content": "Two."})).await)["message"]);

        let path = format!("/api/conversations/{root}/branch");
        let made = expect(201, ann.post(&path, json!({"message_id": reply})).await);

        let copies = ann.messages(id(&made["conversation"])).await;
        assert_eq!(copies[1]["reply_to"]["id"], copies[0]["id"]);
        assert_ne!(copies[0]["id"], json!(target));
        app.close().await;
    }
}

on_sqlite! {
    async fn only_a_visible_message_of_the_same_conversation_can_be_answered(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({})).await;
        let other = ann.create_space("Other", json!({})).await;
        let root = root_of(&space);
        let foreign = post(&ann, root_of(&other), "Elsewhere.").await;
        let hidden = post(&ann, root, "Gone.").await;
        expect(204, ann.delete(&format!("/api/messages/{hidden}")).await);

        for target in [foreign, hidden, 1_000_000] {
            let refused = answer(&ann, root, target, json!({"content": "Hm?"})).await;

            assert_eq!(refusal(&refused), (422, "invalid_value".to_owned()), "{target}");
            assert_eq!(refused.1["error"]["param"], "reply_to_id");
        }
        assert_eq!(ann.messages(root).await, Vec::<Value>::new());
        app.close().await;
    }

    async fn a_repeated_reply_is_recognized_before_its_target_is_checked(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let space = ann.create_space("Room", json!({})).await;
        let root = root_of(&space);
        let (first, second) = (post(&ann, root, "One.").await, post(&ann, root, "Two.").await);
        let body = || json!({"content": "Three.", "client_id": "c"});
        let posted = expect(201, answer(&ann, root, first, body()).await);
        expect(204, ann.delete(&format!("/api/messages/{first}")).await);

        let again = expect(200, answer(&ann, root, first, body()).await);
        let other_target = answer(&ann, root, second, body()).await;
        let path = format!("/api/conversations/{root}/messages");
        let no_target = ann.post(&path, body()).await;

        assert_eq!(again["message"]["id"], posted["message"]["id"]);
        assert_eq!(again["message"]["reply_to"]["hidden"], true);
        assert_eq!(refusal(&other_target), (422, "client_id_reused".to_owned()));
        assert_eq!(refusal(&no_target), (422, "client_id_reused".to_owned()));
        app.close().await;
    }
}
