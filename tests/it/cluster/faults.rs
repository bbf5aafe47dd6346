//! Faults of Redis and of the connections to it: users see a delay and no other effect.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::database_facts::DatabaseFacts;
use crate::support::nodes::{Nodes, are_given};
use crate::support::postgres_proxy::PostgresProxy;
use crate::support::redis::RedisServer;
use crate::support::redis_proxy::ProxyFault;
use crate::support::test_space::{SHORT_LEASES, model_env};
use crate::support::ws_client::WsClient;
use crate::support::{invariants, poll};

/// The longest delay for a reader while Redis delivers nothing.
const AT_MOST_BEHIND: Duration = Duration::from_secs(10);

/// Follows a conversation as a client does: subscribes again after a reset.
async fn wait_for_message(client: &WsClient, conversation: i64, text: &str) -> Duration {
    let began = Instant::now();
    let mut position = 0;
    let is_it = |it: &serde_json::Value| it["message"]["content"] == text;
    loop {
        let matters = |it: &serde_json::Value| is_it(it) || it["type"] == "resync";
        let (after, frame) = client.wait_after(position, text, matters).await;
        position = after;
        if is_it(&frame) {
            return began.elapsed();
        }
        let answer = client.subscribe(conversation, Some(0)).await;
        let messages = answer["snapshot"]["messages"].as_array().unwrap();
        if messages.iter().any(|it| it["content"] == text) {
            return began.elapsed();
        }
    }
}

/// Asserts that the client ends with the stored state.
async fn converges(nodes: &Nodes, client: &WsClient, text: &str) {
    let took = wait_for_message(client, nodes.conversation, text).await;
    assert!(took < AT_MOST_BEHIND, "received after {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis_from_the_start_readers_are_at_most_ten_seconds_behind() {
    if !are_given() {
        return;
    }
    let mut redis = RedisServer::start().await;
    redis.kill();
    let nodes = Nodes::open_over(redis, &[]).await;
    nodes.upstream.reply_with("One two three.");
    let client = nodes.ws_client().await;

    nodes.post("Count.").await;

    converges(&nodes, &client, "One two three.").await;
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_of_redis_nodes_reconnect_within_five_seconds() {
    if !are_given() {
        return;
    }
    let mut nodes = Nodes::open().await;
    let n_connects = |nodes: &Nodes| {
        [&nodes.front, &nodes.back].map(|it| {
            let bus = it.app.hub.bus().state().unwrap();
            (bus.metrics.connects.get(), bus.metrics.connected.get())
        })
    };
    assert_eq!(n_connects(&nodes), [(1, 1), (1, 1)]);

    nodes.redis.kill();
    nodes.redis.start_again().await;
    let began = Instant::now();
    poll::until("both nodes are connected again", async || {
        let all = n_connects(&nodes);
        all.iter().all(|it| it.0 > 1 && it.1 == 1).then_some(())
    })
    .await;

    assert!(began.elapsed() < Duration::from_secs(5));
    nodes.upstream.reply_with("One two three.");
    let client = nodes.ws_client().await;
    nodes.post("Count.").await;
    converges(&nodes, &client, "One two three.").await;
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_a_node_without_redis_are_at_most_ten_seconds_behind() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    nodes.upstream.reply_with("One two three.");
    let client = nodes.ws_client().await;
    nodes.front_proxy.cut();

    nodes.post("Count.").await;
    converges(&nodes, &client, "One two three.").await;
    nodes.front_proxy.reconnect();

    nodes.wait_until_connected().await;
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_redis_delays_no_request() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let client = nodes.ws_client().await;
    nodes.post("Before.").await;
    nodes.redis.freeze();

    let mut slowest = Duration::ZERO;
    for n in 0..20 {
        let began = Instant::now();
        nodes.post(&format!("Line {n}.")).await;
        slowest = slowest.max(began.elapsed());
    }

    assert!(slowest < Duration::from_secs(1), "a post took {slowest:?}");
    converges(&nodes, &client, "Line 19.").await;
    nodes.redis.thaw();
    nodes.wait_until_connected().await;
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losing_half_of_the_redis_messages_is_survived() {
    if !are_given() {
        return;
    }
    assert_survives(ProxyFault::LoseHalf).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losing_all_redis_messages_is_survived() {
    if !are_given() {
        return;
    }
    assert_survives(ProxyFault::LoseAll).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicated_redis_messages_are_survived() {
    if !are_given() {
        return;
    }
    assert_survives(ProxyFault::Repeat).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reordered_redis_messages_are_survived() {
    if !are_given() {
        return;
    }
    assert_survives(ProxyFault::Swap).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corrupted_redis_messages_are_survived() {
    if !are_given() {
        return;
    }
    assert_survives(ProxyFault::Garble).await;
}

/// Sends three replies over a connection with this fault; each time the timeline is correct in
/// time.
async fn assert_survives(fault: ProxyFault) {
    let nodes = Nodes::open().await;
    let client = nodes.ws_client().await;
    nodes.front_proxy.inject_fault(fault);
    for n in 1..=3 {
        let text = format!("Reply number {n}.");
        nodes.upstream.reply_with(&text);
        nodes.post(&format!("Post {n}.")).await;
        converges(&nodes, &client, &text).await;
    }
    let revs: Vec<i64> = client
        .log()
        .iter()
        .filter_map(|it| it["rev"].as_i64())
        .collect();
    // After a reset the events begin with a snapshot that is not older.
    let falls = revs.windows(2).any(|it| it[1] < it[0]);
    assert!(!falls, "{fault:?}: rev went back: {revs:?}");
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_without_memory_counts_as_unavailable() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let full = ["CONFIG", "SET", "maxmemory", "1mb"];
    nodes.redis.ask(&full).await.expect("the command failed");
    nodes.upstream.reply_with("One two three.");
    let client = nodes.ws_client().await;

    nodes.post("Count.").await;

    converges(&nodes, &client, "One two three.").await;
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_on_the_channel_is_counted_and_not_delivered() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let client = nodes.ws_client().await;
    let n_frames = client.here();
    let forged = format!(
        r#"{{"frame":{{"topic":{{"conversation":{}}},"rev":null}}}}{}"#,
        nodes.conversation, "\n{\"type\":\"forged\"}"
    );
    let garbage: [&[u8]; 4] = [b"", b"\xff\xfe\x00", &[7; 5000], forged.as_bytes()];

    for bytes in garbage {
        assert_eq!(
            nodes.redis.publish_raw(bytes).await,
            2,
            "a node is not subscribed"
        );
    }

    let bus = nodes.front.app.hub.bus().state().unwrap().clone();
    poll::until("the messages are counted", async || {
        (bus.metrics.foreign.get() == 4).then_some(())
    })
    .await;
    nodes.upstream.reply_with("One two three.");
    nodes.post("Count.").await;
    converges(&nodes, &client, "One two three.").await;
    assert!(
        client.log()[n_frames..]
            .iter()
            .all(|it| it["type"] != "forged")
    );
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_fail_and_return_in_another_order_are_survived() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let client = nodes.ws_client().await;
    let mut n = 0;
    let mut turn = async || {
        n += 1;
        let text = format!("Reply number {n}.");
        nodes.upstream.reply_with(&text);
        nodes.post(&format!("Post {n}.")).await;
        converges(&nodes, &client, &text).await;
    };

    nodes.front_proxy.cut();
    turn().await;
    nodes.redis.freeze();
    turn().await;
    nodes.back_proxy.cut();
    nodes.front_proxy.reconnect();
    turn().await;
    nodes.redis.thaw();
    turn().await;
    nodes.back_proxy.reconnect();
    nodes.wait_until_connected().await;
    turn().await;

    let mut facts = DatabaseFacts::open(&nodes.front.database).await;
    let broken = invariants::at_rest(&mut facts).await;
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_a_database_drops_its_runs_and_others_continue() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open_with(&[SHORT_LEASES, &[("TROUPE_WORKERS", "0")]].concat()).await;
    let proxy = PostgresProxy::start(nodes.front.database.url()).await;
    let (model, redis) = (nodes.upstream.base_url(), nodes.back_proxy.url());
    let cut_off = [
        ("DATABASE_URL", proxy.url()),
        ("REDIS_URL", redis.as_str()),
        ("TROUPE_WORKERS", "1"),
    ];
    let env = [SHORT_LEASES, &model_env(&model), &cut_off].concat();
    let third = nodes.front.start_second_node(&env).await;
    nodes.upstream.reply_with("One two three.");
    let gate = nodes.upstream.gate();
    let client = nodes.ws_client().await;
    nodes.post("Count.").await;
    gate.step();
    client
        .wait_for("the first word", |it| it["delta"] == "One")
        .await;

    drop(proxy);

    nodes.upstream.wait_for_disconnect(0).await;
    client
        .wait_for("the failed run", |it| it["type"] == "run_failed")
        .await;
    gate.open();
    nodes.upstream.reply_with("Four five six.");
    let works = [("REDIS_URL", redis.as_str())];
    let env = [SHORT_LEASES, &model_env(&model), &works].concat();
    let fourth = nodes.front.start_second_node(&env).await;
    converges(&nodes, &client, "Four five six.").await;
    fourth.close().await;
    // Its database connections are closed, so it only has to stop.
    third.app.shutdown.stopping.cancel();
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis_a_stop_reaches_another_node_with_its_next_heartbeat() {
    if !are_given() {
        return;
    }
    let mut redis = RedisServer::start().await;
    redis.kill();
    let nodes = Nodes::open_over(redis, SHORT_LEASES).await;
    nodes.upstream.reply_with("One two three.");
    let gate = nodes.upstream.gate();
    nodes.post("Count.").await;
    gate.step();
    nodes.upstream.wait_for_texts(0, 1).await;

    let (status, _) = nodes.ann.stop(nodes.conversation).await;
    nodes.upstream.wait_for_disconnect(0).await;
    gate.open();

    assert_eq!(status, 202);
    assert_eq!(nodes.ann.messages(nodes.conversation).await.len(), 1);
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_end_does_not_leave_a_typing_indicator() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    nodes.upstream.reply_with("One two three.");
    let gate = nodes.upstream.gate();
    let client = nodes.ws_client().await;
    nodes.post("Count.").await;
    gate.step();
    client
        .wait_for("the first word", |it| it["delta"] == "One")
        .await;
    nodes.front_proxy.inject_fault(ProxyFault::LoseAll);

    gate.open();
    let began = Instant::now();
    client
        .wait_for("the resync", |it| it["type"] == "resync")
        .await;
    let answer = client.subscribe(nodes.conversation, Some(0)).await;

    assert!(began.elapsed() < AT_MOST_BEHIND, "{:?}", began.elapsed());
    assert!(answer["snapshot"]["running_run"].is_null(), "{answer}");
    assert!(answer["snapshot"]["stream"].is_null(), "{answer}");
    nodes.close().await;
}
