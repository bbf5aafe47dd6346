//! Subscriptions: snapshots, ordered events, streams and spaces.

use base::ids::ConversationId;
use realtime::event::Envelope;
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
async fn a_subscription_begins_with_a_whole_snapshot() {
    let stage = LiveFixture::open().await;
    stage.post(&stage.ann, "One.").await;
    stage.post(&stage.ann, "Two.").await;
    let ear = WsClient::open(&stage.bob).await;

    let answer = ear.subscribe(stage.conversation.0, None).await;

    assert_eq!(answer["ok"], true);
    let conversation = stage.bob.conversation(stage.conversation.0).await;
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
    let here = json!([{"membership_id": stage.bobs_seat, "state": "online"}]);
    assert_eq!(snapshot["presence"], here);
    stage.close().await;
}

#[tokio::test]
async fn a_returning_client_receives_only_missed_events() {
    let stage = LiveFixture::open().await;
    stage.post(&stage.ann, "Known.").await;
    let ear = WsClient::open(&stage.bob).await;
    let rev = ear.subscribe(stage.conversation.0, None).await["rev"].as_i64();
    drop(ear);
    stage.post(&stage.ann, "Missed.").await;
    let ear = WsClient::open(&stage.bob).await;

    let answer = ear.subscribe(stage.conversation.0, rev).await;
    let future = ear.subscribe(stage.conversation.0, Some(1_000)).await;

    assert_eq!(texts(&answer["snapshot"]), ["Missed."]);
    assert_eq!(answer["snapshot"]["reset"], false);
    assert_eq!(texts(&future["snapshot"]), ["Known.", "Missed."]);
    assert_eq!(future["snapshot"]["reset"], true);
    stage.close().await;
}

#[tokio::test]
async fn durable_events_follow_the_snapshot_without_a_gap() {
    let stage = LiveFixture::open().await;
    let ear = WsClient::open(&stage.bob).await;
    let rev = ear.subscribe(stage.conversation.0, None).await["rev"]
        .as_i64()
        .unwrap();

    for n in 0..5 {
        stage.post(&stage.ann, &format!("Message {n}")).await;
    }

    let last = ear.wait_for("the last message", |it| {
        it["message"]["content"] == "Message 4"
    });
    let last = last.await["rev"].as_i64().unwrap();
    let revs: Vec<i64> = ear
        .log()
        .iter()
        .skip(1)
        .filter_map(|it| it["rev"].as_i64())
        .collect();
    assert_eq!(revs, (rev + 1..=last).collect::<Vec<_>>());
    stage.close().await;
}

#[tokio::test]
async fn an_event_published_during_subscription_is_received_once() {
    let stage = LiveFixture::open().await;
    let mut ears = Vec::new();
    for round in 0..10 {
        let ear = WsClient::open(&stage.bob).await;
        let text = format!("Round {round}");

        let (answer, ()) = tokio::join!(
            ear.subscribe(stage.conversation.0, None),
            stage.post(&stage.ann, &text)
        );

        if !texts(&answer["snapshot"]).contains(&text.as_str()) {
            ear.wait_for("the message", |it| {
                it["message"]["content"] == text.as_str()
            })
            .await;
        }
        ears.push((ear, text));
    }
    for (ear, text) in &ears {
        let log = ear.log();
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
    stage.close().await;
}

#[tokio::test]
async fn a_stream_arrives_in_order_and_queued_deltas_are_merged() {
    let stage = LiveFixture::open().await;
    let ear = stage.bobs_ws_client().await;

    let run = stage.start_run();
    for piece in ["Once ", "upon ", "a ", "time ", "😀."] {
        stage.write_delta(run, piece);
    }
    stage.end_run(run);

    ear.wait_for_event("typing_stop", &run.to_string()).await;
    let expected = [
        "typing_start",
        "stream_chunk",
        "stream_complete",
        "typing_stop",
    ];
    assert_eq!(ear.order_of(&run.to_string()), expected);
    let mut text = String::new();
    for chunk in ear.log().iter().filter(|it| it["type"] == "stream_chunk") {
        assert_eq!(chunk["offset"], text.encode_utf16().count());
        text.push_str(chunk["delta"].as_str().unwrap());
    }
    assert_eq!(text, "Once upon a time 😀.");
    stage.close().await;
}

#[tokio::test]
async fn an_unannounced_run_sends_no_events() {
    let stage = LiveFixture::open().await;
    let run = stage.start_run();
    stage.write_delta(run, "Before. ");
    // The database has no running run, so the snapshot shows that this run has ended.
    let ear = stage.bobs_ws_client().await;

    stage.write_delta(run, "After.");
    stage.end_run(run);
    stage.publish(&Note { text: "end".into() });

    ear.wait_for("the note", |it| it["type"] == "note").await;
    assert_eq!(ear.order_of(&run.to_string()), [""; 0]);
    stage.close().await;
}

#[tokio::test]
async fn no_events_follow_an_unsubscribe() {
    let stage = LiveFixture::open().await;
    let ear = stage.bobs_ws_client().await;

    let answer = ear
        .call(json!({"op": "unsubscribe", "conversation_id": stage.conversation}))
        .await;
    assert_eq!(answer["ok"], true);
    stage.publish(&Note {
        text: "unheard".into(),
    });

    ear.subscribe(stage.conversation.0, None).await;
    assert!(ear.log().iter().all(|it| it["type"] != "note"));
    stage.close().await;
}

#[tokio::test]
async fn an_inaccessible_conversation_is_not_found() {
    let stage = LiveFixture::open().await;
    let (eve, _) = register(&stage.house.base, "eve").await;
    let ear = WsClient::open(&eve).await;
    let conversation = stage.conversation.0;

    let frames = [
        json!({"op": "subscribe", "conversation_id": conversation}),
        json!({"op": "subscribe", "conversation_id": 999_999}),
        json!({"op": "subscribe_space", "space_id": stage.space}),
        json!({"op": "typing", "conversation_id": conversation, "active": true}),
    ];
    for frame in frames {
        let answer = ear.call(frame.clone()).await;
        assert_eq!(code(&answer), "not_found", "{frame}");
    }
    stage.publish(&Note {
        text: "secret".into(),
    });

    ear.call(json!({"op": "ping"})).await;
    assert!(ear.log().iter().all(|it| it["type"] != "note"));
    stage.close().await;
}

#[tokio::test]
async fn a_missing_event_is_found_and_the_client_asked_to_begin_again() {
    let stage = LiveFixture::open().await;
    let ear = WsClient::open(&stage.bob).await;
    let rev = ear.subscribe(stage.conversation.0, None).await["rev"]
        .as_i64()
        .unwrap();
    let topic = Topic::Conversation(stage.conversation);
    let note = Note { text: "far".into() };

    stage
        .house
        .app
        .hub
        .publish(Envelope::durable(topic, &note, rev + 2));

    let resync = ear.wait_for("a resync", |it| it["type"] == "resync").await;
    assert_eq!(resync["conversation_id"], stage.conversation.0);
    let again = ear.subscribe(stage.conversation.0, Some(rev)).await;
    assert_eq!(again["rev"], rev);
    stage.post(&stage.ann, "Here we go on.").await;
    ear.wait_for("the message", |it| {
        it["message"]["content"] == "Here we go on."
    })
    .await;
    assert!(ear.log().iter().all(|it| it["type"] != "note"));
    stage.close().await;
}

#[tokio::test]
async fn a_space_subscription_covers_all_its_conversations() {
    let stage = LiveFixture::open().await;
    let ear = WsClient::open(&stage.bob).await;
    let answer = ear
        .call(json!({"op": "subscribe_space", "space_id": stage.space}))
        .await;
    assert_eq!(answer["ok"], true);

    stage.post(&stage.ann, "Hello.").await;

    let activity = ear
        .wait_for("activity", |it| it["type"] == "activity")
        .await;
    assert_eq!(activity["conversation_id"], stage.conversation.0);
    assert_eq!(activity["seq"], 1);
    let path = format!("/api/spaces/{}", stage.space);
    expect(200, stage.ann.patch(&path, json!({"name": "New"})).await);
    let updated = ear
        .wait_for("the space", |it| it["type"] == "space_updated")
        .await;
    assert_eq!(updated["space"]["name"], "New");
    stage.close().await;
}

#[tokio::test]
async fn a_topic_ends_with_its_last_socket() {
    let stage = LiveFixture::open().await;
    let ear = stage.bobs_ws_client().await;
    assert!(stage.house.app.hub.n_topics() >= 2);
    assert_eq!(
        stage.house.app.presence.members(stage.conversation).len(),
        1
    );

    drop(ear);

    let hub = &stage.house.app.hub;
    poll::until("all topics end", async || {
        (hub.n_topics() == 0).then_some(())
    })
    .await;
    assert!(
        stage
            .house
            .app
            .presence
            .members(stage.conversation)
            .is_empty()
    );
    stage.close().await;
}

#[tokio::test]
async fn subscriptions_per_socket_are_limited() {
    let stage = LiveFixture::open().await;
    let path = format!("/api/spaces/{}/conversations", stage.space);
    let other = id(&expect(
        201,
        stage.ann.post(&path, json!({"title": "Other"})).await,
    ));
    let ear = stage.bobs_ws_client().await;
    assert_eq!(ear.subscribe(other, None).await["ok"], true);

    stage.publish(&Note {
        text: "here".into(),
    });
    let topic = Topic::Conversation(ConversationId(other));
    let there = Note {
        text: "there".into(),
    };
    stage.house.app.hub.publish(Envelope::plain(topic, &there));

    ear.wait_for("the one", |it| it["text"] == "here").await;
    ear.wait_for("the other", |it| it["text"] == "there").await;
    stage.close().await;
}
