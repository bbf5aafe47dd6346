//! A reader that stops reading costs the server bounded memory and does not affect others.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::live::fixture::{LiveFixture, Note};
use crate::support::ws_client::{Socket, WsClient, connect};

/// More than the few mebibytes that the socket buffers of both sides hold.
const FLOOD: usize = 600;
const NOTE_BYTES: usize = 64 * 1024;

async fn subscribed(fixture: &LiveFixture) -> Socket {
    let mut socket = connect(&fixture.bob).await.unwrap();
    socket.send(subscribe_frame(fixture)).await.unwrap();
    assert_eq!(next(&mut socket).await.unwrap()["re"], 1);
    socket
}

fn subscribe_frame(fixture: &LiveFixture) -> Message {
    let frame = json!({"id": 1, "op": "subscribe", "conversation_id": fixture.conversation});
    Message::text(frame.to_string())
}

async fn next(socket: &mut Socket) -> Option<Value> {
    loop {
        match socket.next().await? {
            Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

/// Publishes notes; a reading client gets each note before the next one.
async fn publish_notes(fixture: &LiveFixture, client: &WsClient, n_notes: usize) {
    for n in 0..n_notes {
        let text = format!("{n} {}", "x".repeat(NOTE_BYTES));
        fixture.publish(&Note { text });
        let begins = format!("{n} ");
        client
            .wait_after(client.here().saturating_sub(3), "the note", |it| {
                it["text"]
                    .as_str()
                    .is_some_and(|it| it.starts_with(&begins))
            })
            .await;
    }
}

#[tokio::test]
async fn a_paused_reader_is_reset_and_others_receive_everything() {
    let fixture = LiveFixture::open().await;
    let mut paused = subscribed(&fixture).await;
    let client = WsClient::subscribed(&fixture.ann, fixture.conversation.0).await;

    publish_notes(&fixture, &client, FLOOD).await;

    let mut n_notes = 0;
    let resync = loop {
        let frame = next(&mut paused).await.expect("the socket was closed");
        match frame["type"].as_str() {
            Some("note") => n_notes += 1,
            Some("resync") => break frame,
            _ => {}
        }
    };
    assert!(n_notes < FLOOD, "no note was dropped");
    assert_eq!(resync["conversation_id"], fixture.conversation.0);
    let meter = fixture.house.app.hub.metrics();
    assert_eq!(meter.resyncs.get(), 1);
    assert!(meter.dropped.get() > 0);
    let again = json!({
        "id": 2,
        "op": "subscribe",
        "conversation_id": fixture.conversation,
        "after_rev": 0,
    });
    paused.send(Message::text(again.to_string())).await.unwrap();
    assert_eq!(next(&mut paused).await.unwrap()["re"], 2);
    fixture.publish(&Note {
        text: "fresh".into(),
    });
    loop {
        let frame = next(&mut paused).await.expect("the socket was closed");
        if frame["text"] == "fresh" {
            break;
        }
        assert_ne!(frame["type"], "note", "a dropped note was delivered");
    }
    fixture.close().await;
}

#[tokio::test]
async fn a_reader_that_never_resumes_is_disconnected() {
    let fixture = LiveFixture::open_changed(&[], |app| {
        app.socket_timeouts.write_timeout = Duration::from_millis(300);
    })
    .await;
    let mut paused = subscribed(&fixture).await;
    let client = WsClient::subscribed(&fixture.ann, fixture.conversation.0).await;

    let presence = &fixture.house.app.presence;
    crate::support::poll::until("Bob is disconnected", async || {
        publish_notes(&fixture, &client, 50).await;
        // On a busy machine Bob's queue can overflow before the buffers of his connection are full.
        // Then only a new subscription sends him more; it fails if he is already disconnected.
        let _ = paused.send(subscribe_frame(&fixture)).await;
        (presence.members(fixture.conversation).len() == 1).then_some(())
    })
    .await;
    drop(paused);
    fixture.close().await;
}
