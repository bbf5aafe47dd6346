//! Subscriptions: snapshots, ordered events, streams and spaces.

use base::ids::ConversationId;
use realtime::envelope::Envelope;
use realtime::topic::Topic;
use serde_json::{Value, json};

use crate::live::fixture::{LiveFixture, Note, code, register};
use crate::support::http_client::{expect, id};
use crate::support::poll;
use crate::support::ws_client::WsClient;

fn texts(snapshot: &Value) -> Vec<&str> {
    let messages = snapshot["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|it| it["content"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_subscription_begins_with_a_complete_snapshot() {
    let fixture = LiveFixture::open().await;
    fixture.post(&fixture.ann, "One.").await;
    fixture.post(&fixture.ann, "Two.").await;
    let client = WsClient::open(&fixture.bob).await;

    let answer = client.subscribe(fixture.conversation.0, None).await;

    assert_eq!(answer["ok"], true);
    let conversation = fixture.bob.conversation(fixture.conversation.0).await;
    assert_eq!(answer["rev"], conversation["rev"]);
    let snapshot = &answer["snapshot"];
    assert_eq!(texts(snapshot), ["One.", "Two."]);
    for key in [
        "reset",
        "state",
        "round",
        "queued_run",
        "running_run",
        "stream",
    ] {
        assert!(snapshot.get(key).is_some(), "{key} is missing: {snapshot}");
    }
    let here = json!([{"membership_id": fixture.bobs_seat, "state": "online"}]);
    assert_eq!(snapshot["presence"], here);
    fixture.close().await;
}

#[tokio::test]
async fn a_returning_client_receives_only_missed_events() {
    let fixture = LiveFixture::open().await;
    fixture.post(&fixture.ann, "Known.").await;
    let client = WsClient::open(&fixture.bob).await;
    let rev = client.subscribe(fixture.conversation.0, None).await["rev"].as_i64();
    drop(client);
    fixture.post(&fixture.ann, "Missed.").await;
    let client = WsClient::open(&fixture.bob).await;

    let answer = client.subscribe(fixture.conversation.0, rev).await;
    let future = client.subscribe(fixture.conversation.0, Some(1_000)).await;

    assert_eq!(texts(&answer["snapshot"]), ["Missed."]);
    assert_eq!(answer["snapshot"]["reset"], false);
    assert_eq!(texts(&future["snapshot"]), ["Known.", "Missed."]);
    assert_eq!(future["snapshot"]["reset"], true);
    fixture.close().await;
}

#[tokio::test]
async fn durable_events_follow_the_snapshot_without_a_gap() {
    let fixture = LiveFixture::open().await;
    let client = WsClient::open(&fixture.bob).await;
    let rev = client.subscribe(fixture.conversation.0, None).await["rev"]
        .as_i64()
        .unwrap();

    for n in 0..5 {
        fixture.post(&fixture.ann, &format!("Message {n}")).await;
    }

    let last = client.wait_for("the last message", |it| {
        it["message"]["content"] == "Message 4"
    });
    let last = last.await["rev"].as_i64().unwrap();
    let revs: Vec<i64> = client
        .log()
        .iter()
        .skip(1)
        .filter_map(|it| it["rev"].as_i64())
        .collect();
    assert_eq!(revs, (rev + 1..=last).collect::<Vec<_>>());
    fixture.close().await;
}

#[tokio::test]
async fn an_event_published_during_subscription_is_received_once() {
    let fixture = LiveFixture::open().await;
    let mut clients = Vec::new();
    for round in 0..10 {
        let client = WsClient::open(&fixture.bob).await;
        let text = format!("Round {round}");

        let (answer, ()) = tokio::join!(
            client.subscribe(fixture.conversation.0, None),
            fixture.post(&fixture.ann, &text)
        );

        if !texts(&answer["snapshot"]).contains(&text.as_str()) {
            client
                .wait_for("the message", |it| {
                    it["message"]["content"] == text.as_str()
                })
                .await;
        }
        clients.push((client, text));
    }
    for (client, text) in &clients {
        let log = client.log();
        let in_snapshot = texts(&log[0]["snapshot"])
            .iter()
            .filter(|it| *it == text)
            .count();
        let as_event = log
            .iter()
            .filter(|it| it["message"]["content"] == text.as_str())
            .count();
        assert_eq!(in_snapshot + as_event, 1, "{text}: {log:?}");
    }
    fixture.close().await;
}

#[tokio::test]
async fn a_stream_arrives_in_order_and_queued_deltas_are_merged() {
    let fixture = LiveFixture::open().await;
    let client = fixture.bobs_ws_client().await;

    let run = fixture.start_run();
    for piece in ["Once ", "upon ", "a ", "time ", "😀."] {
        fixture.write_delta(run, piece);
    }
    fixture.end_run(run);

    client.wait_for_event("typing_stop", &run.to_string()).await;
    let expected = [
        "typing_start",
        "stream_chunk",
        "stream_complete",
        "typing_stop",
    ];
    assert_eq!(client.order_of(&run.to_string()), expected);
    let mut text = String::new();
    for chunk in client
        .log()
        .iter()
        .filter(|it| it["type"] == "stream_chunk")
    {
        assert_eq!(chunk["offset"], text.encode_utf16().count());
        text.push_str(chunk["delta"].as_str().unwrap());
    }
    assert_eq!(text, "Once upon a time 😀.");
    fixture.close().await;
}

#[tokio::test]
async fn an_unannounced_run_sends_no_events() {
    let fixture = LiveFixture::open().await;
    let run = fixture.start_run();
    fixture.write_delta(run, "Before. ");
    // The database has no running run, so the snapshot shows that this run has ended.
    let client = fixture.bobs_ws_client().await;

    fixture.write_delta(run, "After.");
    fixture.end_run(run);
    fixture.publish(&Note { text: "end".into() });

    client.wait_for("the note", |it| it["type"] == "note").await;
    assert_eq!(client.order_of(&run.to_string()), [""; 0]);
    fixture.close().await;
}

#[tokio::test]
async fn no_events_follow_an_unsubscribe() {
    let fixture = LiveFixture::open().await;
    let client = fixture.bobs_ws_client().await;

    let answer = client
        .call(json!({"op": "unsubscribe", "conversation_id": fixture.conversation}))
        .await;
    assert_eq!(answer["ok"], true);
    fixture.publish(&Note {
        text: "unheard".into(),
    });

    client.subscribe(fixture.conversation.0, None).await;
    assert!(client.log().iter().all(|it| it["type"] != "note"));
    fixture.close().await;
}

#[tokio::test]
async fn an_inaccessible_conversation_is_not_found() {
    let fixture = LiveFixture::open().await;
    let (eve, _) = register(&fixture.house.base, "eve").await;
    let client = WsClient::open(&eve).await;
    let conversation = fixture.conversation.0;

    let frames = [
        json!({"op": "subscribe", "conversation_id": conversation}),
        json!({"op": "subscribe", "conversation_id": 999_999}),
        json!({"op": "subscribe_space", "space_id": fixture.space}),
        json!({"op": "typing", "conversation_id": conversation, "active": true}),
    ];
    for frame in frames {
        let answer = client.call(frame.clone()).await;
        assert_eq!(code(&answer), "not_found", "{frame}");
    }
    fixture.publish(&Note {
        text: "secret".into(),
    });

    client.call(json!({"op": "ping"})).await;
    assert!(client.log().iter().all(|it| it["type"] != "note"));
    fixture.close().await;
}

#[tokio::test]
async fn a_missing_event_is_detected_and_the_client_is_asked_to_resync() {
    let fixture = LiveFixture::open().await;
    let client = WsClient::open(&fixture.bob).await;
    let rev = client.subscribe(fixture.conversation.0, None).await["rev"]
        .as_i64()
        .unwrap();
    let topic = Topic::Conversation(fixture.conversation);
    let note = Note { text: "far".into() };

    fixture
        .house
        .app
        .hub
        .publish(Envelope::durable(topic, &note, rev + 2));

    let resync = client
        .wait_for("a resync", |it| it["type"] == "resync")
        .await;
    assert_eq!(resync["conversation_id"], fixture.conversation.0);
    let again = client.subscribe(fixture.conversation.0, Some(rev)).await;
    assert_eq!(again["rev"], rev);
    fixture.post(&fixture.ann, "Here we go on.").await;
    client
        .wait_for("the message", |it| {
            it["message"]["content"] == "Here we go on."
        })
        .await;
    assert!(client.log().iter().all(|it| it["type"] != "note"));
    fixture.close().await;
}

#[tokio::test]
async fn a_space_subscription_covers_all_its_conversations() {
    let fixture = LiveFixture::open().await;
    let client = WsClient::open(&fixture.bob).await;
    let answer = client
        .call(json!({"op": "subscribe_space", "space_id": fixture.space}))
        .await;
    assert_eq!(answer["ok"], true);

    fixture.post(&fixture.ann, "Hello.").await;

    let activity = client
        .wait_for("activity", |it| it["type"] == "activity")
        .await;
    assert_eq!(activity["conversation_id"], fixture.conversation.0);
    assert_eq!(activity["seq"], 1);
    let path = format!("/api/spaces/{}", fixture.space);
    expect(200, fixture.ann.patch(&path, json!({"name": "New"})).await);
    let updated = client
        .wait_for("the space", |it| it["type"] == "space_updated")
        .await;
    assert_eq!(updated["space"]["name"], "New");
    fixture.close().await;
}

#[tokio::test]
async fn a_topic_ends_with_its_last_socket() {
    let fixture = LiveFixture::open().await;
    let client = fixture.bobs_ws_client().await;
    assert!(fixture.house.app.hub.n_topics() >= 2);
    assert_eq!(
        fixture
            .house
            .app
            .presence
            .members(fixture.conversation)
            .len(),
        1
    );

    drop(client);

    let hub = &fixture.house.app.hub;
    poll::until("all topics end", async || {
        (hub.n_topics() == 0).then_some(())
    })
    .await;
    assert!(
        fixture
            .house
            .app
            .presence
            .members(fixture.conversation)
            .is_empty()
    );
    fixture.close().await;
}

#[tokio::test]
async fn one_socket_receives_events_of_several_conversations() {
    let fixture = LiveFixture::open().await;
    let path = format!("/api/spaces/{}/conversations", fixture.space);
    let other = id(&expect(
        201,
        fixture.ann.post(&path, json!({"title": "Other"})).await,
    ));
    let client = fixture.bobs_ws_client().await;
    assert_eq!(client.subscribe(other, None).await["ok"], true);

    fixture.publish(&Note {
        text: "here".into(),
    });
    let topic = Topic::Conversation(ConversationId(other));
    let there = Note {
        text: "there".into(),
    };
    fixture
        .house
        .app
        .hub
        .publish(Envelope::plain(topic, &there));

    client
        .wait_for("the note of the first conversation", |it| {
            it["text"] == "here"
        })
        .await;
    client
        .wait_for("the note of the second conversation", |it| {
            it["text"] == "there"
        })
        .await;
    fixture.close().await;
}
