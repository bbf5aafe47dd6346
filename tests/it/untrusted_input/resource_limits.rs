//! Tests that one user who opens sockets without end gets only as many as one user may have.

use futures::future::join_all;
use serde_json::json;

use crate::support::app::TestApp;
use crate::support::backends::TestBackend;
use crate::support::http_client::expect;
use crate::support::poll;
use crate::untrusted_input::ws_peer::WsPeer;

/// As `.env.example` has it.
const MAX_SOCKETS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_sockets_one_person_gets_twenty() {
    let app = TestApp::start(TestBackend::Sqlite).await;
    let admin = app.admin().await;
    let key = expect(201, admin.post("/api/api_keys", json!({"name": "k"})).await);
    let key = key["key"].as_str().expect("the key");
    let mut open = Vec::new();
    let mut n_refused = 0;

    for _ in 0..20 {
        let tries = (0..50).map(|_| WsPeer::open(&app.base, key));
        for tried in join_all(tries).await {
            match tried {
                Ok(peer) => open.push(peer),
                Err(status) => {
                    assert_eq!(status, 429);
                    n_refused += 1;
                }
            }
        }
    }

    assert_eq!((open.len(), n_refused), (MAX_SOCKETS, 1_000 - MAX_SOCKETS));
    for peer in &mut open {
        assert!(peer.is_answered().await, "those who are in are served");
    }
    open.pop();
    let again = poll::until("there is room for one more", async || {
        WsPeer::open(&app.base, key).await.ok()
    });
    open.push(again.await);
    assert_eq!(WsPeer::open(&app.base, key).await.err(), Some(429));
    eprintln!("1000 sockets: {MAX_SOCKETS} opened, {n_refused} refused");
    app.close().await;
}
