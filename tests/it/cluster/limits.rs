//! Limits apply to all nodes together while Redis works, and to each node alone while it does not.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::nodes::{Nodes, are_given};
use crate::support::poll;

const THREE: &[(&str, &str)] = &[("LIMIT_POSTS_PER_MINUTE", "3")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_on_one_node_count_on_another() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open_with(THREE).await;
    let (here, there) = (&nodes.ann, nodes.ann_on_back_node());
    let mut statuses = Vec::new();
    for person in [here, &there, here, &there, here] {
        let (status, _) = person
            .post_message(nodes.conversation, "Again.", None)
            .await;
        statuses.push(status);
    }

    assert_eq!(statuses, [201, 201, 201, 429, 429]);
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_frozen_redis_each_node_counts_alone_without_delay() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open_with(THREE).await;
    let (here, there) = (&nodes.ann, nodes.ann_on_back_node());
    nodes.redis.freeze();

    let (mut statuses, mut slowest) = (Vec::new(), Duration::ZERO);
    for person in [here, here, here, here, &there] {
        let began = Instant::now();
        let (status, _) = person
            .post_message(nodes.conversation, "Again.", None)
            .await;
        slowest = slowest.max(began.elapsed());
        statuses.push(status);
    }

    assert_eq!(statuses, [201, 201, 201, 429, 201]);
    assert!(slowest < Duration::from_secs(1), "a post took {slowest:?}");
    nodes.redis.thaw();
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_of_one_user_are_counted_across_all_nodes() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open_with(&[("LIMIT_SOCKETS_PER_USER", "2")]).await;
    let there = nodes.ann_on_back_node();
    let one = crate::support::ws_client::connect(&nodes.ann).await;
    let two = crate::support::ws_client::connect(&there).await;
    assert!(one.is_ok() && two.is_ok());
    assert!(crate::support::ws_client::connect(&there).await.is_err());

    drop(one);

    poll::until(
        "a closed socket frees a permit on the other node",
        async || {
            crate::support::ws_client::connect(&there)
                .await
                .ok()
                .map(drop)
        },
    )
    .await;
    drop(two);
    nodes.close().await;
}
