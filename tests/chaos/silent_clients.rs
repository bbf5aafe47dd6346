//! Clients that connect, subscribe, and never send another frame, not even a pong; the connection
//! stays open. The server must detect by itself that they are gone.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::record::{SilentClient, now};
use crate::spaces::SignedInUser;
use crate::tabs::{Socket, connect};

/// Longer than any server may take to notice.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(100);
/// The limit for presence to reach the other nodes.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// One at each node. `witness` looks afterwards who is said to be there.
pub async fn run_silent_clients(
    ghosts: Vec<SignedInUser>,
    witness: SignedInUser,
    urls: Vec<String>,
) -> Vec<SilentClient> {
    let haunting = ghosts.iter().enumerate().map(|(node, guest)| {
        let url = urls[node].clone();
        async move { run_silent_client(node, guest, &url).await }
    });
    let mut seen: Vec<SilentClient> = futures::future::join_all(haunting).await;
    let seats: Vec<i64> = ghosts.iter().map(|it| it.conversations[0].seat).collect();
    for (node, url) in urls.iter().enumerate() {
        seen[node].is_shown = is_shown(
            &witness,
            &seats,
            url,
            ghosts[0].conversations[0].conversation,
        )
        .await;
    }
    seen
}

async fn run_silent_client(node: usize, guest: &SignedInUser, url: &str) -> SilentClient {
    let mut socket = connect(url, &guest.cookie)
        .await
        .expect("the house is healed");
    subscribe(&mut socket, guest.conversations[0].conversation).await;
    let silent_at = now();
    let hung_up = async {
        // Past the protocol: what comes is taken from the wire and never answered.
        let mut bytes = [0; 4096];
        while socket.get_mut().read(&mut bytes).await.is_ok_and(|n| n > 0) {}
    };
    let closed = timeout(DISCONNECT_TIMEOUT, hung_up).await;
    SilentClient {
        node,
        silent_at,
        closed_at: closed.map_or(0, |()| now()),
        is_shown: false,
    }
}

/// Whether this node still says that one of them is there.
async fn is_shown(witness: &SignedInUser, seats: &[i64], url: &str, conversation: i64) -> bool {
    let told = async {
        loop {
            let mut socket = connect(url, &witness.cookie)
                .await
                .expect("the house is healed");
            let answer = subscribe(&mut socket, conversation).await;
            let there = answer["snapshot"]["presence"].as_array();
            let is_ghost = |it: &Value| {
                it["membership_id"]
                    .as_i64()
                    .is_some_and(|it| seats.contains(&it))
            };
            if !there.is_some_and(|it| it.iter().any(is_ghost)) {
                return;
            }
            sleep(Duration::from_millis(500)).await;
        }
    };
    timeout(REPLY_TIMEOUT, told).await.is_err()
}

/// The answer to a subscribe.
async fn subscribe(socket: &mut Socket, conversation: i64) -> Value {
    let frame = json!({"id": 1, "op": "subscribe", "conversation_id": conversation});
    let sent = socket.send(Message::text(frame.to_string())).await;
    sent.expect("the house is healed");
    while let Some(Ok(frame)) = socket.next().await {
        let Message::Text(text) = frame else { continue };
        let frame: Value = serde_json::from_str(&text).expect("frames are JSON");
        if frame["re"] == 1 {
            return frame;
        }
    }
    Value::Null
}
