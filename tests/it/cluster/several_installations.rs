//! Rules for any number of nodes: startup, repeated posts, readiness, and separate installations on
//! one Redis.

use std::sync::Arc;

use base::clock::Clock;
use serde_json::json;
use troupe::app::App;

use crate::support::app::settings;
use crate::support::backends::{TestBackend, fresh_database};
use crate::support::database_facts::DatabaseFacts;
use crate::support::http_client::expect;
use crate::support::nodes::{Nodes, are_given};
use crate::support::test_space::model_env;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_nodes_that_start_at_once_on_an_empty_database_all_start() {
    if !are_given() {
        return;
    }
    let n_rounds = match std::env::var("TROUPE_SLOW_TESTS").is_ok_and(|it| it == "1") {
        true => 200,
        false => 3,
    };
    for _ in 0..n_rounds {
        start_five_at_once().await;
    }
}

async fn start_five_at_once() {
    let model = model_env("http://127.0.0.1:9/v1");
    let database = Arc::new(fresh_database(&TestBackend::Postgres).await);
    let starts = (0..5).map(|_| {
        let database = database.clone();
        tokio::spawn(async move {
            let folder = tempfile::tempdir().unwrap();
            let config = settings(&database, folder.path(), &model);
            App::build(config, Clock::manual()).await
        })
    });

    for started in futures::future::join_all(starts).await {
        let app = started.unwrap().expect("the node did not start");
        app.shutdown.stopping.cancel();
        app.shutdown.wait().await;
        app.db.close().await;
    }

    let mut facts = DatabaseFacts::open(&database).await;
    let sql = "SELECT CAST(count(*) AS TEXT) FROM llm_providers";
    assert_eq!(
        facts.number(sql).await,
        2,
        "the demo model and that of the environment"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_post_repeated_on_another_node_is_stored_once() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let there = nodes.ann_on_back_node();
    let mut posts = Vec::new();
    for _ in 0..4 {
        posts.push(
            nodes
                .ann
                .post_message(nodes.conversation, "Hello.", Some("c-1")),
        );
        posts.push(there.post_message(nodes.conversation, "Hello.", Some("c-1")));
    }

    let answers = futures::future::join_all(posts).await;

    let n_made = answers.iter().filter(|it| it.0 == 201).count();
    let ids: Vec<_> = answers.iter().map(|it| &it.1["message"]["id"]).collect();
    assert_eq!(n_made, 1, "{answers:?}");
    assert!(ids.iter().all(|it| *it == ids[0]), "{ids:?}");
    let (status, other) = there
        .post_message(nodes.conversation, "Other words.", Some("c-1"))
        .await;
    assert_eq!(
        (status, &other["error"]["code"]),
        (422, &json!("client_id_reused"))
    );
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_simultaneous_posts_on_two_nodes_the_reject_policy_accepts_one() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let path = format!("/api/spaces/{}", nodes.space["id"]);
    let rule = json!({"during_generation_user_input_policy": "reject"});
    expect(200, nodes.ann.patch(&path, rule).await);
    nodes.upstream.reply_with("One two three.");
    let gate = nodes.upstream.gate();
    let there = nodes.ann_on_back_node();

    let (here, there) = tokio::join!(
        nodes.ann.post_message(nodes.conversation, "Here.", None),
        there.post_message(nodes.conversation, "There.", None),
    );
    gate.open();

    let mut statuses = [here.0, there.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 423]);
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_redis_is_ready_and_reports_redis_as_away() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let (status, well) = nodes.ann.get("/readyz").await;
    assert_eq!(
        (status, well),
        (
            200,
            json!({"status": "ready", "database": "connected", "clock": "known", "redis": "connected", "writes": "working"})
        )
    );

    nodes.front_proxy.cut();

    crate::support::poll::until("Redis is reported as away", async || {
        let (status, answer) = nodes.ann.get("/readyz").await;
        assert_eq!(status, 200);
        (answer["redis"] == "away").then_some(())
    })
    .await;
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_installations_on_one_redis_are_isolated() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let url = nodes.redis.url();
    let env = [("REDIS_URL", url.as_str())];
    let other = crate::support::app::TestApp::start_with(TestBackend::Postgres, &env).await;
    let bus = other.app.hub.bus().state().unwrap().clone();
    crate::support::poll::until("the other installation is connected", async || {
        (bus.metrics.connected.get() == 1).then_some(())
    })
    .await;
    let n_received = bus.metrics.received.get();

    let client = nodes.ws_client().await;
    nodes.upstream.reply_with("One two three.");
    nodes.post("Count.").await;
    client
        .wait_for("the end of the run", |it| it["type"] == "typing_stop")
        .await;

    assert_eq!(
        (
            n_received,
            bus.metrics.received.get(),
            bus.metrics.foreign.get()
        ),
        (0, 0, 0)
    );
    other.close().await;
    nodes.close().await;
}
