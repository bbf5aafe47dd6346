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
pub fn is_retry_later(answer: &Answer) {
    assert_eq!(answer.refusal(), (503, "internal".to_owned()), "{answer:?}");
    assert_eq!(answer.header("retry-after"), "1", "{answer:?}");
}

/// Posts a message and asserts that there is an answer in time, whatever it is.
pub async fn posts(room: &TestSpace, content: &str, client_id: &str) -> Answer {
    let path = format!("/api/conversations/{}/messages", room.conversation);
    let url = format!("{}{path}", room.person.base());
    let body = json!({"content": content, "client_id": client_id});
    let request = http_client().post(url).json(&body);
    let asked = Instant::now();
    let answer = Answer::to(request.header("cookie", room.person.cookie())).await;
    let took = asked.elapsed();
    assert!(took < REFUSED_WITHIN, "answered after {took:?}");
    answer
}

/// Posts repeatedly, as a client does, until the message is accepted.
pub async fn post_until_accepted(room: &TestSpace, content: &str, client_id: &str) {
    poll::until("it is taken", async || {
        let answer = posts(room, content, client_id).await;
        match answer.status {
            200 | 201 => Some(()),
            _ => {
                is_retry_later(&answer);
                None
            }
        }
    })
    .await;
}

/// Returns the messages of users, in order.
pub async fn said_by_people(room: &TestSpace) -> Vec<String> {
    let timeline = room.facts().await.timeline(room.conversation).await;
    let by_people = timeline.into_iter().filter(|(_, role, _)| role == "user");
    by_people.map(|(_, _, content)| content).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_taken_survives_a_database_that_is_away_and_sockets_stay() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let postgres = tokio::task::block_in_place(Postgres::start);
    let database = TestDatabase::of_a_server(postgres.url());
    let mut room = TestSpace::open_on(database, json!({}), &["Ada"], STALE).await;
    let ear = WsClient::subscribed(&room.person, room.conversation).await;
    let other = WsClient::open(&room.person).await;
    let gate = room.hold_next_reply();
    room.post("First.").await;
    let delta = |it: &serde_json::Value| it["type"] == "stream_chunk";
    let (place, _) = ear.wait_after(0, "the first words", delta).await;
    room.post("Second.").await;

    tokio::task::block_in_place(|| postgres.stop());
    // The model continues, and so do the readers, until the heartbeat is too old.
    gate.step();
    ear.wait_after(place, "more words", delta).await;
    is_retry_later(&posts(&room, "Third.", "c-3").await);
    room.upstream.wait_for_disconnect(0).await;
    let place = ear.here();
    gate.open();

    // Open sockets stay open; requests that need the database get an error.
    let pong = ear.call(json!({"op": "ping"})).await;
    assert_eq!(pong["ok"], true, "{pong}");
    let refused = other.subscribe(room.conversation, None).await;
    assert_eq!(refused["error"]["code"], "internal", "{refused}");
    let refused = ear.subscribe(room.conversation, None).await;
    assert_eq!(refused["error"]["code"], "internal", "{refused}");
    let ready = Answer::to(http_client().get(format!("{}/readyz", room.person.base()))).await;
    assert_eq!(ready.status, 503);
    assert!(room.server.exited().is_none(), "the process lives");
    let words = ear.log().split_off(place).into_iter().filter(delta).count();
    assert_eq!(words, 0, "of a reply that was put down nobody hears");

    tokio::task::block_in_place(|| postgres.start_again());
    post_until_accepted(&room, "Third.", "c-3").await;
    assert_eq!(other.subscribe(room.conversation, None).await["ok"], true);
    let is_reply = |it: &serde_json::Value| it["message"]["role"] == "assistant";
    ear.wait_after(place, "a reply, at the same socket", is_reply)
        .await;
    room.settle().await;

    assert_eq!(said_by_people(&room).await, ["First.", "Second.", "Third."]);
    assert_eq!(
        room.roles().await.last().map(String::as_str),
        Some("assistant")
    );
    let succeeded = |it: &String| it == "succeeded";
    assert!(room.run_statuses().await.iter().any(succeeded));
    drop(room);
}
