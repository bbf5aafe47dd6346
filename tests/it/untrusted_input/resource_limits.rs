//! Tests the limit of concurrent sockets of one user.

use futures::future::join_all;
use serde_json::json;

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::http_client::expect;
use crate::support::poll;
use crate::untrusted_input::ws_peer::WsPeer;

/// The default in `.env.example`.
const MAX_SOCKETS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_sockets_one_user_gets_twenty() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let key = expect(201, admin.post("/api/api_keys", json!({"name": "k"})).await);
    let key = key["key"].as_str().expect("the response has no key");
    let mut open = Vec::new();
    let mut n_rejected = 0;

    for _ in 0..20 {
        let tries = (0..50).map(|_| WsPeer::open(&app.base, key));
        for tried in join_all(tries).await {
            match tried {
                Ok(peer) => open.push(peer),
                Err(status) => {
                    assert_eq!(status, 429);
                    n_rejected += 1;
                }
            }
        }
    }

    assert_eq!((open.len(), n_rejected), (MAX_SOCKETS, 1_000 - MAX_SOCKETS));
    for peer in &mut open {
        assert!(peer.is_answered().await, "an open socket is not answered");
    }
    open.pop();
    let again = poll::until("one more socket is accepted", async || {
        WsPeer::open(&app.base, key).await.ok()
    });
    open.push(again.await);
    assert_eq!(WsPeer::open(&app.base, key).await.err(), Some(429));
    eprintln!("1000 sockets: {MAX_SOCKETS} opened, {n_rejected} refused");
    app.close().await;
}
