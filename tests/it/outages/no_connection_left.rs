//! Other clients use every connection of PostgreSQL, and the server gets none.

use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Error;

use crate::outages::database_unavailable::{
    STALE, is_retry_later, post_until_accepted, posts, said_by_people,
};
use crate::support::backends::{TestBackend, TestDatabase};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::http_client;
use crate::support::http_response::Answer;
use crate::support::poll;
use crate::support::test_postgres::Postgres;
use crate::support::test_space::TestSpace;
use crate::support::ws_client::connect;

/// Few connections, and none reserved for superusers, because the server connects as one.
const FEW: &str = "max_connections = 16\nsuperuser_reserved_connections = 0";

/// The time limit of every answer, with a margin for a busy machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// Opens every free connection, again and again.
fn crowd(url: &str) -> JoinHandle<()> {
    let url = format!("{url}?application_name=stranger");
    tokio::spawn(async move {
        let mut held = Vec::new();
        loop {
            match PgConnection::connect(&url).await {
                Ok(connection) => held.push(connection),
                Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    })
}

/// Terminates all other connections until the server has none.
async fn leave_none_to_the_server(admin: &mut DatabaseFacts) {
    poll::until("strangers have all connections", async || {
        let others = admin
            .rows(
                "SELECT CAST(pg_terminate_backend(pid) AS TEXT) FROM pg_stat_activity \
                 WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
                 AND application_name <> 'stranger'",
            )
            .await;
        let strangers = "SELECT CAST(count(*) AS TEXT) FROM pg_stat_activity \
                         WHERE application_name = 'stranger'";
        (others.is_empty() && admin.number(strangers).await == 15).then_some(())
    })
    .await;
}

async fn asks(room: &TestSpace, path: &str) -> Answer {
    let request = http_client().get(format!("{}{path}", room.person.base()));
    let asked = Instant::now();
    let answer = Answer::to(request.header("cookie", room.person.cookie())).await;
    let took = asked.elapsed();
    assert!(took < ANSWERED_WITHIN, "{path} after {took:?}");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_connection_says_so_in_time_loses_nothing_and_comes_back() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let postgres = tokio::task::block_in_place(|| Postgres::start_with(FEW));
    let database = TestDatabase::of_a_server(postgres.url());
    let mut room = TestSpace::open_on(database, json!({}), &["Ada"], STALE).await;
    let gate = room.hold_next_reply();
    room.post("First.").await;
    room.upstream.wait_for_requests(1).await;
    let mut admin = room.facts().await;

    let strangers = crowd(&postgres.url());
    leave_none_to_the_server(&mut admin).await;

    // Concurrently, like requests of several users.
    let (first, second, third) = tokio::join!(
        posts(&room, "Second.", "c-2"),
        posts(&room, "Third.", "c-3"),
        posts(&room, "Fourth.", "c-4"),
    );
    for refused in [first, second, third] {
        is_retry_later(&refused);
    }
    let at = format!("/api/conversations/{}", room.conversation);
    is_retry_later(&asks(&room, &at).await);
    is_retry_later(&asks(&room, "/readyz").await);
    assert_eq!(asks(&room, "/healthz").await.status, 200);
    let refused = connect(&room.person).await;
    let status = |it: &Error| matches!(it, Error::Http(it) if it.status() == 503);
    assert!(refused.as_ref().is_err_and(status), "{:?}", refused.err());
    room.upstream.wait_for_disconnect(0).await;
    assert!(room.server.exited().is_none(), "the process lives");

    strangers.abort();
    for (content, client_id) in [("Second.", "c-2"), ("Third.", "c-3"), ("Fourth.", "c-4")] {
        post_until_accepted(&room, content, client_id).await;
    }
    gate.open();
    room.settle().await;

    let said = said_by_people(&room).await;
    assert_eq!(said, ["First.", "Second.", "Third.", "Fourth."]);
    assert_eq!(
        room.roles().await.last().map(String::as_str),
        Some("assistant")
    );
    drop(room);
}
