//! Tests a server that is killed, stopped or shut down: before, during and after a reply.
//!
//! In every test, acknowledged messages are kept and get exactly one reply, and no run is stuck.
//! `settle` checks the scheduling invariants in the database.

use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::support::backends::{TestBackend, on_both};
use crate::support::client_model::ClientModel;
use crate::support::http_client::HttpClient;
use crate::support::poll;
use crate::support::process::Server;
use crate::support::test_space::TestSpace;
use crate::support::ws_client::WsClient;

/// `RUN_STALE_AFTER_MS` of the test space plus one recovery interval.
const STALE: Duration = Duration::from_millis(1500 + 300);

on_both! {
    async fn a_queued_reply_survives_a_kill(backend) {
        let mut space = TestSpace::open(backend, json!({"user_turn_debounce_ms": 700}), &["Ada"]).await;
        let tab = ClientModel::open(&space.person, space.conversation).await;

        let posted = space.post("Are you there?").await;
        assert_eq!(posted["run"]["status"], "queued");
        space.server.kill9();
        space.server.restart().await;

        tab.wait_until("the reply", |timeline| timeline.lines().len() == 2).await;
        let mut facts = space.settle().await;
        assert_eq!(space.run_statuses().await, ["succeeded"]);
        assert_eq!(tab.timeline().lines(), facts.timeline(space.conversation).await);
    }

    async fn an_interrupted_reply_is_generated_again_once_after_a_kill(backend) {
        let mut space = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let tab = ClientModel::open(&space.person, space.conversation).await;

        let gate = space.hold_next_reply();
        space.post("Tell me a story.").await;
        tab.wait_until("the first words", |timeline| timeline.stream().is_some_and(|stream| !stream.text.is_empty())).await;
        space.server.kill9();
        gate.open();
        space.server.restart().await;

        tab.wait_until("the reply", |timeline| timeline.lines().len() == 2 && timeline.stream().is_none()).await;
        let mut facts = space.settle().await;
        let runs: Vec<(String, i64)> = space.runs().await.into_iter().map(|run| (run.status, run.attempt)).collect();
        assert_eq!(runs, [("failed".to_owned(), 1), ("succeeded".to_owned(), 2)]);
        assert_eq!(tab.timeline().lines(), facts.timeline(space.conversation).await);
        assert!(tab.timeline().lines()[1].2.ends_with("and said to the end. 🎭"));
    }

    async fn a_committed_reply_survives_a_kill(backend) {
        let mut space = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let client = WsClient::subscribed(&space.person, space.conversation).await;
        let tab = ClientModel::open(&space.person, space.conversation).await;

        let run = space.post("Hello.").await["run"]["id"].as_str().expect("a reply is queued").to_owned();
        client.wait_for("the reply", |frame| frame["type"] == "message_created" && frame["message"]["conversation_run_id"] == run.as_str()).await;
        space.server.kill9();
        space.server.restart().await;

        tab.wait_until("a second connection", |_| tab.n_connections() > 1).await;
        let mut facts = space.settle().await;
        assert_eq!(space.run_statuses().await, ["succeeded"]);
        assert_eq!(space.roles().await, ["user", "assistant"]);
        let stored = facts.timeline(space.conversation).await;
        tab.wait_until("the stored timeline", |timeline| timeline.lines() == stored).await;
    }

    async fn a_reply_interrupted_twice_fails_visibly_and_can_be_retried(backend) {
        let mut space = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let tab = ClientModel::open(&space.person, space.conversation).await;

        let _held = [space.hold_next_reply(), space.hold_next_reply()];
        space.post("Tell me a story.").await;
        for n in 1..=2 {
            space.upstream.wait_for_requests(n).await;
            space.server.kill9();
            space.server.restart().await;
        }
        tab.wait_until("the failure", |timeline| timeline.state() == "failed").await;
        assert_eq!(space.run_statuses().await, ["failed", "failed"]);
        assert_eq!(space.roles().await, ["user"]);

        let (status, answer) = space.person.retry(space.conversation).await;
        assert_eq!(status, 202, "{answer}");
        tab.wait_until("the reply", |timeline| timeline.lines().len() == 2).await;
        space.settle().await;
        assert_eq!(space.run_statuses().await, ["failed", "failed", "succeeded"]);
    }

    async fn a_kill_adds_no_turn_to_auto_mode(backend) {
        let rules = json!({"reply_order": "list", "auto_mode_enabled": true, "auto_mode_delay_ms": 50, "auto_mode_max_turns": 3});
        let mut space = TestSpace::open(backend, rules, &["Ada", "Bob"]).await;

        let (answer, _turn) = (space.hold_next_reply(), space.hold_next_reply());
        space.post("Talk among yourselves.").await;
        answer.open();
        space.upstream.wait_for_requests(2).await;
        space.server.kill9();
        space.server.restart().await;
        let mut facts = space.settle().await;

        assert_eq!(space.run_statuses().await, ["succeeded", "failed", "succeeded", "succeeded", "succeeded"]);
        let turns = format!("SELECT CAST(auto_mode_turns AS TEXT) FROM conversations WHERE id = {}", space.conversation);
        let turns = facts.number(&turns).await;
        assert_eq!(turns, 3);
        assert_eq!(space.person.conversation(space.conversation).await["auto_mode_turns_left"], 0);
    }

    async fn a_repeated_post_is_one_message_even_after_a_kill(backend) {
        let mut space = TestSpace::open(backend, json!({}), &["Ada"]).await;

        let (status, first) = space.person.post_message(space.conversation, "Once.", Some("key-1")).await;
        assert_eq!(status, 201, "{first}");
        space.server.kill9();
        space.server.restart().await;
        let (again, second) = space.person.post_message(space.conversation, "Once.", Some("key-1")).await;
        let (other, refused) = space.person.post_message(space.conversation, "Twice.", Some("key-1")).await;

        assert_eq!((again, &second["message"]["id"]), (200, &first["message"]["id"]));
        assert_eq!((other, &refused["error"]["code"]), (422, &json!("client_id_reused")));
        space.settle().await;
        assert_eq!(space.roles().await, ["user", "assistant"]);
    }

    async fn a_server_that_shuts_down_re_queues_its_running_reply(backend) {
        let env = [("SHUTDOWN_GRACE_MS", "300")];
        let mut space = TestSpace::open_with(backend, json!({}), &["Ada"], &env).await;
        let client = WsClient::subscribed(&space.person, space.conversation).await;
        let tab = ClientModel::open(&space.person, space.conversation).await;

        let gate = space.hold_next_reply();
        let run = space.post("Tell me a story.").await["run"]["id"].as_str().expect("a reply is queued").to_owned();
        client.wait_for_event("stream_chunk", &run).await;
        space.server.sigterm();
        client.wait_for_event("stream_reset", &run).await;
        client.wait_for_event("typing_stop", &run).await;
        let exit = space.server.wait_exit().await;

        assert!(exit.success(), "the shutdown failed: {exit}");
        let released = space.runs().await;
        assert_eq!(released.len(), 1);
        assert_eq!((released[0].status.as_str(), released[0].attempt), ("queued", 1));

        gate.open();
        space.server.restart().await;
        tab.wait_until("the reply", |timeline| timeline.lines().len() == 2).await;
        space.settle().await;
        let ended = space.runs().await;
        assert_eq!((ended.len(), ended[0].id == released[0].id, ended[0].status.as_str()), (1, true, "succeeded"));
    }

    async fn an_idle_server_with_an_open_socket_shuts_down_at_once(backend) {
        let mut space = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let client = WsClient::subscribed(&space.person, space.conversation).await;

        space.post("Hello.").await;
        space.settle().await;
        space.server.sigterm();

        // An open socket must not delay the shutdown.
        client.wait_closed().await;
        assert!(space.server.wait_exit().await.success());
    }

    async fn a_server_resumed_after_its_lease_expired_produces_one_reply(backend) {
        let space = TestSpace::open(backend, json!({}), &["Ada"]).await;
        let tab = ClientModel::open(&space.person, space.conversation).await;

        let gate = space.hold_next_reply();
        space.post("Tell me a story.").await;
        tab.wait_until("the first words", |timeline| timeline.stream().is_some_and(|stream| !stream.text.is_empty())).await;
        space.server.sigstop();
        wait_until_stale(&space).await;
        space.server.sigcont();
        gate.open();

        tab.wait_until("the reply", |timeline| timeline.lines().len() == 2).await;
        let mut facts = space.settle().await;
        let succeeded = space.run_statuses().await.into_iter().filter(|status| status == "succeeded").count();
        assert_eq!((succeeded, space.roles().await), (1, vec!["user".to_owned(), "assistant".to_owned()]));
        assert_eq!(tab.timeline().lines(), facts.timeline(space.conversation).await);
    }
}

/// Waits until the newest heartbeat is older than `STALE`.
async fn wait_until_stale(space: &TestSpace) {
    let mut facts = space.facts().await;
    poll::until("the heartbeat is stale", async || {
        let beat = facts
            .number("SELECT CAST(max(heartbeat_at) AS TEXT) FROM conversation_runs")
            .await;
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .expect("the clock is after 1970");
        (now.as_millis() as i64 - beat > STALE.as_millis() as i64).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_node_replies_for_a_stopped_one_which_then_commits_nothing() {
    if !TestBackend::Postgres.is_available() {
        eprintln!("skipped: TROUPE_TEST_POSTGRES_URL is not set");
        return;
    }
    let space = TestSpace::open(TestBackend::Postgres, json!({}), &["Ada"]).await;
    let tab = ClientModel::open(&space.person, space.conversation).await;

    let gate = space.hold_next_reply();
    space.post("Tell me a story.").await;
    tab.wait_until("the first words", |timeline| {
        timeline
            .stream()
            .is_some_and(|stream| !stream.text.is_empty())
    })
    .await;
    space.server.sigstop();
    let second = space.second_server().await;
    space.upstream.wait_for_requests(2).await;
    gate.open();
    space.settle().await;
    space.server.sigcont();
    // The resumed node has the complete reply but must not store it, because its lease is stale. A
    // second message to this node shows that it runs, and gives it time for a wrong write.
    space.post("And then?").await;
    let mut facts = space.settle().await;

    assert_eq!(
        space.run_statuses().await,
        ["failed", "succeeded", "succeeded"]
    );
    assert_eq!(
        space.roles().await,
        ["user", "assistant", "user", "assistant"]
    );
    let other_tab = ClientModel::open(
        &HttpClient::sign_in(&second.url(), "ann").await,
        space.conversation,
    )
    .await;
    assert_eq!(
        other_tab.timeline().lines(),
        facts.timeline(space.conversation).await
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_the_same_file_refuses_to_start() {
    let space = TestSpace::open(TestBackend::Sqlite, json!({}), &["Ada"]).await;
    let mut second = Server::prepare(&space.database, &[]);

    second.spawn();
    let exit = second.wait_exit().await;

    assert!(!exit.success());
    assert!(
        second.output().contains("another"),
        "the reason is missing: {}",
        second.output()
    );
    space.post("The first one goes on.").await;
    space.settle().await;
}
