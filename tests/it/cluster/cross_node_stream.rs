//! What users on one node see of events on another node while Redis and PostgreSQL work.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::http_client::{HttpClient, expect};
use crate::support::nodes::{Nodes, are_given};
use crate::support::ws_client::{WsClient, connect_with_key};
use crate::support::{api_contract, short_frames};

/// Shorter than the interval of the database polling, which is several seconds.
const AT_ONCE: Duration = Duration::from_secs(3);

/// Opens a node for users, a node that generates "One two three." word by word, and the hold point.
macro_rules! writing {
    ($nodes:ident, $gate:ident, $client:ident) => {
        let $nodes = Nodes::open().await;
        let $client = $nodes.ws_client().await;
        $nodes.upstream.reply_with("One two three.");
        let $gate = $nodes.upstream.gate();
        $nodes.post("Count.").await;
        $gate.step();
        $client
            .wait_for("the first word", |it| it["delta"] == "One")
            .await;
    };
}

fn types(client: &WsClient) -> Vec<String> {
    let log = client.log();
    let mut types: Vec<String> = log
        .iter()
        .filter_map(|it| it["type"].as_str())
        .filter(|it| *it != "presence_updated")
        .map(str::to_owned)
        .collect();
    types.dedup_by(|later, earlier| later == earlier && later == "stream_chunk");
    types
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_generated_on_another_node_arrives_like_a_local_one() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    nodes.upstream.reply_with("One two three.");
    let client = nodes.ws_client().await;

    nodes.post("Count.").await;
    client
        .wait_for("the end of the run", |it| it["type"] == "typing_stop")
        .await;

    assert_eq!(
        types(&client),
        [
            "message_created",
            "run_queued",
            "queue_updated",
            "queue_updated",
            "typing_start",
            "stream_chunk",
            "message_created",
            "stream_complete",
            "queue_updated",
            "typing_stop",
        ]
    );
    let text: String = client
        .log()
        .iter()
        .filter_map(|it| it["delta"].as_str())
        .collect();
    assert_eq!(text, "One two three.");
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_subscriber_on_another_node_gets_the_text_so_far() {
    if !are_given() {
        return;
    }
    writing!(nodes, gate, client);

    let late = WsClient::open(&nodes.ann).await;
    let answer = late.subscribe(nodes.conversation, None).await;
    gate.open();
    late.wait_for("the end of the run", |it| it["type"] == "typing_stop")
        .await;

    assert_eq!(answer["snapshot"]["stream"]["text"], "One", "{answer}");
    let rest: String = late
        .log()
        .iter()
        .filter_map(|it| it["delta"].as_str())
        .collect();
    assert_eq!(rest, " two three.");
    drop(client);
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn protocol_2_reads_the_text_of_another_node_over_a_reconnect() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let early = WsClient::open_in_protocol_2(&nodes.ann).await;
    early.subscribe(nodes.conversation, None).await;
    nodes.upstream.reply_with("One two three.");
    let gate = nodes.upstream.gate();
    nodes.post("Count.").await;
    gate.step();
    early
        .wait_for("the first word", |it| it["d"] == "One")
        .await;

    let late = WsClient::open_in_protocol_2(&nodes.ann).await;
    late.subscribe(nodes.conversation, Some(0)).await;
    gate.open();
    let mut streams = Vec::new();
    for client in [early, late] {
        client
            .wait_for("the end of the run", |it| it["type"] == "typing_stop")
            .await;
        client.log().iter().for_each(api_contract::check_frame);
        let log = short_frames::expand(&client.log());
        let is_text = |it: &Value| it["type"] == "stream_chunk";
        let end = log.iter().rposition(is_text).expect("text arrived");
        streams.push(short_frames::shown_stream(&log[..=end]));
    }

    assert_eq!(
        streams[0].as_ref().map(|it| it.text.as_str()),
        Some("One two three.")
    );
    assert_eq!(streams[0], streams[1]);
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_started_during_a_reply_requests_the_missed_text() {
    if !are_given() {
        return;
    }
    writing!(nodes, gate, client);
    let url = nodes.front_proxy.url();
    let env = [("TROUPE_WORKERS", "0"), ("REDIS_URL", url.as_str())];
    let third = nodes.front.start_second_node(&env).await;

    let late = WsClient::open(&nodes.ann.with_base(&third.base)).await;
    let answer = late.subscribe(nodes.conversation, None).await;
    gate.open();
    late.wait_for("the end of the run", |it| it["type"] == "typing_stop")
        .await;

    let mut text = answer["snapshot"]["stream"]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    for frame in late.log() {
        text += frame["delta"].as_str().unwrap_or_default();
    }
    assert_eq!(text, "One two three.", "{:?}", late.log());
    drop(client);
    third.close().await;
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_on_one_node_ends_the_reply_of_another() {
    if !are_given() {
        return;
    }
    writing!(nodes, gate, client);

    let (status, _) = nodes.ann.stop(nodes.conversation).await;
    let began = Instant::now();
    nodes.upstream.wait_for_disconnect(0).await;
    let took = began.elapsed();
    gate.open();

    assert_eq!(status, 202);
    assert!(took < AT_ONCE, "the model call was aborted after {took:?}");
    client
        .wait_for("the end of the run", |it| it["type"] == "typing_stop")
        .await;
    assert_eq!(nodes.ann.messages(nodes.conversation).await.len(), 1);
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_can_keep_the_partial_text_of_another_node() {
    if !are_given() {
        return;
    }
    writing!(nodes, gate, client);

    let path = format!("/api/conversations/{}/stop", nodes.conversation);
    let (status, _) = nodes.ann.post(&path, json!({"keep_partial": true})).await;
    nodes.upstream.wait_for_disconnect(0).await;
    client
        .wait_for("the end of the run", |it| it["type"] == "typing_stop")
        .await;
    gate.open();

    assert_eq!(status, 202);
    let messages = nodes.ann.messages(nodes.conversation).await;
    assert_eq!(messages[1]["content"], "One");
    nodes.close().await;
}

/// Asserts that an event on the front node closes a socket that the same user has on the back node.
async fn assert_closes_socket(trigger: impl AsyncFnOnce(&Nodes, &HttpClient)) {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let bob = nodes.member("bob").await;
    let client = WsClient::subscribed(&bob.with_base(&nodes.back.base), nodes.conversation).await;

    trigger(&nodes, &bob).await;
    let began = Instant::now();
    client.wait_closed().await;

    assert!(
        began.elapsed() < AT_ONCE,
        "closed after {:?}",
        began.elapsed()
    );
    nodes.close().await;
}

async fn id_of(person: &HttpClient) -> Value {
    let me = expect(200, person.get("/api/session").await);
    me["user"]["id"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_out_on_one_node_applies_to_all() {
    assert_closes_socket(async |_, bob| {
        let (status, _) = bob.delete("/api/session").await;
        assert_eq!(status, 204);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disabling_a_user_on_one_node_applies_to_all() {
    assert_closes_socket(async |nodes, bob| {
        let path = format!("/api/admin/users/{}", id_of(bob).await);
        expect(
            200,
            nodes.ann.patch(&path, json!({"status": "disabled"})).await,
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_revoked_on_one_node_closes_its_sockets_on_all_nodes() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let bob = nodes.member("bob").await;
    let made = expect(
        201,
        bob.post("/api/api_keys", json!({"name": "program"})).await,
    );
    let address = format!("{}/ws", nodes.back.base.replacen("http", "ws", 1));
    let key = made["key"].as_str().expect("the response has no key");
    let socket = connect_with_key(&address, key).await;
    let client = WsClient::at(socket.expect("the upgrade failed"));

    let path = format!("/api/api_keys/{}", made["id"]);
    let (status, _) = bob.delete(&path).await;
    let began = Instant::now();
    client.wait_closed().await;

    assert_eq!(status, 204);
    assert!(
        began.elapsed() < AT_ONCE,
        "closed after {:?}",
        began.elapsed()
    );
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demoted_admin_loses_events_of_other_spaces_on_every_node() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let bob = HttpClient::register(&nodes.front.base, "bob").await;
    let path = format!("/api/admin/users/{}", id_of(&bob).await);
    expect(200, nodes.ann.patch(&path, json!({"role": "admin"})).await);
    let client = WsClient::subscribed(&bob.with_base(&nodes.back.base), nodes.conversation).await;

    expect(200, nodes.ann.patch(&path, json!({"role": "user"})).await);
    let began = Instant::now();
    client
        .wait_for("the end of the subscription", |it| {
            it["type"] == "unsubscribed"
        })
        .await;

    assert!(
        began.elapsed() < AT_ONCE,
        "received after {:?}",
        began.elapsed()
    );
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_removed_on_one_node_gets_no_events_on_another() {
    if !are_given() {
        return;
    }
    let nodes = Nodes::open().await;
    let bob = nodes.member("bob").await;
    let client = WsClient::subscribed(&bob.with_base(&nodes.back.base), nodes.conversation).await;
    let memberships = format!("/api/spaces/{}/memberships", nodes.space["id"]);
    let all = expect(200, nodes.ann.get(&memberships).await);
    let mut all = all["data"].as_array().unwrap().iter();
    let membership = all.find(|it| it["display_name"] == "bob").unwrap().clone();

    let path = format!("/api/memberships/{}", membership["id"]);
    let (status, answer) = nodes.ann.delete(&path).await;
    let began = Instant::now();
    client
        .wait_for("the end of the subscription", |it| {
            it["type"] == "unsubscribed"
        })
        .await;

    assert_eq!(status, 204, "{answer}");
    assert!(
        began.elapsed() < AT_ONCE,
        "received after {:?}",
        began.elapsed()
    );
    nodes.close().await;
}
