//! PostgreSQL is unavailable for longer than the stale time of runs and then returns.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::backends::{TestBackend, TestDatabase};
use crate::support::http_client::http_client;
use crate::support::http_response::Answer;
use crate::support::poll;
use crate::support::test_postgres::Postgres;
use crate::support::test_space::TestSpace;
use crate::support::ws_client::WsClient;

/// Long enough to see that a reply continues, and short enough to wait for its end.
pub const STALE: &[(&str, &str)] = &[("RUN_STALE_AFTER_MS", "4000")];

/// The connection timeout is three seconds; the rest is for a busy machine.
const REFUSED_WITHIN: Duration = Duration::from_secs(10);

/// Asserts that the answer is 503 with a request to retry later.
pub fn assert_retry_later(answer: &Answer) {
    assert_eq!(answer.refusal(), (503, "internal".to_owned()), "{answer:?}");
    assert_eq!(answer.header("retry-after"), "1", "{answer:?}");
}

/// Posts a message and asserts that there is an answer in time, whatever it is.
pub async fn post_in_time(space: &TestSpace, content: &str, client_id: &str) -> Answer {
    let path = format!("/api/conversations/{}/messages", space.conversation);
    let url = format!("{}{path}", space.person.base());
    let body = json!({"content": content, "client_id": client_id});
    let request = http_client().post(url).json(&body);
    let started_at = Instant::now();
    let answer = Answer::to(request.header("cookie", space.person.cookie())).await;
    let took = started_at.elapsed();
    assert!(took < REFUSED_WITHIN, "answered after {took:?}");
    answer
}

/// Posts repeatedly, as a client does, until the message is accepted.
pub async fn post_until_accepted(space: &TestSpace, content: &str, client_id: &str) {
    poll::until("the message is accepted", async || {
        let answer = post_in_time(space, content, client_id).await;
        match answer.status {
            200 | 201 => Some(()),
            _ => {
                assert_retry_later(&answer);
                None
            }
        }
    })
    .await;
}

/// Returns the messages of users, in order.
pub async fn user_messages(space: &TestSpace) -> Vec<String> {
    let timeline = space.facts().await.timeline(space.conversation).await;
    let from_users = timeline.into_iter().filter(|(_, role, _)| role == "user");
    from_users.map(|(_, _, content)| content).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepted_messages_and_sockets_survive_a_database_outage() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let postgres = tokio::task::block_in_place(Postgres::start);
    let database = TestDatabase::of_a_server(postgres.url());
    let mut space = TestSpace::open_on(database, json!({}), &["Ada"], STALE).await;
    let subscribed = WsClient::subscribed(&space.person, space.conversation).await;
    let other = WsClient::open(&space.person).await;
    let gate = space.hold_next_reply();
    space.post("First.").await;
    let delta = |it: &serde_json::Value| it["type"] == "stream_chunk";
    let (position, _) = subscribed.wait_after(0, "the first words", delta).await;
    space.post("Second.").await;

    tokio::task::block_in_place(|| postgres.stop());
    // The model continues, and so do the readers, until the heartbeat is too old.
    gate.step();
    subscribed.wait_after(position, "more words", delta).await;
    assert_retry_later(&post_in_time(&space, "Third.", "c-3").await);
    space.upstream.wait_for_disconnect(0).await;
    let position = subscribed.here();
    gate.open();

    // Open sockets stay open; requests that need the database get an error.
    let pong = subscribed.call(json!({"op": "ping"})).await;
    assert_eq!(pong["ok"], true, "{pong}");
    let refused = other.subscribe(space.conversation, None).await;
    assert_eq!(refused["error"]["code"], "internal", "{refused}");
    let refused = subscribed.subscribe(space.conversation, None).await;
    assert_eq!(refused["error"]["code"], "internal", "{refused}");
    let ready = Answer::to(http_client().get(format!("{}/readyz", space.person.base()))).await;
    assert_eq!(ready.status, 503);
    assert!(
        space.server.exited().is_none(),
        "the process is still running"
    );
    let n_deltas = subscribed
        .log()
        .split_off(position)
        .into_iter()
        .filter(delta)
        .count();
    assert_eq!(n_deltas, 0, "no delta of an aborted reply is sent");

    tokio::task::block_in_place(|| postgres.start_again());
    post_until_accepted(&space, "Third.", "c-3").await;
    assert_eq!(other.subscribe(space.conversation, None).await["ok"], true);
    let is_reply = |it: &serde_json::Value| it["message"]["role"] == "assistant";
    subscribed
        .wait_after(position, "a reply on the same socket", is_reply)
        .await;
    space.settle().await;

    assert_eq!(user_messages(&space).await, ["First.", "Second.", "Third."]);
    assert_eq!(
        space.roles().await.last().map(String::as_str),
        Some("assistant")
    );
    let succeeded = |it: &String| it == "succeeded";
    assert!(space.run_statuses().await.iter().any(succeeded));
    drop(space);
}
