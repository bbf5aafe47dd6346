//! Revoked permissions take effect immediately, also on open sockets.

use std::sync::Arc;

use base::ids::MembershipId;
use futures::{SinkExt, StreamExt};
use realtime::envelope::{Envelope, SocketControl};
use realtime::receivers::Receivers;
use realtime::topic::Topic;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::live::fixture::{LiveFixture, Note, code, register};
use crate::support::backends::on_both;
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::{HttpClient, expect, id, token_of};
use crate::support::ws_client::{WsClient, connect};

#[tokio::test]
async fn a_removed_member_receives_no_more_events() {
    let fixture = LiveFixture::open().await;
    let client = fixture.bobs_ws_client().await;
    client
        .call(json!({"op": "subscribe_space", "space_id": fixture.space}))
        .await;
    let remaining = WsClient::subscribed(&fixture.ann, fixture.conversation.0).await;

    let path = format!("/api/memberships/{}", fixture.bobs_seat);
    expect(204, fixture.ann.delete(&path).await);

    let event = client.wait_for("the event", |it| {
        it["type"] == "unsubscribed" && it.get("conversation_id").is_some()
    });
    assert_eq!(
        event.await,
        json!({
            "type": "unsubscribed",
            "conversation_id": fixture.conversation,
            "reason": "removed",
        })
    );
    client
        .wait_for("the event of the space", |it| {
            it["type"] == "unsubscribed" && it["space_id"] == fixture.space.0
        })
        .await;
    fixture.publish(&Note {
        text: "secret".into(),
    });
    remaining
        .wait_for("the note", |it| it["type"] == "note")
        .await;
    client.call(json!({"op": "ping"})).await;
    assert!(client.log().iter().all(|it| it["type"] != "note"));
    let again = client.subscribe(fixture.conversation.0, None).await;
    assert_eq!(again["error"]["code"], "not_found");
    fixture.close().await;
}

on_both! {
    async fn a_removed_admin_reads_on_without_a_membership(backend) {
        let fixture = LiveFixture::open_on(backend, &[], |_| {}).await;
        let (reader, readers_id) = register(&fixture.house.base, "reader").await;
        for user in [fixture.bobs_id.0, readers_id] {
            let path = format!("/api/admin/users/{user}");
            expect(200, fixture.ann.patch(&path, json!({"role": "admin"})).await);
        }
        let (bob, reader) = (fixture.bobs_ws_client().await, WsClient::subscribed(&reader, fixture.conversation.0).await);
        for client in [&bob, &reader] {
            client.call(json!({"op": "subscribe_space", "space_id": fixture.space})).await;
        }
        let publish = |topic, text: &str, receivers| {
            let note = Note { text: text.into() };
            let envelope = Envelope { receivers, ..Envelope::plain(topic, &note) };
            fixture.house.app.hub.publish(envelope);
        };
        let bobs_seat = || Arc::from([MembershipId(fixture.bobs_seat)]);
        let topics = [Topic::Conversation(fixture.conversation), Topic::Space(fixture.space)];
        publish(topics[0], "to Bob", Receivers::Only(bobs_seat()));
        bob.wait_for("the note", |it| it["text"] == "to Bob").await;

        expect(204, fixture.ann.delete(&format!("/api/memberships/{}", fixture.bobs_seat)).await);
        bob.wait_for("a resync", |it| it["type"] == "resync").await;
        let again = bob.subscribe(fixture.conversation.0, None).await;

        assert_eq!(again["ok"], true, "{again}");
        assert!(fixture.house.app.presence.members(fixture.conversation).is_empty());
        for topic in topics {
            publish(topic, "whispered", Receivers::Only(bobs_seat()));
            publish(topic, "of others", Receivers::Except(bobs_seat()));
            publish(topic, "public", Receivers::Everyone);
        }
        for client in [&bob, &reader] {
            let n_public = || client.log().iter().filter(|it| it["text"] == "public").count();
            client.wait_for("both notes", |_| n_public() == 2).await;
            let count = |text: &str| client.log().iter().filter(|it| it["text"] == text).count();
            assert_eq!((count("whispered"), count("of others")), (0, 2));
        }
        let resyncs = [&bob, &reader].map(|client| client.log().iter().filter(|it| it["type"] == "resync").count());
        assert_eq!(resyncs, [1, 0], "who never was a member is not disturbed");
        fixture.close().await;
    }
}

#[tokio::test]
async fn a_demoted_member_still_receives_events() {
    let fixture = LiveFixture::open().await;
    let client = fixture.bobs_ws_client().await;

    let path = format!("/api/memberships/{}", fixture.bobs_seat);
    expect(
        200,
        fixture.ann.patch(&path, json!({"role": "guest"})).await,
    );

    fixture.publish(&Note {
        text: "still here".into(),
    });
    client.wait_for("the note", |it| it["type"] == "note").await;
    fixture.close().await;
}

#[tokio::test]
async fn a_deleted_conversation_sends_no_more_events() {
    let fixture = LiveFixture::open().await;
    let path = format!("/api/spaces/{}/conversations", fixture.space);
    let other = expect(201, fixture.ann.post(&path, json!({})).await);
    let other = id(&other);
    let client = WsClient::subscribed(&fixture.bob, other).await;

    let path = format!("/api/conversations/{other}");
    expect(204, fixture.ann.delete(&path).await);

    client
        .wait_for("the event", |it| {
            it["type"] == "unsubscribed" && it["conversation_id"] == other
        })
        .await;
    fixture.close().await;
}

#[tokio::test]
async fn a_deleted_space_sends_no_more_events() {
    let fixture = LiveFixture::open().await;
    let client = fixture.bobs_ws_client().await;

    expect(
        204,
        fixture
            .ann
            .delete(&format!("/api/spaces/{}", fixture.space))
            .await,
    );

    client
        .wait_for("the event", |it| it["type"] == "unsubscribed")
        .await;
    fixture.close().await;
}

/// Returns the code and the reason with which the server closes.
async fn closing(socket: &mut crate::support::ws_client::Socket) -> (u16, String) {
    loop {
        match socket.next().await {
            Some(Ok(Message::Close(Some(frame)))) => {
                return (frame.code.into(), frame.reason.to_string());
            }
            Some(Ok(_)) => {}
            other => panic!("expected a close frame, got {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_session_that_ends_closes_its_sockets_and_no_others() {
    let fixture = LiveFixture::open().await;
    let second = HttpClient::sign_in(&fixture.house.base, "bob").await;
    let mut socket = connect(&fixture.bob).await.unwrap();
    let other = WsClient::open(&second).await;

    expect(204, fixture.bob.delete("/api/session").await);

    assert_eq!(
        closing(&mut socket).await,
        (4001, "session ended".to_owned())
    );
    assert_eq!(other.call(json!({"op": "ping"})).await["ok"], true);
    fixture.close().await;
}

#[tokio::test]
async fn a_disabled_account_closes_every_socket() {
    let fixture = LiveFixture::open().await;
    let mut socket = connect(&fixture.bob).await.unwrap();
    socket
        .send(Message::text(r#"{"id":1,"op":"ping"}"#))
        .await
        .unwrap();
    socket.next().await.unwrap().unwrap();

    let order = Envelope::control(fixture.bobs_id, SocketControl::Disabled);
    fixture.house.app.hub.publish(order);

    assert_eq!(closing(&mut socket).await.0, 4001);
    fixture.close().await;
}

#[tokio::test]
async fn a_revoked_key_closes_the_sockets_it_opened() {
    let fixture = LiveFixture::open().await;
    let made = expect(
        201,
        fixture
            .bob
            .post("/api/api_keys", json!({"name": "k"}))
            .await,
    );
    let mut request = format!("{}/ws", fixture.house.base.replacen("http", "ws", 1))
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
        fixture
            .bob
            .delete(&format!("/api/api_keys/{}", made["id"]))
            .await,
    );

    assert_eq!(closing(&mut socket).await, (4001, "key revoked".to_owned()));
    fixture.close().await;
}

#[tokio::test]
async fn a_closing_server_asks_clients_to_reconnect() {
    let fixture = LiveFixture::open().await;
    let mut socket = connect(&fixture.bob).await.unwrap();
    socket
        .send(Message::text(r#"{"id":1,"op":"ping"}"#))
        .await
        .unwrap();
    socket.next().await.unwrap().unwrap();

    let (closed, ()) = tokio::join!(closing(&mut socket), fixture.close());

    assert_eq!(closed, (1012, "restart".to_owned()));
}

#[tokio::test]
async fn a_new_password_closes_the_sockets_of_every_session() {
    let fixture = LiveFixture::open().await;
    let elsewhere = HttpClient::sign_in(&fixture.house.base, "bob").await;
    let mut sockets = [
        connect(&fixture.bob).await.unwrap(),
        connect(&elsewhere).await.unwrap(),
    ];
    let anns = WsClient::open(&fixture.ann).await;

    let change = json!({"password": "another horse", "current_password": "correct horse battery"});
    let (_, cookie) = fixture
        .bob
        .patch_with_cookie("/api/users/me", &change)
        .await;

    for socket in &mut sockets {
        assert_eq!(closing(socket).await, (4001, "session ended".to_owned()));
    }
    let bob = fixture.bob.with_cookie(cookie.unwrap());
    WsClient::subscribed(&bob, fixture.conversation.0).await;
    assert_eq!(anns.call(json!({"op": "ping"})).await["ok"], true);
    fixture.close().await;
}

#[tokio::test]
async fn permissions_are_checked_for_every_frame() {
    let fixture = LiveFixture::open().await;
    let client = fixture.bobs_ws_client().await;
    let typing = json!({"op": "typing", "conversation_id": fixture.conversation, "active": true});
    assert_eq!(client.call(typing.clone()).await["ok"], true);

    let path = format!("/api/memberships/{}", fixture.bobs_seat);
    let silent = json!({"participation": "observer"});
    expect(200, fixture.ann.patch(&path, silent).await);
    assert_eq!(code(&client.call(typing.clone()).await), "forbidden");

    let mut facts = DatabaseFacts::open(&fixture.house.database).await;
    facts
        .execute(&format!(
            "UPDATE users SET status = 'disabled' WHERE id = {}",
            fixture.bobs_id
        ))
        .await;
    assert_eq!(code(&client.call(typing).await), "not_found");
    let again = client.subscribe(fixture.conversation.0, None).await;
    assert_eq!(code(&again), "not_found");
    let space = json!({"op": "subscribe_space", "space_id": fixture.space});
    assert_eq!(code(&client.call(space).await), "not_found");
    fixture.close().await;
}

#[tokio::test]
async fn joins_and_leaves_are_announced_to_the_space() {
    let fixture = LiveFixture::open().await;
    let client = fixture.bobs_ws_client().await;
    client
        .call(json!({"op": "subscribe_space", "space_id": fixture.space}))
        .await;
    let invite = fixture
        .ann
        .invite(fixture.space.0, json!({"role": "guest"}))
        .await;

    let (zoe, answer) =
        HttpClient::join_by_link(&fixture.house.base, token_of(&invite), "Zoe").await;

    let membership = &answer["membership"];
    let is_hers = |it: &Value| it["membership"]["id"] == membership["id"];
    let (at, event) = client.wait_after(0, "Zoe's membership", is_hers).await;
    assert_eq!(
        event,
        json!({"type": "membership_updated", "space_id": fixture.space, "membership": membership})
    );
    expect(204, zoe.delete("/api/session").await);
    let (_, event) = client
        .wait_after(at, "the removed membership", is_hers)
        .await;
    assert_eq!(event["membership"]["status"], "removed");
    fixture.close().await;
}

#[tokio::test]
async fn deletions_are_announced_to_subscribers_of_the_space() {
    let fixture = LiveFixture::open().await;
    let path = format!("/api/spaces/{}/conversations", fixture.space);
    let other = id(&expect(201, fixture.ann.post(&path, json!({})).await));
    let client = WsClient::open(&fixture.bob).await;
    client
        .call(json!({"op": "subscribe_space", "space_id": fixture.space}))
        .await;

    let path = format!("/api/conversations/{other}");
    expect(204, fixture.ann.delete(&path).await);
    let event = client.wait_for("the event", |it| it["type"] == "conversation_deleted");
    assert_eq!(
        event.await,
        json!({"type": "conversation_deleted", "space_id": fixture.space, "conversation_id": other})
    );

    let path = format!("/api/spaces/{}", fixture.space);
    expect(204, fixture.ann.delete(&path).await);
    let event = client.wait_for("the event", |it| it["type"] == "space_deleted");
    assert_eq!(
        event.await,
        json!({"type": "space_deleted", "space_id": fixture.space})
    );
    fixture.close().await;
}
