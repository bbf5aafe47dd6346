//! Tests a server that is killed, stopped or shut down: before, during and after a reply.
//!
//! Each time the same promise: what was acknowledged stays, it gets exactly one reply, and nothing
//! is stuck. The laws of scheduling are asked of the database at the end of each story.

use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::support::backends::{TestBackend, on_both};
use crate::support::client_model::ClientModel;
use crate::support::http_client::HttpClient;
use crate::support::poll;
use crate::support::process::Server;
use crate::support::test_space::TestSpace;
use crate::support::ws_client::WsClient;

/// Longer than `RUN_STALE_AFTER_MS` of the room, with a sweep.
const STALE: Duration = Duration::from_millis(1500 + 300);

on_both! {
    async fn a_queued_reply_survives_a_kill(backend) {
        let mut room = TestSpace::open(backend, json!({"user_turn_debounce_ms": 700}), &["Ada"]).await;
        let tab = ClientModel::open(&room.person, room.conversation).await;

        let posted = room.post("Are you there?").await;
        assert_eq!(posted["run"]["status"], "queued");
        room.server.kill9();
        room.server.restart().await;

        tab.wait_until("the reply", |timeline| timeline.lines().len() == 2).await;
        let mut facts = room.settle().await;
        assert_eq!(room.run_statuses().await, ["succeeded"]);
        assert_eq!(tab.timeline().lines(), facts.timeline(room.conversation).await);
    }

    async fn a_reply_cut_by_a_kill_is_written_again_once(backend) {
        let mut room = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let tab = ClientModel::open(&room.person, room.conversation).await;

        let gate = room.hold_next_reply();
        room.post("Tell me a story.").await;
        tab.wait_until("the first words", |timeline| timeline.stream().is_some_and(|stream| !stream.text.is_empty())).await;
        room.server.kill9();
        gate.open();
        room.server.restart().await;

        tab.wait_until("the reply", |timeline| timeline.lines().len() == 2 && timeline.stream().is_none()).await;
        let mut facts = room.settle().await;
        let runs: Vec<(String, i64)> = room.runs().await.into_iter().map(|run| (run.status, run.attempt)).collect();
        assert_eq!(runs, [("failed".to_owned(), 1), ("succeeded".to_owned(), 2)]);
        assert_eq!(tab.timeline().lines(), facts.timeline(room.conversation).await);
        assert!(tab.timeline().lines()[1].2.ends_with("and said to the end. 🎭"));
    }

    async fn a_committed_reply_stays_through_a_kill(backend) {
        let mut room = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let ear = WsClient::subscribed(&room.person, room.conversation).await;
        let tab = ClientModel::open(&room.person, room.conversation).await;

        let run = room.post("Hello.").await["run"]["id"].as_str().expect("a reply is planned").to_owned();
        ear.wait_for("the reply", |frame| frame["type"] == "message_created" && frame["message"]["conversation_run_id"] == run.as_str()).await;
        room.server.kill9();
        room.server.restart().await;

        tab.wait_until("a second connection", |_| tab.n_connections() > 1).await;
        let mut facts = room.settle().await;
        assert_eq!(room.run_statuses().await, ["succeeded"]);
        assert_eq!(room.roles().await, ["user", "assistant"]);
        let stored = facts.timeline(room.conversation).await;
        tab.wait_until("what is stored", |timeline| timeline.lines() == stored).await;
    }

    async fn a_reply_that_dies_twice_fails_visibly_and_can_be_retried(backend) {
        let mut room = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let tab = ClientModel::open(&room.person, room.conversation).await;

        let _held = [room.hold_next_reply(), room.hold_next_reply()];
        room.post("Tell me a story.").await;
        for n in 1..=2 {
            room.upstream.wait_for_requests(n).await;
            room.server.kill9();
            room.server.restart().await;
        }
        tab.wait_until("the failure", |timeline| timeline.state() == "failed").await;
        assert_eq!(room.run_statuses().await, ["failed", "failed"]);
        assert_eq!(room.roles().await, ["user"]);

        let (status, answer) = room.person.retry(room.conversation).await;
        assert_eq!(status, 202, "{answer}");
        tab.wait_until("the reply", |timeline| timeline.lines().len() == 2).await;
        room.settle().await;
        assert_eq!(room.run_statuses().await, ["failed", "failed", "succeeded"]);
    }

    async fn auto_mode_gets_no_turn_more_by_a_kill(backend) {
        let rules = json!({"reply_order": "list", "auto_mode_enabled": true, "auto_mode_delay_ms": 50, "auto_mode_max_turns": 3});
        let mut room = TestSpace::open(backend, rules, &["Ada", "Bob"]).await;

        let (answer, _turn) = (room.hold_next_reply(), room.hold_next_reply());
        room.post("Talk among yourselves.").await;
        answer.open();
        room.upstream.wait_for_requests(2).await;
        room.server.kill9();
        room.server.restart().await;
        let mut facts = room.settle().await;

        assert_eq!(room.run_statuses().await, ["succeeded", "failed", "succeeded", "succeeded", "succeeded"]);
        let turns = format!("SELECT CAST(auto_mode_turns AS TEXT) FROM conversations WHERE id = {}", room.conversation);
        let turns = facts.number(&turns).await;
        assert_eq!(turns, 3);
        assert_eq!(room.person.conversation(room.conversation).await["auto_mode_turns_left"], 0);
    }

    async fn a_repeated_post_is_one_message_also_after_a_kill(backend) {
        let mut room = TestSpace::open(backend, json!({}), &["Ada"]).await;

        let (status, first) = room.person.post_message(room.conversation, "Once.", Some("key-1")).await;
        assert_eq!(status, 201, "{first}");
        room.server.kill9();
        room.server.restart().await;
        let (again, second) = room.person.post_message(room.conversation, "Once.", Some("key-1")).await;
        let (other, refused) = room.person.post_message(room.conversation, "Twice.", Some("key-1")).await;

        assert_eq!((again, &second["message"]["id"]), (200, &first["message"]["id"]));
        assert_eq!((other, &refused["error"]["code"]), (422, &json!("client_id_reused")));
        room.settle().await;
        assert_eq!(room.roles().await, ["user", "assistant"]);
    }

    async fn a_server_that_is_sent_away_hands_its_reply_back(backend) {
        let env = [("SHUTDOWN_GRACE_MS", "300")];
        let mut room = TestSpace::open_with(backend, json!({}), &["Ada"], &env).await;
        let ear = WsClient::subscribed(&room.person, room.conversation).await;
        let tab = ClientModel::open(&room.person, room.conversation).await;

        let gate = room.hold_next_reply();
        let run = room.post("Tell me a story.").await["run"]["id"].as_str().expect("a reply is planned").to_owned();
        ear.wait_for_event("stream_chunk", &run).await;
        room.server.sigterm();
        ear.wait_for_event("stream_reset", &run).await;
        ear.wait_for_event("typing_stop", &run).await;
        let exit = room.server.wait_exit().await;

        assert!(exit.success(), "a drained server leaves in good order: {exit}");
        let handed_back = room.runs().await;
        assert_eq!(handed_back.len(), 1);
        assert_eq!((handed_back[0].status.as_str(), handed_back[0].attempt), ("queued", 1));

        gate.open();
        room.server.restart().await;
        tab.wait_until("the reply", |timeline| timeline.lines().len() == 2).await;
        room.settle().await;
        let ended = room.runs().await;
        assert_eq!((ended.len(), ended[0].id == handed_back[0].id, ended[0].status.as_str()), (1, true, "succeeded"));
    }

    async fn a_server_that_is_sent_away_in_peace_leaves_at_once(backend) {
        let mut room = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let ear = WsClient::subscribed(&room.person, room.conversation).await;

        room.post("Hello.").await;
        room.settle().await;
        room.server.sigterm();

        // An open socket must not hold it back.
        ear.wait_closed().await;
        assert!(room.server.wait_exit().await.success());
    }

    async fn a_resumed_server_reaches_one_outcome(backend) {
        let room = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let tab = ClientModel::open(&room.person, room.conversation).await;

        let gate = room.hold_next_reply();
        room.post("Tell me a story.").await;
        tab.wait_until("the first words", |timeline| timeline.stream().is_some_and(|stream| !stream.text.is_empty())).await;
        room.server.sigstop();
        wait_until_stale(&room).await;
        room.server.sigcont();
        gate.open();

        tab.wait_until("the reply", |timeline| timeline.lines().len() == 2).await;
        let mut facts = room.settle().await;
        let succeeded = room.run_statuses().await.into_iter().filter(|status| status == "succeeded").count();
        assert_eq!((succeeded, room.roles().await), (1, vec!["user".to_owned(), "assistant".to_owned()]));
        assert_eq!(tab.timeline().lines(), facts.timeline(room.conversation).await);
    }
}

/// Waits until the newest heartbeat is older than the stale time and a sweep.
async fn wait_until_stale(room: &TestSpace) {
    let mut facts = room.facts().await;
    poll::until("the heartbeat is stale", async || {
        let beat = facts
            .number("SELECT CAST(max(heartbeat_at) AS TEXT) FROM conversation_runs")
            .await;
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .expect("this is after 1970");
        (now.as_millis() as i64 - beat > STALE.as_millis() as i64).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_node_answers_for_a_stopped_one_which_then_commits_nothing() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("not run: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let room = TestSpace::open(TestBackend::Postgres, json!({}), &["Ada"]).await;
    let tab = ClientModel::open(&room.person, room.conversation).await;

    let gate = room.hold_next_reply();
    room.post("Tell me a story.").await;
    tab.wait_until("the first words", |timeline| {
        timeline
            .stream()
            .is_some_and(|stream| !stream.text.is_empty())
    })
    .await;
    room.server.sigstop();
    let second = room.second_server().await;
    room.upstream.wait_for_requests(2).await;
    gate.open();
    room.settle().await;
    room.server.sigcont();
    // The revived node holds the whole reply and is stopped by the lease. A second message through
    // its own endpoint shows that it runs, and gives it time for a wrong write.
    room.post("And then?").await;
    let mut facts = room.settle().await;

    assert_eq!(
        room.run_statuses().await,
        ["failed", "succeeded", "succeeded"]
    );
    assert_eq!(
        room.roles().await,
        ["user", "assistant", "user", "assistant"]
    );
    let there = ClientModel::open(
        &HttpClient::sign_in(&second.url(), "ann").await,
        room.conversation,
    )
    .await;
    assert_eq!(
        there.timeline().lines(),
        facts.timeline(room.conversation).await
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_the_same_file_refuses_to_start() {
    let room = TestSpace::open(TestBackend::Sqlite, json!({}), &["Ada"]).await;
    let mut second = Server::prepare(&room.database, &[]);

    second.spawn();
    let exit = second.wait_exit().await;

    assert!(!exit.success());
    assert!(
        second.output().contains("another"),
        "it says why: {}",
        second.output()
    );
    room.post("The first one goes on.").await;
    room.settle().await;
}
