//! Tests of what subscribers receive when several nodes publish events of one conversation.

use std::sync::Arc;

use base::ids::ConversationId;
use proptest::prelude::*;
use uuid::Uuid;

use super::{Channel, DatabasePosition, MAX_REORDERED};
use crate::envelope::{Envelope, Payload, Receivers, StreamBoundary, StreamFrame};
use crate::outbox::{NextItem, Outbox};
use crate::topic::Topic;

const HERE: ConversationId = ConversationId(7);
const RUN: Uuid = Uuid::from_u128(1);

fn envelope(payload: Payload) -> Arc<Envelope> {
    let topic = Topic::Conversation(HERE);
    let receivers = Receivers::Everyone;
    Arc::new(Envelope {
        topic,
        receivers,
        payload,
    })
}

fn durable(rev: i64) -> Arc<Envelope> {
    let json = rev.to_string().into();
    envelope(Payload::Frame {
        json,
        rev: Some(rev),
    })
}

fn mark(mark: StreamBoundary) -> Arc<Envelope> {
    let json = format!("{mark:?}").into();
    envelope(Payload::Stream(StreamFrame::new(json, (RUN, 1), mark)))
}

fn channel() -> (Channel, Arc<Outbox>) {
    let (mut channel, outbox) = (Channel::default(), Outbox::new());
    channel.add_subscriber(&outbox);
    channel.stream_started(4, None);
    (channel, outbox)
}

fn received(outbox: &Outbox) -> Vec<String> {
    let all = std::iter::from_fn(|| outbox.try_next());
    all.map(|next| match next {
        NextItem::Envelope(it) => match &it.payload {
            Payload::Frame { json, .. } => json.to_string(),
            Payload::Stream(event) => event.json.to_string(),
            other => panic!("unexpected item: {other:?}"),
        },
        NextItem::Gap(_) => "lost".to_owned(),
        other => panic!("unexpected item: {other:?}"),
    })
    .collect()
}

#[test]
fn an_early_event_waits_for_the_event_before_it() {
    let (mut channel, outbox) = channel();

    assert!(channel.deliver(durable(6), true).is_reordering);
    channel.deliver(mark(StreamBoundary::Start), true);
    channel.deliver(durable(8), true);
    assert_eq!(received(&outbox), [""; 0]);
    channel.deliver(durable(5), true);
    assert_eq!(received(&outbox), ["5", "6", "Start"]);
    channel.deliver(durable(7), true);

    assert_eq!(received(&outbox), ["7", "8"]);
}

#[test]
fn without_other_nodes_no_event_is_held_back() {
    let (mut channel, outbox) = channel();

    assert!(!channel.deliver(durable(6), false).is_reordering);

    assert_eq!(received(&outbox), ["6"]);
}

#[test]
fn held_envelopes_are_delivered_before_one_that_may_not_wait() {
    let (mut channel, outbox) = channel();
    channel.deliver(durable(6), true);
    channel.deliver(durable(7), true);

    let report = channel.deliver(durable(5), false);
    assert!(!report.is_reordering);
    channel.deliver(mark(StreamBoundary::Start), false);

    assert_eq!(received(&outbox), ["5", "6", "7", "Start"]);
    channel.deliver(durable(9), true);

    channel.deliver(mark(StreamBoundary::Stop), false);

    assert_eq!(received(&outbox), ["9", "Stop"]);
}

#[test]
fn held_events_are_delivered_on_release_or_when_the_buffer_is_full() {
    let (mut channel, outbox) = channel();
    channel.deliver(durable(6), true);
    channel.release_reorder_buffer();
    assert_eq!(received(&outbox), ["6"]);

    for rev in (0..=MAX_REORDERED as i64).map(|it| 8 + it) {
        channel.deliver(durable(rev), true);
    }

    assert_eq!(received(&outbox).len(), MAX_REORDERED + 1);
}

#[test]
fn subscribers_are_behind_if_they_miss_a_revision_or_see_another_run() {
    let position = |rev, running: Option<Uuid>| DatabasePosition {
        conversation: HERE,
        rev,
        running,
    };
    let (mut channel, outbox) = channel();
    assert!(!channel.is_behind(&position(4, None)));
    assert!(channel.is_behind(&position(5, None)));
    assert!(channel.is_behind(&position(4, Some(RUN))));
    channel.deliver(mark(StreamBoundary::Start), true);
    assert!(!channel.is_behind(&position(4, Some(RUN))));
    assert!(channel.is_behind(&position(4, None)));
    // The run has ended or started since: the next check decides.
    assert!(!channel.is_behind(&position(3, None)));

    channel.mark_gap(HERE);

    assert!(!channel.is_behind(&position(9, None)));
    assert_eq!(received(&outbox), ["lost"]);
}

#[test]
fn a_later_subscriber_does_not_hide_events_that_others_missed() {
    let (mut channel, _outbox) = channel();

    channel.stream_started(6, None);

    assert!(channel.is_behind(&DatabasePosition {
        conversation: HERE,
        rev: 6,
        running: None,
    }));
}

proptest! {
    #[test]
    fn durable_events_are_delivered_in_the_order_of_their_revisions(
        order in Just((5..25i64).collect::<Vec<_>>()).prop_shuffle(),
        repeated in proptest::collection::vec(5..25i64, 0..10),
    ) {
        let (mut channel, outbox) = channel();
        for rev in order.into_iter().chain(repeated) {
            channel.deliver(durable(rev), true);
        }
        let revs: Vec<i64> = received(&outbox).iter().filter_map(|it| it.parse().ok()).collect();
        let expected: Vec<i64> = (5..25).collect();
        prop_assert_eq!(&revs[..20], &expected[..]);
    }
}
