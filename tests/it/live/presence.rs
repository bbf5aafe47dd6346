//! Events about users: presence, typing indicators, and events for one user only.

use realtime::envelope::Envelope;
use realtime::topic::Topic;
use serde_json::{Value, json};

use crate::live::fixture::{LiveFixture, Note, code};
use crate::support::http_client::expect;
use crate::support::ws_client::WsClient;

#[tokio::test]
async fn typing_is_shown_to_others_until_it_expires() {
    let fixture = LiveFixture::open().await;
    let (ann, bob) = (
        WsClient::subscribed(&fixture.ann, fixture.conversation.0).await,
        fixture.bobs_ws_client().await,
    );
    let typing = json!({"op": "typing", "conversation_id": fixture.conversation, "active": true});

    assert_eq!(bob.call(typing).await["ok"], true);

    let event = ann
        .wait_for("typing", |it| it["type"] == "human_typing")
        .await;
    assert_eq!(
        event,
        json!({"type": "human_typing", "conversation_id": fixture.conversation, "membership_id": fixture.bobs_seat, "active": true})
    );
    fixture.house.app.clock.advance_ms(6_000);
    let has_ended = |it: &Value| it["type"] == "human_typing" && it["active"] == false;
    ann.wait_for("the end of typing", has_ended).await;
    bob.call(json!({"op": "ping"})).await;
    assert!(bob.log().iter().all(|it| it["type"] != "human_typing"));
    fixture.close().await;
}

#[tokio::test]
async fn typing_ends_with_the_socket() {
    let fixture = LiveFixture::open().await;
    let (ann, bob) = (
        WsClient::subscribed(&fixture.ann, fixture.conversation.0).await,
        fixture.bobs_ws_client().await,
    );
    bob.call(json!({"op": "typing", "conversation_id": fixture.conversation, "active": true}))
        .await;

    drop(bob);

    ann.wait_for("the end of typing", |it| {
        it["type"] == "human_typing" && it["active"] == false
    })
    .await;
    fixture.close().await;
}

#[tokio::test]
async fn an_observer_cannot_send_typing() {
    let fixture = LiveFixture::open().await;
    let path = format!("/api/memberships/{}", fixture.bobs_seat);
    expect(
        200,
        fixture
            .ann
            .patch(&path, json!({"participation": "observer"}))
            .await,
    );
    let client = fixture.bobs_ws_client().await;

    let typing = json!({"op": "typing", "conversation_id": fixture.conversation, "active": true});

    assert_eq!(code(&client.call(typing).await), "forbidden");
    fixture.close().await;
}

#[tokio::test]
async fn presence_and_away_state_are_shown_to_everyone() {
    let fixture = LiveFixture::open().await;
    let ann = WsClient::subscribed(&fixture.ann, fixture.conversation.0).await;
    let of_bob = |state: Option<&'static str>| {
        let membership = fixture.bobs_seat;
        move |it: &Value| {
            let members = it["members"].as_array();
            let found =
                members.and_then(|all| all.iter().find(|one| one["membership_id"] == membership));
            it["type"] == "presence_updated" && found.and_then(|it| it["state"].as_str()) == state
        }
    };

    let bob = fixture.bobs_ws_client().await;
    let (at, _) = ann
        .wait_after(0, "Bob is online", of_bob(Some("online")))
        .await;
    assert_eq!(
        bob.call(json!({"op": "away", "away": true})).await["ok"],
        true
    );
    let (at, _) = ann
        .wait_after(at, "Bob is away", of_bob(Some("away")))
        .await;
    drop(bob);
    ann.wait_after(at, "Bob is offline", of_bob(None)).await;
    fixture.close().await;
}

#[tokio::test]
async fn user_events_reach_only_sockets_of_that_user() {
    let fixture = LiveFixture::open().await;
    let (ann, bob) = (
        WsClient::open(&fixture.ann).await,
        WsClient::open(&fixture.bob).await,
    );
    // The first answer shows that the socket has subscribed to its user topic.
    for client in [&ann, &bob] {
        client.call(json!({"op": "ping"})).await;
    }

    let note = Note {
        text: "for Bob".into(),
    };
    fixture
        .house
        .app
        .hub
        .publish(Envelope::plain(Topic::User(fixture.bobs_id), &note));

    bob.wait_for("the note", |it| it["type"] == "note").await;
    ann.call(json!({"op": "ping"})).await;
    assert!(ann.log().iter().all(|it| it["type"] != "note"));
    fixture.close().await;
}

#[tokio::test]
async fn read_marks_reach_only_other_windows_of_the_user() {
    let fixture = LiveFixture::open().await;
    let (ann, bob) = (
        WsClient::open(&fixture.ann).await,
        WsClient::open(&fixture.bob).await,
    );
    for client in [&ann, &bob] {
        client.call(json!({"op": "ping"})).await;
    }
    let conversation = fixture.conversation.0;
    for text in ["one", "two"] {
        expect(
            201,
            fixture.ann.post_message(conversation, text, None).await,
        );
    }
    let path = format!("/api/conversations/{conversation}/read");

    for seq in [2, 1, 2] {
        expect(204, fixture.bob.post(&path, json!({"seq": seq})).await);
    }

    bob.wait_for("the mark", |it| it["type"] == "read_updated")
        .await;
    for client in [&ann, &bob] {
        client.call(json!({"op": "ping"})).await;
    }
    let marks = |client: &WsClient| -> Vec<Value> {
        let log = client.log().into_iter();
        log.filter(|it| it["type"] == "read_updated").collect()
    };
    assert_eq!(
        marks(&bob),
        [json!({"type": "read_updated", "conversation_id": conversation, "last_read_seq": 2})]
    );
    assert_eq!(marks(&ann), [] as [Value; 0]);
    fixture.close().await;
}
