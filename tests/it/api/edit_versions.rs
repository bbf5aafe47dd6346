//! Tests of edits with a version: an edit names the version that it is based on, so concurrent
//! edits of one message lose no text.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::poll;

/// Creates a space in which Ada posted the greeting "Hi." and has one alternate greeting.
async fn create_greeted_space(ann: &HttpClient) -> (Value, Value) {
    let space = ann
        .create_space("Space", json!({"reply_order": "manual"}))
        .await;
    let card = json!({"name": "Ada", "first_mes": "Hi.", "alternate_greetings": ["Ho."]});
    let character = expect(201, ann.post("/api/characters", card).await);
    ann.add_character(&space, &character).await;
    let greeting = ann.messages(root_of(&space)).await.remove(0);
    (space, greeting)
}

async fn edit(person: &HttpClient, message: &Value, content: &str, version: i64) -> (u16, Value) {
    let path = format!("/api/messages/{}", id(message));
    let body = json!({"content": content, "expected_version": version});
    person.patch(&path, body).await
}

async fn edit_with_header(
    person: &HttpClient,
    message: &Value,
    body: Value,
    header: &str,
) -> (u16, Value) {
    let answer = reqwest::Client::new()
        .patch(format!("{}/api/messages/{}", person.base(), id(message)))
        .header("cookie", person.cookie())
        .header("if-match", header)
        .json(&body)
        .send()
        .await
        .expect("the server answers");
    let status = answer.status().as_u16();
    (status, answer.json().await.expect("the response is JSON"))
}

fn error(answer: &(u16, Value)) -> (u16, &str) {
    (
        answer.0,
        answer.1["error"]["code"].as_str().unwrap_or_default(),
    )
}

on_sqlite! {
    async fn of_many_edits_from_one_version_one_succeeds_and_the_others_get_its_text(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, greeting) = create_greeted_space(&ann).await;
        assert_eq!(greeting["version"], 1);
        let texts: Vec<String> = (0..8).map(|n| format!("Text {n}.")).collect();

        let answers = join_all(texts.iter().map(|it| edit(&ann, &greeting, it, 1))).await;

        let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|it| it.0 == 200);
        assert_eq!(won.len(), 1, "{answers:?}");
        for it in &lost {
            assert_eq!(error(it), (409, "edit_conflict"));
            let current = &it.1["error"]["current"];
            assert_eq!(current["id"], greeting["id"]);
            assert_eq!((&current["content"], &current["version"]), (&won[0].1["content"], &json!(2)));
        }
        app.close().await;
    }

    async fn an_edit_records_its_editor(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, greeting) = create_greeted_space(&ann).await;
        let memberships = expect(200, ann.get(&format!("/api/spaces/{}/memberships", id(&space))).await);
        let own = memberships["data"].as_array().unwrap().iter().find(|it| it["kind"] == "human").unwrap();

        let edited = expect(200, edit(&ann, &greeting, "Hey.", 1).await);

        assert!(greeting["edited_by"].is_null());
        assert_eq!(edited["edited_by"], own["id"]);
        app.close().await;
    }

    async fn an_edit_without_the_current_version_changes_nothing(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, greeting) = create_greeted_space(&ann).await;
        let path = format!("/api/messages/{}", id(&greeting));
        let text = json!({"content": "Hey."});

        assert_eq!(error(&ann.patch(&path, text.clone()).await), (400, "missing_field"));
        assert_eq!(error(&ann.patch(&path, json!({"content": "Hey.", "expected_version": "1"})).await), (400, "invalid_type"));
        assert_eq!(error(&edit(&ann, &greeting, "Hey.", 2).await), (409, "edit_conflict"));
        assert_eq!(error(&edit(&ann, &greeting, "Hey.", 0).await), (409, "edit_conflict"));
        assert_eq!(error(&edit_with_header(&ann, &greeting, text.clone(), "*").await), (400, "invalid_value"));
        let both = json!({"content": "Hey.", "expected_version": 1});
        assert_eq!(error(&edit_with_header(&ann, &greeting, both, "\"2\"").await), (400, "invalid_value"));
        assert_eq!(ann.messages(root_of(&space)).await[0]["content"], "Hi.");

        let edited = expect(200, edit_with_header(&ann, &greeting, text, "\"1\"").await);
        assert_eq!((&edited["content"], &edited["version"]), (&json!("Hey."), &json!(2)));
        app.close().await;
    }

    async fn the_version_grows_with_each_change_of_the_shown_text_and_with_nothing_else(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (space, greeting) = create_greeted_space(&ann).await;
        let path = format!("/api/messages/{}", id(&greeting));
        let select = format!("{path}/swipes/select");

        let edited = expect(200, edit(&ann, &greeting, "Hey.", 1).await);
        let same = expect(200, edit(&ann, &greeting, "Hey.", 2).await);
        let other = expect(200, ann.post(&select, json!({"position": 1, "expected_version": 2})).await);
        let excluded = expect(200, ann.patch(&path, json!({"visibility": "excluded"})).await);
        let stale = ann.post(&select, json!({"position": 0, "expected_version": 2})).await;

        let versions = [edited, same, other, excluded].map(|it| it["version"].as_i64().unwrap());
        assert_eq!(versions, [2, 2, 3, 3]);
        assert_eq!(error(&stale), (409, "edit_conflict"));
        assert_eq!(stale.1["error"]["current"]["content"], "Ho.");

        let regenerate = format!("/api/conversations/{}/regenerate", root_of(&space));
        expect(202, ann.post(&regenerate, json!({})).await);
        let written = poll::until("the regenerated text is stored", async || {
            let message = ann.messages(root_of(&space)).await.remove(0);
            (message["swipes"]["count"] == 3).then_some(message)
        })
        .await;
        assert_eq!(written["version"], 4);
        app.close().await;
    }
}
