//! Tests of swipes over HTTP: list, selection and regeneration.

use serde_json::{Value, json};

use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::on_sqlite;
use crate::support::http_client::{HttpClient, expect, id, root_of};
use crate::support::poll;

/// Creates a space in which Ada has posted her greeting and has one alternate greeting.
async fn create_greeted_space(ann: &HttpClient) -> (i64, i64) {
    let space = ann
        .create_space("Room", json!({"reply_order": "manual"}))
        .await;
    let card = json!({"name": "Ada", "first_mes": "Hi.", "alternate_greetings": ["Ho there."]});
    let character = expect(201, ann.post("/api/characters", card).await);
    ann.add_character(&space, &character).await;
    let conversation = root_of(&space);
    (conversation, id(&ann.messages(conversation).await[0]))
}

async fn select(person: &HttpClient, message: i64, position: i64) -> (u16, Value) {
    let path = format!("/api/messages/{message}/swipes/select?html=true");
    person.post(&path, json!({"position": position})).await
}

/// Returns the membership of a person, as the author of a new message.
async fn posted_by(person: &HttpClient, conversation: i64) -> Value {
    let posted = person.post_message(conversation, "Who am I?", None).await;
    expect(201, posted)["message"]["space_membership_id"].clone()
}

fn refusal(answer: &(u16, Value)) -> (u16, &str) {
    (
        answer.0,
        answer.1["error"]["code"].as_str().unwrap_or_default(),
    )
}

on_sqlite! {
    async fn another_greeting_can_be_selected_and_the_first_one_again(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (conversation, greeting) = create_greeted_space(&ann).await;
        let before = ann.conversation(conversation).await["rev"].as_i64().unwrap();

        let other = expect(200, select(&ann, greeting, 1).await);
        let same = expect(200, select(&ann, greeting, 1).await);
        let first = expect(200, select(&ann, greeting, 0).await);

        assert_eq!(other["content"], "Ho there.");
        assert!(other["html"].as_str().unwrap().contains("Ho there."));
        assert_eq!(other["metadata"], json!({"greeting": true}));
        assert_eq!(other["rev"], before + 1);
        assert_eq!(same["rev"], before + 1, "an unchanged selection was published");
        assert_eq!((first["content"].as_str(), first["swipes"]["active"].as_i64()), (Some("Hi."), Some(0)));
        assert_eq!(ann.conversation(conversation).await["rev"], before + 2);
        let own = posted_by(&ann, conversation).await;
        assert_eq!(other["swipes"], json!({"count": 2, "active": 1, "chosen_by": own}));
        app.close().await;
    }

    async fn an_edit_stays_with_the_edited_swipe(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, greeting) = create_greeted_space(&ann).await;
        let path = format!("/api/messages/{greeting}");
        expect(200, ann.patch(&path, json!({"content": "Hey.", "expected_version": 1})).await);

        let other = expect(200, select(&ann, greeting, 1).await);
        let edited = expect(200, select(&ann, greeting, 0).await);

        assert!(other["edited_at"].is_null());
        assert_eq!(edited["content"], "Hey.");
        assert!(edited["edited_at"].is_string());
        app.close().await;
    }

    async fn only_an_existing_swipe_can_be_selected(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (_, greeting) = create_greeted_space(&ann).await;

        for position in [2, -1, i64::MAX] {
            let answer = select(&ann, greeting, position).await;
            assert_eq!(refusal(&answer), (422, "invalid_value"), "{position}");
            assert_eq!(answer.1["error"]["param"], "position");
        }
        assert_eq!(refusal(&select(&ann, 9_999, 0).await), (404, "not_found"));
        app.close().await;
    }

    async fn a_swipe_of_an_earlier_message_can_be_selected(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (conversation, greeting) = create_greeted_space(&ann).await;
        let posted = expect(201, ann.post_message(conversation, "Good evening.", None).await);

        let earlier = expect(200, select(&ann, greeting, 1).await);
        let own = expect(200, select(&ann, id(&posted["message"]), 0).await);
        let path = format!("/api/messages/{}", posted["message"]["id"]);
        expect(204, ann.delete(&path).await);
        let gone = select(&ann, id(&posted["message"]), 0).await;

        assert_eq!(earlier["content"], "Ho there.");
        assert_eq!(own["swipes"], json!({"count": 1, "active": 0, "chosen_by": null}));
        assert_eq!(refusal(&gone), (404, "not_found"));
        app.close().await;
    }

    async fn only_the_newest_message_of_a_character_is_continued(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (conversation, greeting) = create_greeted_space(&ann).await;
        let (elsewhere, other) = create_greeted_space(&ann).await;
        let path = format!("/api/conversations/{conversation}/continue");
        let go_on = async |body: Value| ann.post(&path, body).await;

        let planned = expect(202, go_on(json!({"message_id": greeting})).await);
        expect(202, ann.stop(conversation).await);
        let foreign = go_on(json!({"message_id": other})).await;
        expect(201, ann.post_message(conversation, "Good evening.", None).await);
        let messages = ann.messages(conversation).await;
        let human = go_on(json!({"message_id": id(&messages[1])})).await;
        let older = go_on(json!({"message_id": greeting})).await;
        let newest = go_on(json!({})).await;
        expect(204, ann.delete(&format!("/api/messages/{greeting}")).await);
        let hidden = go_on(json!({"message_id": greeting})).await;
        let none = go_on(json!({})).await;
        let unknown = go_on(json!({"message": greeting})).await;

        assert_eq!(planned["run"]["kind"], "continue");
        assert_eq!(planned["run"]["reason"], "continue");
        assert_eq!(planned["run"]["target_message_id"], greeting);
        assert_ne!(elsewhere, conversation);
        for (refused, expected) in [
            (foreign, (404, "not_found")),
            (human, (409, "not_the_newest")),
            (older, (409, "not_the_newest")),
            (newest, (409, "not_the_newest")),
            (hidden, (404, "not_found")),
            (none, (422, "nothing_to_continue")),
            (unknown, (400, "unknown_field")),
        ] {
            assert_eq!(refusal(&refused), expected);
        }
        app.close().await;
    }

    async fn regenerating_requires_a_generated_message(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (conversation, greeting) = create_greeted_space(&ann).await;
        let path = format!("/api/conversations/{conversation}/regenerate");

        let planned = expect(202, ann.post(&path, json!({"message_id": greeting})).await);
        expect(202, ann.stop(conversation).await);
        expect(201, ann.post_message(conversation, "Good evening.", None).await);

        assert_eq!(planned["run"]["kind"], "regenerate");
        assert_eq!(planned["run"]["target_message_id"], greeting);
        assert_eq!(planned["conversation_id"], conversation);
        let users = ann.post(&path, json!({})).await;
        assert_eq!(refusal(&users), (422, "nothing_to_regenerate"));
        let unknown = ann.post(&path, json!({"message_id": 9_999})).await;
        assert_eq!(refusal(&unknown), (404, "not_found"));
        app.close().await;
    }

    async fn patch_selects_a_swipe_and_a_stale_version_changes_nothing(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let (conversation, greeting) = create_greeted_space(&ann).await;
        expect(201, ann.post_message(conversation, "Good evening.", None).await);
        let path = format!("/api/messages/{greeting}/swipe");

        let chosen = expect(200, ann.patch(&path, json!({"position": 1, "expected_version": 1})).await);
        let stale = ann.patch(&path, json!({"position": 0, "expected_version": 1})).await;

        assert_eq!((&chosen["content"], &chosen["version"]), (&json!("Ho there."), &json!(2)));
        assert_eq!(refusal(&stale), (409, "edit_conflict"));
        assert_eq!(stale.1["error"]["current"]["swipes"]["active"], 1);
        app.close().await;
    }

    async fn only_moderators_regenerate_in_place_and_only_an_ai_message(backend) {
        let app = TestApp::start_with(backend, OPEN_REGISTRATION).await;
        let ann = app.admin().await;
        let (conversation, greeting) = create_greeted_space(&ann).await;
        let posted = expect(201, ann.post_message(conversation, "Good evening.", None).await);
        let cyd = HttpClient::register(&app.base, "cyd").await;
        let space = ann.conversation(conversation).await["space_id"].as_i64().unwrap();
        ann.add_member(space, &cyd, "member").await;
        let path = format!("/api/conversations/{conversation}/regenerate");

        let by_member = cyd.post(&path, json!({"message_id": greeting, "in_place": true})).await;
        let of_human = ann.post(&path, json!({"message_id": posted["message"]["id"], "in_place": true})).await;
        let planned = expect(202, ann.post(&path, json!({"message_id": greeting, "in_place": true})).await);
        let written = poll::until("the new version is stored", async || {
            let message = ann.messages(conversation).await.remove(0);
            (message["swipes"]["count"] == 3).then_some(message)
        })
        .await;

        assert_eq!(refusal(&by_member), (403, "forbidden"));
        assert_eq!(refusal(&of_human), (422, "not_an_ai_message"));
        assert_eq!(planned["conversation_id"], conversation);
        assert_eq!(planned["run"]["target_message_id"], greeting);
        assert_eq!(written["swipes"], json!({"count": 3, "active": 2, "chosen_by": null}));
        assert_eq!(ann.messages(conversation).await[1]["content"], "Good evening.");
        app.close().await;
    }
}
