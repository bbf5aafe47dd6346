//! A node without Redis checks the permissions of its open sockets itself.

use serde_json::json;

use crate::support::http_client::{HttpClient, expect};
use crate::support::nodes::{Nodes, are_given};
use crate::support::ws_client::WsClient;

/// Opens a member's socket on a node that cannot reach Redis.
async fn open_without_redis() -> (Nodes, HttpClient, WsClient) {
    let nodes = Nodes::open().await;
    let bob = nodes.member("bob").await;
    nodes.back_proxy.cut();
    let client = WsClient::subscribed(&bob.with_base(&nodes.back.base), nodes.conversation).await;
    (nodes, bob, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_out_reaches_a_node_without_redis() {
    if !are_given() {
        return;
    }
    let (nodes, bob, client) = open_without_redis().await;

    let (status, _) = bob.delete("/api/session").await;
    client.wait_closed().await;

    assert_eq!(status, 204);
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disabling_a_user_reaches_a_node_without_redis() {
    if !are_given() {
        return;
    }
    let (nodes, bob, client) = open_without_redis().await;
    let me = expect(200, bob.get("/api/session").await);

    let path = format!("/api/admin/users/{}", me["user"]["id"]);
    let disabled = json!({"status": "disabled"});
    expect(200, nodes.ann.patch(&path, disabled).await);

    client.wait_closed().await;
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removing_a_member_reaches_a_node_without_redis() {
    if !are_given() {
        return;
    }
    let (nodes, _bob, client) = open_without_redis().await;
    let memberships = format!("/api/spaces/{}/memberships", nodes.space["id"]);
    let all = expect(200, nodes.ann.get(&memberships).await);
    let mut all = all["data"].as_array().unwrap().iter();
    let membership = all.find(|it| it["display_name"] == "bob").unwrap().clone();

    let path = format!("/api/memberships/{}", membership["id"]);
    let (status, _) = nodes.ann.delete(&path).await;
    client
        .wait_for("the end of the subscription", |it| {
            it["type"] == "unsubscribed"
        })
        .await;

    assert_eq!(status, 204);
    nodes.close().await;
}
