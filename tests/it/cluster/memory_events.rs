//! Events of the memory, seen from another node.

use serde_json::{Value, json};

use crate::support::http_client::{HttpClient, expect, id};
use crate::support::nodes::{Nodes, are_given};
use crate::support::ws_client::WsClient;

async fn follow(person: &HttpClient, space: &Value) -> WsClient {
    let client = WsClient::open(person).await;
    let subscribe = json!({"op": "subscribe_space", "space_id": id(space)});
    assert_eq!(client.call(subscribe).await["ok"], true);
    client
}

fn is_of(event: &Value, content: &str) -> bool {
    event["type"] == "memory_updated" && event["memory"]["content"] == content
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_reaches_only_those_on_another_node_who_may_see_the_memory() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let bob = nodes.member("bob").await;
    let anns = follow(&nodes.ann_on_back_node(), &nodes.space).await;
    let bobs = follow(&bob.with_base(&nodes.back.base), &nodes.space).await;
    let roster = format!("/api/spaces/{}/memberships", id(&nodes.space));
    let roster = expect(200, bob.get(&roster).await);
    let mut members = roster["data"].as_array().unwrap().iter();
    let own = members.find(|it| it["display_name"] == "bob").unwrap();
    let path = format!("/api/spaces/{}/memories", id(&nodes.space));

    let secret =
        json!({"content": "Bob hides a map.", "kind": "event", "membership_id": own["id"]});
    expect(201, bob.post(&path, secret).await);
    let public = json!({"content": "The mill burned down.", "kind": "event"});
    expect(201, bob.post(&path, public).await);

    let hidden = |it: &Value| is_of(it, "Bob hides a map.");
    bobs.wait_for("the own memory", hidden).await;
    for client in [&anns, &bobs] {
        let fits = |it: &Value| is_of(it, "The mill burned down.");
        client.wait_for("the memory of everyone", fits).await;
    }
    assert!(!anns.log().iter().any(|it| it.to_string().contains("map")));
    nodes.close().await;
}
