//! Tests of what subscribers receive when several nodes publish events of one conversation.

use std::sync::Arc;

use base::ids::ConversationId;
use proptest::prelude::*;
use uuid::Uuid;

use super::{Channel, DatabasePosition, MAX_REORDERED};
use crate::event::{Envelope, Payload, StreamBoundary};
use crate::outbox::{NextItem, Outbox};
use crate::topic::Topic;

const HERE: ConversationId = ConversationId(7);
const RUN: Uuid = Uuid::from_u128(1);

fn envelope(cargo: Payload) -> Arc<Envelope> {
    let topic = Topic::Conversation(HERE);
    Arc::new(Envelope {
        topic,
        payload: cargo,
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
    envelope(Payload::Stream {
        json: format!("{mark:?}").into(),
        run: RUN,
        lease: 1,
        mark,
    })
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
            Payload::Frame { json, .. } | Payload::Stream { json, .. } => json.to_string(),
            other => panic!("only frames were delivered: {other:?}"),
        },
        NextItem::Gap(_) => "lost".to_owned(),
        other => panic!("only frames were delivered: {other:?}"),
    })
    .collect()
}

#[test]
fn an_event_that_came_too_early_waits_for_the_one_before_it() {
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
fn without_other_nodes_nothing_waits() {
    let (mut channel, outbox) = channel();

    assert!(!channel.deliver(durable(6), false).is_reordering);

    assert_eq!(received(&outbox), ["6"]);
}

#[test]
fn nothing_waits_forever() {
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
fn subscribers_are_behind_when_they_got_less_or_see_the_wrong_run_writing() {
    let truth = |rev, running: Option<Uuid>| DatabasePosition {
        conversation: HERE,
        rev,
        running,
    };
    let (mut channel, outbox) = channel();
    assert!(!channel.is_behind(&truth(4, None)));
    assert!(channel.is_behind(&truth(5, None)));
    assert!(channel.is_behind(&truth(4, Some(RUN))));
    channel.deliver(mark(StreamBoundary::Start), true);
    assert!(!channel.is_behind(&truth(4, Some(RUN))));
    assert!(channel.is_behind(&truth(4, None)));
    // The run has ended or started since: the next check decides.
    assert!(!channel.is_behind(&truth(3, None)));

    channel.mark_gap(HERE);

    assert!(!channel.is_behind(&truth(9, None)));
    assert_eq!(received(&outbox), ["lost"]);
}

#[test]
fn a_later_subscriber_does_not_hide_what_others_missed() {
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
    fn whatever_the_order_of_arrival_durable_events_leave_in_theirs(
        order in Just((5..25i64).collect::<Vec<_>>()).prop_shuffle(),
        repeated in proptest::collection::vec(5..25i64, 0..10),
    ) {
        let (mut channel, outbox) = channel();
        for rev in order.into_iter().chain(repeated) {
            channel.deliver(durable(rev), true);
        }
        let heard: Vec<i64> = received(&outbox).iter().filter_map(|it| it.parse().ok()).collect();
        let expected: Vec<i64> = (5..25).collect();
        prop_assert_eq!(&heard[..20], &expected[..]);
    }
}
