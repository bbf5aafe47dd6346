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

async fn subscribed(stage: &LiveFixture) -> Socket {
    let mut socket = connect(&stage.bob).await.unwrap();
    let frame = json!({"id": 1, "op": "subscribe", "conversation_id": stage.conversation});
    socket.send(Message::text(frame.to_string())).await.unwrap();
    assert_eq!(next(&mut socket).await.unwrap()["re"], 1);
    socket
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

/// Publishes more than all buffers hold; a reading client gets each note before the next one.
async fn flood(stage: &LiveFixture, ear: &WsClient) {
    for n in 0..FLOOD {
        let text = format!("{n} {}", "x".repeat(NOTE_BYTES));
        stage.publish(&Note { text });
        let begins = format!("{n} ");
        ear.wait_after(ear.here().saturating_sub(3), "the note", |it| {
            it["text"]
                .as_str()
                .is_some_and(|it| it.starts_with(&begins))
        })
        .await;
    }
}

#[tokio::test]
async fn a_paused_reader_is_reset_and_others_receive_everything() {
    let stage = LiveFixture::open().await;
    let mut sleeper = subscribed(&stage).await;
    let ear = WsClient::subscribed(&stage.ann, stage.conversation.0).await;

    flood(&stage, &ear).await;

    let mut n_notes = 0;
    let resync = loop {
        let frame = next(&mut sleeper).await.expect("the socket lives");
        match frame["type"].as_str() {
            Some("note") => n_notes += 1,
            Some("resync") => break frame,
            _ => {}
        }
    };
    assert!(n_notes < FLOOD, "part of the backlog was dropped");
    assert_eq!(resync["conversation_id"], stage.conversation.0);
    let meter = stage.house.app.hub.metrics();
    assert_eq!(meter.resyncs.get(), 1);
    assert!(meter.dropped.get() > 0);
    let again =
        json!({"id": 2, "op": "subscribe", "conversation_id": stage.conversation, "after_rev": 0});
    sleeper
        .send(Message::text(again.to_string()))
        .await
        .unwrap();
    assert_eq!(next(&mut sleeper).await.unwrap()["re"], 2);
    stage.publish(&Note {
        text: "fresh".into(),
    });
    loop {
        let frame = next(&mut sleeper).await.expect("the socket lives");
        if frame["text"] == "fresh" {
            break;
        }
        assert_ne!(frame["type"], "note", "what was dropped does not come back");
    }
    stage.close().await;
}

#[tokio::test]
async fn a_reader_that_never_resumes_is_disconnected() {
    let stage = LiveFixture::open_changed(&[], |app| {
        app.socket_timeouts.write_timeout = Duration::from_millis(300);
    })
    .await;
    let sleeper = subscribed(&stage).await;
    let ear = WsClient::subscribed(&stage.ann, stage.conversation.0).await;

    flood(&stage, &ear).await;

    let presence = &stage.house.app.presence;
    crate::support::poll::until("Bob is gone", async || {
        (presence.members(stage.conversation).len() == 1).then_some(())
    })
    .await;
    drop(sleeper);
    stage.close().await;
}
