//! Clients that connect, subscribe, and never send another frame, not even a pong; the connection
//! stays open. The server must detect that they are gone.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::record::{SilentClient, now};
use crate::spaces::SignedInUser;
use crate::tabs::{Socket, connect};

/// The limit for the server to close the connection, with a margin.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(100);
/// The limit for presence to reach the other nodes.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs one client at each node; `witness` then reads which users are shown as present.
pub async fn run_silent_clients(
    silent_users: Vec<SignedInUser>,
    witness: SignedInUser,
    urls: Vec<String>,
) -> Vec<SilentClient> {
    let clients = silent_users.iter().enumerate().map(|(node, guest)| {
        let url = urls[node].clone();
        async move { run_silent_client(node, guest, &url).await }
    });
    let mut seen: Vec<SilentClient> = futures::future::join_all(clients).await;
    let memberships: Vec<i64> = silent_users
        .iter()
        .map(|it| it.conversations[0].membership)
        .collect();
    for (node, url) in urls.iter().enumerate() {
        seen[node].is_shown = is_shown(
            &witness,
            &memberships,
            url,
            silent_users[0].conversations[0].conversation,
        )
        .await;
    }
    seen
}

async fn run_silent_client(node: usize, guest: &SignedInUser, url: &str) -> SilentClient {
    let mut socket = connect(url, &guest.cookie)
        .await
        .expect("the nodes have recovered");
    subscribe(&mut socket, guest.conversations[0].conversation).await;
    let silent_at = now();
    let until_closed = async {
        // Reads the bytes of the connection without the protocol, so that no ping is answered.
        let mut bytes = [0; 4096];
        while socket.get_mut().read(&mut bytes).await.is_ok_and(|n| n > 0) {}
    };
    let closed = timeout(DISCONNECT_TIMEOUT, until_closed).await;
    SilentClient {
        node,
        silent_at,
        closed_at: closed.map_or(0, |()| now()),
        is_shown: false,
    }
}

/// Whether this node still shows one of them as present.
async fn is_shown(
    witness: &SignedInUser,
    memberships: &[i64],
    url: &str,
    conversation: i64,
) -> bool {
    let hidden = async {
        loop {
            let mut socket = connect(url, &witness.cookie)
                .await
                .expect("the nodes have recovered");
            let answer = subscribe(&mut socket, conversation).await;
            let there = answer["snapshot"]["presence"].as_array();
            let is_silent = |it: &Value| {
                it["membership_id"]
                    .as_i64()
                    .is_some_and(|it| memberships.contains(&it))
            };
            if !there.is_some_and(|it| it.iter().any(is_silent)) {
                return;
            }
            sleep(Duration::from_millis(500)).await;
        }
    };
    timeout(REPLY_TIMEOUT, hidden).await.is_err()
}

/// Subscribes, and returns the response.
async fn subscribe(socket: &mut Socket, conversation: i64) -> Value {
    let frame = json!({"id": 1, "op": "subscribe", "conversation_id": conversation});
    let sent = socket.send(Message::text(frame.to_string())).await;
    sent.expect("the nodes have recovered");
    while let Some(Ok(frame)) = socket.next().await {
        let Message::Text(text) = frame else { continue };
        let frame: Value = serde_json::from_str(&text).expect("frames are JSON");
        if frame["re"] == 1 {
            return frame;
        }
    }
    Value::Null
}
