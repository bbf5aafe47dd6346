//! Tests of messages that are out of character, and of slow mode, over HTTP.

use serde_json::{Value, json};

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::file_uploads::{fetch, import};
use crate::support::http_client::{HttpClient, expect, root_of};
use crate::support::http_response::refusal;
use crate::support::role_fixture::RoleFixture;

/// Posts a message with these fields.
async fn post(user: &HttpClient, conversation: i64, body: Value) -> (u16, Value) {
    let path = format!("/api/conversations/{conversation}/messages");
    user.post(&path, body).await
}

/// Returns text and mark of each message.
async fn marks(user: &HttpClient, conversation: i64) -> Vec<(String, bool)> {
    let path = format!("/api/conversations/{conversation}/messages");
    let page = expect(200, user.get(&path).await);
    let all = page["data"].as_array().expect("a list").iter();
    all.map(|it| {
        (
            it["content"].as_str().unwrap().to_owned(),
            it["is_ooc"] == true,
        )
    })
    .collect()
}

async fn users(backend: TestBackend) -> (RoleFixture, i64) {
    let (users, _) = RoleFixture::create(backend).await;
    let root = root_of(&users.document);
    (users, root)
}

on_sqlite! {
    async fn a_post_and_a_change_return_the_mark(backend) {
        let (users, root) = users(backend).await;

        let posted = expect(201, post(&users.member, root, json!({"content": "((brb))"})).await);
        let path = format!("/api/messages/{}", posted["message"]["id"]);
        let changed = expect(200, users.moderator.patch(&path, json!({"is_ooc": false})).await);

        assert_eq!((&posted["message"]["is_ooc"], &posted["run"]), (&json!(true), &Value::Null));
        assert_eq!((&changed["is_ooc"], &changed["version"]), (&json!(false), &json!(1)));
        let both = users.member.patch(&path, json!({"is_ooc": true, "visibility": "excluded"})).await;
        assert_eq!(refusal(&both), (422, "invalid_value".to_owned()));
        let null = users.member.patch(&path, json!({"is_ooc": null})).await;
        assert_eq!(null.0, 400);
        users.app.close().await;
    }

    async fn a_text_of_a_character_is_never_out_of_character(backend) {
        let (users, root) = users(backend).await;
        let ada = users.owner.create_character("Ada", Some("Welcome.")).await;
        users.owner.add_character(&users.document, &ada).await;
        let path = format!("/api/conversations/{root}/messages");
        let greeting = expect(200, users.owner.get(&path).await)["data"][0]["id"].clone();

        let marked = users.owner.patch(&format!("/api/messages/{greeting}"), json!({"is_ooc": true})).await;

        assert_eq!(refusal(&marked), (422, "invalid_value".to_owned()));
        assert_eq!(marked.1["error"]["param"], "is_ooc");
        users.app.close().await;
    }

    async fn chat_files_and_space_files_keep_the_mark(backend) {
        let (users, root) = users(backend).await;
        expect(201, post(&users.owner, root, json!({"content": "((Ready?))"})).await);
        expect(201, post(&users.owner, root, json!({"content": "Good evening."})).await);
        let expected = [("((Ready?))".to_owned(), true), ("Good evening.".to_owned(), false)];

        let chat = fetch(&users.owner, &format!("/api/conversations/{root}/export?format=jsonl")).await;
        let lines: Vec<Value> = chat
            .split(|it| *it == b'\n')
            .filter_map(|it| serde_json::from_slice(it).ok())
            .collect();
        assert_eq!(lines[1]["is_system"], true);
        assert_eq!(lines[1]["extra"]["is_ooc"], true);
        assert_eq!((&lines[2]["is_system"], &lines[2]["extra"]["is_ooc"]), (&json!(false), &Value::Null));
        let path = format!("/api/spaces/{}/import", users.space);
        let done = import(&users.owner, &path, "chat.jsonl", &chat).await;
        let imported = done["conversation_id"].as_i64().expect("the import created a conversation");
        assert_eq!(marks(&users.owner, imported).await, expected);

        let file = fetch(&users.owner, &format!("/api/spaces/{}/export", users.space)).await;
        let done = import(&users.owner, "/api/spaces/import", "room.troupe.zip", &file).await;
        let space = expect(200, users.owner.get(&format!("/api/spaces/{}", done["space_id"])).await);
        assert_eq!(marks(&users.owner, root_of(&space)).await, expected);
        users.app.close().await;
    }

    async fn an_early_post_in_slow_mode_names_the_seconds_to_wait(backend) {
        let (users, root) = users(backend).await;
        expect(201, users.member.post_message(root, "Before.", None).await);
        let path = format!("/api/spaces/{}", users.space);
        expect(200, users.moderator.patch(&path, json!({"slow_mode_s": 600})).await);

        let path = format!("/api/conversations/{root}/messages");
        let early = users.member.post(&path, json!({"content": "After."})).await;

        assert_eq!(refusal(&early), (429, "slow_mode".to_owned()));
        let seconds = early.1["error"]["retry_after"].as_u64().expect("a number of seconds");
        assert!((500..=600).contains(&seconds), "{seconds}");
        expect(201, users.moderator.post_message(root, "One.", None).await);
        expect(201, users.moderator.post_message(root, "Two.", None).await);
        assert_eq!(marks(&users.owner, root).await.len(), 3);
        let stranger = users.member.patch(&format!("/api/spaces/{}", users.space), json!({"slow_mode_s": 0})).await;
        assert_eq!(stranger.0, 403);
        users.app.close().await;
    }
}
