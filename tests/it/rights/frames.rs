//! Tests the rights of every role for the frames of the WebSocket.

use serde_json::{Value, json};

use crate::rights::fixture;
use crate::rights::roles::{Role, RoleClients};
use crate::support::app::{OPEN_REGISTRATION, TestApp};
use crate::support::backends::on_sqlite;
use crate::support::ws_client::{WsClient, connect};

/// Returns the result of a frame: `ok`, or an error code.
fn word(answer: &Value) -> String {
    match answer["ok"] == true {
        true => "ok".to_owned(),
        false => answer["error"]["code"]
            .as_str()
            .unwrap_or("nothing")
            .to_owned(),
    }
}

on_sqlite! {
    async fn the_result_of_every_frame_depends_on_the_rights_of_its_sender(backend) {
        let clients = RoleClients::create(TestApp::start_with(backend, OPEN_REGISTRATION).await).await;
        let space_ids = fixture::create(&clients, Role::Owner).await;
        let (space, conversation) = (space_ids.of("space_id", Role::Owner), space_ids.of("conversation_id", Role::Owner));
        let mut cells = 0;
        let mut wrong = Vec::new();

        for who in Role::ALL.into_iter().filter(|it| *it != Role::SignedOut) {
            let socket = WsClient::open(clients.person(who)).await;
            let sees = who.has_membership() || who == Role::Admin;
            let seen = if sees { "ok" } else { "not_found" };
            let typed = match who {
                Role::Admin => "forbidden",
                _ => seen,
            };
            for (frame, expected) in [
                (json!({"op": "typing", "conversation_id": conversation, "active": true}), typed),
                (json!({"op": "subscribe", "conversation_id": conversation}), seen),
                (json!({"op": "subscribe_space", "space_id": space}), seen),
                (json!({"op": "typing", "conversation_id": conversation, "active": true}), typed),
                (json!({"op": "unsubscribe", "conversation_id": conversation}), "ok"),
                (json!({"op": "subscribe", "conversation_id": 999_999_999}), "not_found"),
                (json!({"op": "subscribe_space", "space_id": 999_999_999}), "not_found"),
                (json!({"op": "typing", "conversation_id": 999_999_999, "active": true}), "not_found"),
                (json!({"op": "subscribe", "conversation_id": "7"}), "invalid_type"),
                (json!({"op": "away", "away": true}), "ok"),
                (json!({"op": "ping"}), "ok"),
                (json!({"op": "shout"}), "invalid_value"),
            ] {
                let answer = socket.call(frame.clone()).await;
                cells += 1;
                if word(&answer) != expected {
                    wrong.push(format!("{who:?} {frame}: {answer}, expected {expected}"));
                }
            }
        }
        assert!(connect_signed_out(&clients).await, "a socket without a session is rejected");

        eprintln!("{cells} frames");
        clients.app.close().await;
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

async fn connect_signed_out(clients: &RoleClients) -> bool {
    let signed_out = clients.person(Role::SignedOut);
    let without_session = signed_out.with_cookie("troupe_session=none".to_owned());
    connect(&without_session).await.is_err()
}
