//! Presence and typing indicators, seen from another node.

use serde_json::{Value, json};

use crate::support::nodes::{Nodes, are_given};
use crate::support::ws_client::WsClient;

fn n_present(frame: &Value) -> Option<usize> {
    let is_one = frame["type"] == "presence_updated";
    is_one.then(|| frame["members"].as_array().map_or(0, Vec::len))
}

async fn wait_for_members(client: &WsClient, from: usize, n: usize) -> usize {
    let what = format!("{n} members");
    let fits = |it: &Value| n_present(it) == Some(n);
    client.wait_after(from, &what, fits).await.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_on_another_node_is_present_until_leaving() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let bob = nodes.member("bob").await;
    let anns = nodes.ws_client().await;

    let bobs = WsClient::open(&bob.with_base(&nodes.back.base)).await;
    let answer = bobs.subscribe(nodes.conversation, None).await;
    // Ann was present before Bob; the notification may not have reached his node yet.
    let there = answer["snapshot"]["presence"].as_array().map(Vec::len);
    if there != Some(2) {
        wait_for_members(&bobs, 0, 2).await;
    }
    let position = wait_for_members(&anns, 0, 2).await;
    drop(bobs);
    wait_for_members(&anns, position, 1).await;
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_of_a_closing_node_become_absent() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let bob = nodes.member("bob").await;
    let anns = nodes.ws_client().await;
    let bobs = WsClient::subscribed(&bob.with_base(&nodes.back.base), nodes.conversation).await;
    let position = wait_for_members(&anns, 0, 2).await;

    nodes.back.close().await;

    wait_for_members(&anns, position, 1).await;
    drop(bobs);
    nodes.front.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_of_an_unreachable_node_become_absent() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let bob = nodes.member("bob").await;
    let anns = nodes.ws_client().await;
    let bobs = WsClient::subscribed(&bob.with_base(&nodes.back.base), nodes.conversation).await;
    let position = wait_for_members(&anns, 0, 2).await;

    nodes.back_proxy.cut();

    wait_for_members(&anns, position, 1).await;
    drop(bobs);
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typing_on_another_node_is_shown_for_six_seconds() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let bob = nodes.member("bob").await;
    let anns = nodes.ws_client().await;
    let bobs = WsClient::subscribed(&bob.with_base(&nodes.back.base), nodes.conversation).await;
    let types = |it: &Value, active: bool| it["type"] == "human_typing" && it["active"] == active;

    let typing = json!({"op": "typing", "conversation_id": nodes.conversation, "active": true});
    bobs.call(typing).await;
    anns.wait_for("Bob is typing", |it| types(it, true)).await;
    // The notification that he stopped typing is lost.
    nodes.back_proxy.cut();
    nodes.front.app.clock.advance_ms(6_000);
    anns.wait_for("Bob stopped typing", |it| types(it, false))
        .await;

    assert!(!bobs.log().iter().any(|it| it["type"] == "human_typing"));
    nodes.close().await;
}
