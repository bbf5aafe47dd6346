//! Revoked permissions take effect immediately, also on open sockets.

use futures::{SinkExt, StreamExt};
use realtime::event::{Envelope, SocketControl};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::live::fixture::{LiveFixture, Note, code};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id, token_of};
use crate::support::ws_client::{WsClient, connect};

#[tokio::test]
async fn a_removed_member_receives_no_more_events() {
    let stage = LiveFixture::open().await;
    let ear = stage.bobs_ws_client().await;
    ear.call(json!({"op": "subscribe_space", "space_id": stage.space}))
        .await;
    let stays = WsClient::subscribed(&stage.ann, stage.conversation.0).await;

    let seat = format!("/api/memberships/{}", stage.bobs_seat);
    expect(204, stage.ann.delete(&seat).await);

    let told = ear.wait_for("the news", |it| {
        it["type"] == "unsubscribed" && it.get("conversation_id").is_some()
    });
    assert_eq!(
        told.await,
        json!({"type": "unsubscribed", "conversation_id": stage.conversation, "reason": "removed"})
    );
    ear.wait_for("the news of the space", |it| {
        it["type"] == "unsubscribed" && it["space_id"] == stage.space.0
    })
    .await;
    stage.publish(&Note {
        text: "secret".into(),
    });
    stays.wait_for("the note", |it| it["type"] == "note").await;
    ear.call(json!({"op": "ping"})).await;
    assert!(ear.log().iter().all(|it| it["type"] != "note"));
    let again = ear.subscribe(stage.conversation.0, None).await;
    assert_eq!(again["error"]["code"], "not_found");
    stage.close().await;
}

#[tokio::test]
async fn a_demoted_member_still_receives_events() {
    let stage = LiveFixture::open().await;
    let ear = stage.bobs_ws_client().await;

    let seat = format!("/api/memberships/{}", stage.bobs_seat);
    expect(200, stage.ann.patch(&seat, json!({"role": "guest"})).await);

    stage.publish(&Note {
        text: "still here".into(),
    });
    ear.wait_for("the note", |it| it["type"] == "note").await;
    stage.close().await;
}

#[tokio::test]
async fn a_deleted_conversation_sends_no_more_events() {
    let stage = LiveFixture::open().await;
    let path = format!("/api/spaces/{}/conversations", stage.space);
    let other = expect(201, stage.ann.post(&path, json!({})).await);
    let other = id(&other);
    let ear = WsClient::subscribed(&stage.bob, other).await;

    let path = format!("/api/conversations/{other}");
    expect(204, stage.ann.delete(&path).await);

    ear.wait_for("the news", |it| {
        it["type"] == "unsubscribed" && it["conversation_id"] == other
    })
    .await;
    stage.close().await;
}

#[tokio::test]
async fn a_deleted_space_sends_no_more_events() {
    let stage = LiveFixture::open().await;
    let ear = stage.bobs_ws_client().await;

    expect(
        204,
        stage
            .ann
            .delete(&format!("/api/spaces/{}", stage.space))
            .await,
    );

    ear.wait_for("the news", |it| it["type"] == "unsubscribed")
        .await;
    stage.close().await;
}

/// Returns the code and the reason with which the server closes.
async fn closing(socket: &mut crate::support::ws_client::Socket) -> (u16, String) {
    loop {
        match socket.next().await {
            Some(Ok(Message::Close(Some(frame)))) => {
                return (frame.code.into(), frame.reason.to_string());
            }
            Some(Ok(_)) => {}
            other => panic!("the server closes with a word: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_session_that_ends_closes_its_sockets_and_no_others() {
    let stage = LiveFixture::open().await;
    let second = HttpClient::sign_in(&stage.house.base, "bob").await;
    let mut socket = connect(&stage.bob).await.unwrap();
    let other = WsClient::open(&second).await;

    expect(204, stage.bob.delete("/api/session").await);

    assert_eq!(
        closing(&mut socket).await,
        (4001, "session ended".to_owned())
    );
    assert_eq!(other.call(json!({"op": "ping"})).await["ok"], true);
    stage.close().await;
}

#[tokio::test]
async fn a_disabled_account_closes_every_socket() {
    let stage = LiveFixture::open().await;
    let mut socket = connect(&stage.bob).await.unwrap();
    socket
        .send(Message::text(r#"{"id":1,"op":"ping"}"#))
        .await
        .unwrap();
    socket.next().await.unwrap().unwrap();

    let order = Envelope::control(stage.bobs_id, SocketControl::Disabled);
    stage.house.app.hub.publish(order);

    assert_eq!(closing(&mut socket).await.0, 4001);
    stage.close().await;
}

#[tokio::test]
async fn a_revoked_key_closes_the_sockets_it_opened() {
    let stage = LiveFixture::open().await;
    let made = expect(
        201,
        stage.bob.post("/api/api_keys", json!({"name": "k"})).await,
    );
    let mut request = format!("{}/ws", stage.house.base.replacen("http", "ws", 1))
        .into_client_request()
        .unwrap();
    let bearer = format!("Bearer {}", made["key"].as_str().unwrap());
    request
        .headers_mut()
        .insert("authorization", bearer.parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    socket
        .send(Message::text(r#"{"id":1,"op":"ping"}"#))
        .await
        .unwrap();
    socket.next().await.unwrap().unwrap();

    expect(
        204,
        stage
            .bob
            .delete(&format!("/api/api_keys/{}", made["id"]))
            .await,
    );

    assert_eq!(closing(&mut socket).await, (4001, "key revoked".to_owned()));
    stage.close().await;
}

#[tokio::test]
async fn a_closing_server_asks_clients_to_reconnect() {
    let stage = LiveFixture::open().await;
    let mut socket = connect(&stage.bob).await.unwrap();
    socket
        .send(Message::text(r#"{"id":1,"op":"ping"}"#))
        .await
        .unwrap();
    socket.next().await.unwrap().unwrap();

    let (told, ()) = tokio::join!(closing(&mut socket), stage.close());

    assert_eq!(told, (1012, "restart".to_owned()));
}

#[tokio::test]
async fn a_new_password_closes_the_sockets_of_every_session() {
    let stage = LiveFixture::open().await;
    let elsewhere = HttpClient::sign_in(&stage.house.base, "bob").await;
    let mut sockets = [
        connect(&stage.bob).await.unwrap(),
        connect(&elsewhere).await.unwrap(),
    ];
    let anns = WsClient::open(&stage.ann).await;

    let change = json!({"password": "another horse", "current_password": "correct horse battery"});
    let (_, cookie) = stage.bob.patch_with_cookie("/api/users/me", &change).await;

    for socket in &mut sockets {
        assert_eq!(closing(socket).await, (4001, "session ended".to_owned()));
    }
    let bob = stage.bob.with_cookie(cookie.unwrap());
    WsClient::subscribed(&bob, stage.conversation.0).await;
    assert_eq!(anns.call(json!({"op": "ping"})).await["ok"], true);
    stage.close().await;
}

#[tokio::test]
async fn permissions_are_checked_for_every_frame() {
    let stage = LiveFixture::open().await;
    let ear = stage.bobs_ws_client().await;
    let typing = json!({"op": "typing", "conversation_id": stage.conversation, "active": true});
    assert_eq!(ear.call(typing.clone()).await["ok"], true);

    let seat = format!("/api/memberships/{}", stage.bobs_seat);
    let silent = json!({"participation": "observer"});
    expect(200, stage.ann.patch(&seat, silent).await);
    assert_eq!(code(&ear.call(typing.clone()).await), "forbidden");

    let mut facts = DatabaseFacts::open(&stage.house.database).await;
    facts
        .execute(&format!(
            "UPDATE users SET status = 'disabled' WHERE id = {}",
            stage.bobs_id
        ))
        .await;
    assert_eq!(code(&ear.call(typing).await), "not_found");
    let again = ear.subscribe(stage.conversation.0, None).await;
    assert_eq!(code(&again), "not_found");
    let space = json!({"op": "subscribe_space", "space_id": stage.space});
    assert_eq!(code(&ear.call(space).await), "not_found");
    stage.close().await;
}

#[tokio::test]
async fn joins_and_leaves_are_announced_to_the_space() {
    let stage = LiveFixture::open().await;
    let ear = stage.bobs_ws_client().await;
    ear.call(json!({"op": "subscribe_space", "space_id": stage.space}))
        .await;
    let invite = stage
        .ann
        .invite(stage.space.0, json!({"role": "guest"}))
        .await;

    let (zoe, answer) = HttpClient::join_by_link(&stage.house.base, token_of(&invite), "Zoe").await;

    let seat = &answer["membership"];
    let is_hers = |it: &Value| it["membership"]["id"] == seat["id"];
    let (at, told) = ear.wait_after(0, "Zoe's seat", is_hers).await;
    assert_eq!(
        told,
        json!({"type": "membership_updated", "space_id": stage.space, "membership": seat})
    );
    expect(204, zoe.delete("/api/session").await);
    let (_, told) = ear.wait_after(at, "the empty seat", is_hers).await;
    assert_eq!(told["membership"]["status"], "removed");
    stage.close().await;
}

#[tokio::test]
async fn deletions_are_announced_to_every_sidebar() {
    let stage = LiveFixture::open().await;
    let path = format!("/api/spaces/{}/conversations", stage.space);
    let other = id(&expect(201, stage.ann.post(&path, json!({})).await));
    let ear = WsClient::open(&stage.bob).await;
    ear.call(json!({"op": "subscribe_space", "space_id": stage.space}))
        .await;

    let path = format!("/api/conversations/{other}");
    expect(204, stage.ann.delete(&path).await);
    let told = ear.wait_for("the news", |it| it["type"] == "conversation_deleted");
    assert_eq!(
        told.await,
        json!({"type": "conversation_deleted", "space_id": stage.space, "conversation_id": other})
    );

    let path = format!("/api/spaces/{}", stage.space);
    expect(204, stage.ann.delete(&path).await);
    let told = ear.wait_for("the news", |it| it["type"] == "space_deleted");
    assert_eq!(
        told.await,
        json!({"type": "space_deleted", "space_id": stage.space})
    );
    stage.close().await;
}
