//! Events about users: presence, typing indicators, and events for one user only.

use realtime::event::Envelope;
use realtime::topic::Topic;
use serde_json::{Value, json};

use crate::live::fixture::{LiveFixture, Note, code};
use crate::support::http_client::expect;
use crate::support::ws_client::WsClient;

#[tokio::test]
async fn typing_is_shown_to_others_until_it_expires() {
    let stage = LiveFixture::open().await;
    let (ann, bob) = (
        WsClient::subscribed(&stage.ann, stage.conversation.0).await,
        stage.bobs_ws_client().await,
    );
    let typing = json!({"op": "typing", "conversation_id": stage.conversation, "active": true});

    assert_eq!(bob.call(typing).await["ok"], true);

    let told = ann
        .wait_for("typing", |it| it["type"] == "human_typing")
        .await;
    assert_eq!(
        told,
        json!({"type": "human_typing", "conversation_id": stage.conversation, "membership_id": stage.bobs_seat, "active": true})
    );
    stage.house.app.clock.advance_ms(6_000);
    let told = |it: &Value| it["type"] == "human_typing" && it["active"] == false;
    ann.wait_for("the end of typing", told).await;
    bob.call(json!({"op": "ping"})).await;
    assert!(bob.log().iter().all(|it| it["type"] != "human_typing"));
    stage.close().await;
}

#[tokio::test]
async fn typing_ends_with_the_socket() {
    let stage = LiveFixture::open().await;
    let (ann, bob) = (
        WsClient::subscribed(&stage.ann, stage.conversation.0).await,
        stage.bobs_ws_client().await,
    );
    bob.call(json!({"op": "typing", "conversation_id": stage.conversation, "active": true}))
        .await;

    drop(bob);

    ann.wait_for("the end of typing", |it| {
        it["type"] == "human_typing" && it["active"] == false
    })
    .await;
    stage.close().await;
}

#[tokio::test]
async fn an_observer_reads_and_does_not_type() {
    let stage = LiveFixture::open().await;
    let seat = format!("/api/memberships/{}", stage.bobs_seat);
    expect(
        200,
        stage
            .ann
            .patch(&seat, json!({"participation": "observer"}))
            .await,
    );
    let ear = stage.bobs_ws_client().await;

    let typing = json!({"op": "typing", "conversation_id": stage.conversation, "active": true});

    assert_eq!(code(&ear.call(typing).await), "forbidden");
    stage.close().await;
}

#[tokio::test]
async fn presence_and_away_state_are_shown_to_everyone() {
    let stage = LiveFixture::open().await;
    let ann = WsClient::subscribed(&stage.ann, stage.conversation.0).await;
    let of_bob = |state: Option<&'static str>| {
        let seat = stage.bobs_seat;
        move |it: &Value| {
            let members = it["members"].as_array();
            let found = members.and_then(|all| all.iter().find(|one| one["membership_id"] == seat));
            it["type"] == "presence_updated" && found.and_then(|it| it["state"].as_str()) == state
        }
    };

    let bob = stage.bobs_ws_client().await;
    let (at, _) = ann.wait_after(0, "Bob comes", of_bob(Some("online"))).await;
    assert_eq!(
        bob.call(json!({"op": "away", "away": true})).await["ok"],
        true
    );
    let (at, _) = ann
        .wait_after(at, "Bob looks away", of_bob(Some("away")))
        .await;
    drop(bob);
    ann.wait_after(at, "Bob goes", of_bob(None)).await;
    stage.close().await;
}

#[tokio::test]
async fn what_is_for_one_person_reaches_only_their_sockets() {
    let stage = LiveFixture::open().await;
    let (ann, bob) = (
        WsClient::open(&stage.ann).await,
        WsClient::open(&stage.bob).await,
    );
    // The first answer shows that the socket has subscribed to its user topic.
    for ear in [&ann, &bob] {
        ear.call(json!({"op": "ping"})).await;
    }

    let note = Note {
        text: "for Bob".into(),
    };
    stage
        .house
        .app
        .hub
        .publish(Envelope::plain(Topic::User(stage.bobs_id), &note));

    bob.wait_for("the note", |it| it["type"] == "note").await;
    ann.call(json!({"op": "ping"})).await;
    assert!(ann.log().iter().all(|it| it["type"] != "note"));
    stage.close().await;
}

#[tokio::test]
async fn read_marks_reach_only_other_windows_of_the_user() {
    let stage = LiveFixture::open().await;
    let (ann, bob) = (
        WsClient::open(&stage.ann).await,
        WsClient::open(&stage.bob).await,
    );
    for ear in [&ann, &bob] {
        ear.call(json!({"op": "ping"})).await;
    }
    let conversation = stage.conversation.0;
    for text in ["one", "two"] {
        expect(201, stage.ann.post_message(conversation, text, None).await);
    }
    let path = format!("/api/conversations/{conversation}/read");

    for seq in [2, 1, 2] {
        expect(204, stage.bob.post(&path, json!({"seq": seq})).await);
    }

    bob.wait_for("the mark", |it| it["type"] == "read_updated")
        .await;
    for ear in [&ann, &bob] {
        ear.call(json!({"op": "ping"})).await;
    }
    let marks = |ear: &WsClient| -> Vec<Value> {
        let log = ear.log().into_iter();
        log.filter(|it| it["type"] == "read_updated").collect()
    };
    assert_eq!(
        marks(&bob),
        [json!({"type": "read_updated", "conversation_id": conversation, "last_read_seq": 2})]
    );
    assert_eq!(marks(&ann), [] as [Value; 0]);
    stage.close().await;
}
