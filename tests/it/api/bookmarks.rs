//! Tests of bookmarks.

use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::on_both;
use crate::support::http_client::{HttpClient, expect, id, root_of};

/// Returns the texts of the marked messages.
async fn marked(user: &HttpClient, conversation: i64, query: &str) -> Vec<String> {
    let path = format!("/api/conversations/{conversation}/bookmarks{query}");
    let page = expect(200, user.get(&path).await);
    let messages = page["data"].as_array().unwrap().iter();
    messages
        .map(|it| it["content"].as_str().unwrap().to_owned())
        .collect()
}

on_both! {
    async fn bookmarks_are_listed_by_seq_and_only_for_their_user(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let (ann, ben) = (app.admin().await, app.register("ben").await);
        let space = ann.create_space("Room", json!({})).await;
        ann.add_member(id(&space), &ben, "guest").await;
        let root = root_of(&space);
        let mut paths = Vec::new();
        for text in ["One.", "Two.", "Three."] {
            let posted = expect(201, ann.post_message(root, text, None).await);
            paths.push(format!("/api/messages/{}", id(&posted["message"])));
        }
        let bookmark = |n: usize| format!("{}/bookmark", paths[n]);

        for n in [2, 0, 2, 1] {
            expect(204, ben.put(&bookmark(n), Value::Null).await);
        }

        assert_eq!(marked(&ben, root, "").await, ["One.", "Two.", "Three."]);
        assert_eq!(marked(&ben, root, "?limit=1&after=1").await, ["Two."]);
        assert_eq!(marked(&ben, root, "?before=3").await, ["One.", "Two."]);
        assert_eq!(marked(&ann, root, "").await, Vec::<String>::new());
        expect(204, ben.delete(&bookmark(0)).await);
        expect(204, ben.delete(&bookmark(0)).await);
        expect(204, ann.delete(&paths[1]).await);
        assert_eq!(marked(&ben, root, "").await, ["Three."]);
        assert_eq!(ben.put(&bookmark(1), Value::Null).await.0, 404, "the message is hidden");
        app.close().await;
    }
}
