//! Other clients use every connection of PostgreSQL, and the server gets none.

use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Error;

use crate::outages::database_unavailable::{
    STALE, assert_retry_later, post_in_time, post_until_accepted, user_messages,
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
fn take_all_connections(url: &str) -> JoinHandle<()> {
    let url = format!("{url}?application_name=other");
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
async fn wait_until_server_has_none(admin: &mut DatabaseFacts) {
    poll::until("other clients have all connections", async || {
        let remaining = admin
            .rows(
                "SELECT CAST(pg_terminate_backend(pid) AS TEXT) FROM pg_stat_activity \
                 WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
                 AND application_name <> 'other'",
            )
            .await;
        let count_others = "SELECT CAST(count(*) AS TEXT) FROM pg_stat_activity \
                         WHERE application_name = 'other'";
        (remaining.is_empty() && admin.number(count_others).await == 15).then_some(())
    })
    .await;
}

async fn get_in_time(space: &TestSpace, path: &str) -> Answer {
    let request = http_client().get(format!("{}{path}", space.person.base()));
    let started_at = Instant::now();
    let answer = Answer::to(request.header("cookie", space.person.cookie())).await;
    let took = started_at.elapsed();
    assert!(took < ANSWERED_WITHIN, "{path} answered after {took:?}");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_database_connections_returns_503_and_recovers() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let postgres = tokio::task::block_in_place(|| Postgres::start_with(FEW));
    let database = TestDatabase::of_a_server(postgres.url());
    let mut space = TestSpace::open_on(database, json!({}), &["Ada"], STALE).await;
    let gate = space.hold_next_reply();
    space.post("First.").await;
    space.upstream.wait_for_requests(1).await;
    let mut admin = space.facts().await;

    let others = take_all_connections(&postgres.url());
    wait_until_server_has_none(&mut admin).await;

    // Concurrently, like requests of several users.
    let (first, second, third) = tokio::join!(
        post_in_time(&space, "Second.", "c-2"),
        post_in_time(&space, "Third.", "c-3"),
        post_in_time(&space, "Fourth.", "c-4"),
    );
    for refused in [first, second, third] {
        assert_retry_later(&refused);
    }
    let at = format!("/api/conversations/{}", space.conversation);
    assert_retry_later(&get_in_time(&space, &at).await);
    assert_retry_later(&get_in_time(&space, "/readyz").await);
    assert_eq!(get_in_time(&space, "/healthz").await.status, 200);
    let refused = connect(&space.person).await;
    let status = |it: &Error| matches!(it, Error::Http(it) if it.status() == 503);
    assert!(refused.as_ref().is_err_and(status), "{:?}", refused.err());
    space.upstream.wait_for_disconnect(0).await;
    assert!(
        space.server.exited().is_none(),
        "the process is still running"
    );

    others.abort();
    for (content, client_id) in [("Second.", "c-2"), ("Third.", "c-3"), ("Fourth.", "c-4")] {
        post_until_accepted(&space, content, client_id).await;
    }
    gate.open();
    space.settle().await;

    let messages = user_messages(&space).await;
    assert_eq!(messages, ["First.", "Second.", "Third.", "Fourth."]);
    assert_eq!(
        space.roles().await.last().map(String::as_str),
        Some("assistant")
    );
    drop(space);
}
