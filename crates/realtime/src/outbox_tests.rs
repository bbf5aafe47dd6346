//! Tests of the outbox: what is merged, what is dropped, and what is never dropped.

use std::sync::Arc;

use base::ids::{ConversationId, SpaceId, UserId};
use proptest::prelude::*;
use serde::Serialize;
use uuid::Uuid;

use super::{MAX_QUEUED_BYTES, NextItem, Outbox};
use crate::envelope::{Envelope, Event, Payload, Protocol, SocketControl, StreamDelta, utf16_len};
use crate::topic::Topic;

#[derive(Serialize)]
struct Note {
    text: String,
}

impl Event for Note {
    fn name(&self) -> &'static str {
        "note"
    }
}

fn note(topic: Topic, text: &str) -> Arc<Envelope> {
    let text = text.to_owned();
    Arc::new(Envelope::plain(topic, &Note { text }))
}

fn conversation_topic(id: i64) -> Topic {
    Topic::Conversation(ConversationId(id))
}

fn delta(conversation: i64, run: u128, offset: usize, text: &str) -> Arc<Envelope> {
    let run = Uuid::from_u128(run);
    let delta = StreamDelta::new(ConversationId(conversation), run, offset, text.to_owned());
    Arc::new(Envelope::delta(delta))
}

/// Pops all queued items, in a short form.
fn drain(outbox: &Outbox) -> Vec<String> {
    let short = |next| match next {
        NextItem::Control(control) => format!("{control:?}"),
        NextItem::Gap(id) => format!("lost {id}"),
        NextItem::Overflow => "overflow".to_owned(),
        NextItem::Barrier(id) => format!("mark {id}"),
        NextItem::Envelope(it) => match &it.payload {
            Payload::Delta(delta) => format!("{}+{}", delta.offset, delta.text),
            Payload::Frame { json, .. } => json.chars().filter(char::is_ascii_digit).collect(),
            _ => "other".to_owned(),
        },
    };
    let mut all = Vec::new();
    while let Some(next) = outbox.try_next() {
        let ended = matches!(next, NextItem::Overflow);
        all.push(short(next));
        if ended {
            break;
        }
    }
    all
}

#[test]
fn queued_deltas_of_one_run_are_merged_into_one_frame() {
    let outbox = Outbox::new();

    outbox.push(&delta(7, 1, 0, "Hé"));
    outbox.push(&delta(7, 1, 2, "l😀"));
    outbox.push(&delta(7, 1, 5, "!"));

    let Some(NextItem::Envelope(it)) = outbox.try_next() else {
        panic!("no envelope is queued");
    };
    let Payload::Delta(delta) = &it.payload else {
        panic!("the envelope is not a delta");
    };
    assert_eq!((delta.offset, delta.length, &*delta.text), (0, 6, "Hél😀!"));
    let frame: serde_json::Value = serde_json::from_str(delta.frame(Protocol::V1)).unwrap();
    let run_id = Uuid::from_u128(1);
    assert_eq!(
        frame,
        serde_json::json!({"type": "stream_chunk", "conversation_id": 7, "run_id": run_id, "offset": 0, "delta": "Hél😀!"})
    );
    assert!(outbox.try_next().is_none());
    assert_eq!(outbox.queued_bytes(), 0);
}

#[test]
fn a_single_queued_delta_is_not_encoded_again() {
    let outbox = Outbox::new();
    let first = delta(7, 1, 0, "alone");

    outbox.push(&first);

    let Some(NextItem::Envelope(it)) = outbox.try_next() else {
        panic!("no envelope is queued");
    };
    assert!(Arc::ptr_eq(&it, &first));
}

#[test]
fn streams_of_two_conversations_are_merged_separately() {
    let outbox = Outbox::new();
    for (offset, text) in [(0, "a"), (1, "b"), (2, "c")] {
        outbox.push(&delta(1, 1, offset, text));
        outbox.push(&delta(2, 2, offset, text));
    }

    assert_eq!(drain(&outbox), ["0+abc", "0+abc"]);
}

#[test]
fn a_frame_between_two_deltas_keeps_its_position() {
    let outbox = Outbox::new();

    outbox.push(&delta(1, 1, 0, "a"));
    outbox.push(&note(conversation_topic(1), "5"));
    outbox.push(&delta(1, 1, 1, "b"));
    outbox.push(&delta(1, 1, 9, "gap"));
    outbox.push(&delta(1, 2, 12, "other run"));

    assert_eq!(drain(&outbox), ["0+a", "5", "1+b", "9+gap", "12+other run"]);
}

#[test]
fn a_backlog_is_dropped_and_each_conversation_in_it_gets_one_gap() {
    let outbox = Outbox::new();
    let kilobyte = "x".repeat(1024);
    outbox.push(&note(Topic::Space(SpaceId(3)), "33"));
    for _ in 0..300 {
        outbox.push(&note(conversation_topic(1), &kilobyte));
        outbox.push(&note(conversation_topic(2), &kilobyte));
    }

    assert!(outbox.queued_bytes() <= MAX_QUEUED_BYTES);
    assert_eq!(drain(&outbox), ["lost 1", "lost 2", "33"]);
    outbox.push(&note(conversation_topic(1), "99"));
    assert_eq!(
        drain(&outbox),
        [""; 0],
        "no events until the conversation is cleared"
    );
    outbox.clear_conversation(ConversationId(1));
    outbox.push(&note(conversation_topic(1), "99"));
    assert_eq!(drain(&outbox), ["99"]);
}

#[test]
fn a_single_frame_may_exceed_the_queue_limit() {
    let outbox = Outbox::new();

    outbox.push(&note(
        conversation_topic(1),
        &"7".repeat(2 * MAX_QUEUED_BYTES),
    ));

    assert_eq!(drain(&outbox), ["7".repeat(2 * MAX_QUEUED_BYTES)]);
}

#[test]
fn unrecoverable_events_overflow_permanently() {
    let outbox = Outbox::new();
    for _ in 0..300 {
        outbox.push(&note(Topic::Space(SpaceId(3)), &"x".repeat(1024)));
    }

    assert!(outbox.queued_bytes() <= MAX_QUEUED_BYTES + 2048);
    assert_eq!(drain(&outbox), ["overflow"]);
}

#[test]
fn a_control_is_sent_first_and_only_once() {
    let outbox = Outbox::new();
    let control = SocketControl::RightsChanged(SpaceId(3));
    let envelope = Arc::new(Envelope::control(UserId(1), control));
    outbox.push(&note(conversation_topic(1), "5"));
    outbox.push(&envelope);
    outbox.push(&envelope);

    assert_eq!(drain(&outbox), ["RightsChanged(SpaceId(3))", "5"]);
}

#[test]
fn a_barrier_keeps_its_position_and_is_not_dropped_with_a_backlog() {
    let outbox = Outbox::new();
    outbox.push(&delta(1, 1, 0, "a"));
    outbox.push_barrier(ConversationId(1));
    outbox.push(&delta(1, 1, 1, "b"));
    assert_eq!(drain(&outbox), ["0+a", "mark 1", "1+b"]);

    outbox.push_barrier(ConversationId(1));
    for _ in 0..300 {
        outbox.push(&note(conversation_topic(1), &"x".repeat(1024)));
    }

    assert_eq!(drain(&outbox), ["lost 1", "mark 1"]);
}

#[tokio::test]
async fn a_waiting_reader_is_woken_by_a_new_event() {
    let outbox = Outbox::new();
    let reader = tokio::spawn({
        let outbox = outbox.clone();
        async move { matches!(outbox.next().await, NextItem::Envelope(_)) }
    });
    tokio::task::yield_now().await;

    outbox.push(&note(conversation_topic(1), "5"));

    assert!(reader.await.unwrap());
}

proptest! {
    /// The popped deltas of a run add up to its text, whenever items are popped.
    #[test]
    fn merging_deltas_does_not_change_the_text(steps in proptest::collection::vec((0..3usize, "\\PC{1,4}", any::<bool>()), 1..60)) {
        let outbox = Outbox::new();
        let mut sent = vec![String::new(); 3];
        let mut received = vec![String::new(); 3];
        let mut receive = |outbox: &Outbox, all: bool| {
            while let Some(next) = outbox.try_next() {
                if let NextItem::Envelope(it) = next && let Payload::Delta(delta) = &it.payload {
                    let text = &mut received[delta.conversation as usize];
                    assert_eq!(delta.offset, utf16_len(text));
                    text.push_str(&delta.text);
                }
                if !all {
                    break;
                }
            }
        };
        for (conversation, text, is_popped) in steps {
            outbox.push(&delta(conversation as i64, conversation as u128, utf16_len(&sent[conversation]), &text));
            sent[conversation].push_str(&text);
            if is_popped {
                receive(&outbox, false);
            }
        }
        receive(&outbox, true);
        prop_assert_eq!(sent, received);
    }

    /// However much is pushed, the queue is within its limit or has a single frame.
    #[test]
    fn queued_bytes_are_bounded(steps in proptest::collection::vec((0..4i64, 1..100_000usize), 1..30)) {
        let outbox = Outbox::new();
        for (conversation, size) in steps {
            let topic = if conversation == 0 { Topic::Space(SpaceId(1)) } else { conversation_topic(conversation) };
            let envelope = note(topic, &"x".repeat(size));
            outbox.push(&envelope);
            prop_assert!(outbox.queued_bytes() <= MAX_QUEUED_BYTES + envelope.size());
        }
    }
}
