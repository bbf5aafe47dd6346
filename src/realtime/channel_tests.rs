//! What listeners of a topic get when several nodes tell of one conversation.

use super::Channel;
use super::MOST_PARKED;
use super::Truth;
use crate::ids::ConversationId;
use crate::realtime::event::Cargo;
use crate::realtime::event::Envelope;
use crate::realtime::event::Mark;
use crate::realtime::outbox::Next;
use crate::realtime::outbox::Outbox;
use crate::realtime::topic::Topic;
use proptest::prelude::*;
use std::sync::Arc;
use uuid::Uuid;

const HERE: ConversationId = ConversationId(7);
const RUN: Uuid = Uuid::from_u128(1);

fn of(cargo: Cargo) -> Arc<Envelope> {
    let topic = Topic::Conversation(HERE);
    Arc::new(Envelope { topic, cargo })
}

fn durable(rev: i64) -> Arc<Envelope> {
    let json = rev.to_string().into();
    of(Cargo::Frame {
        json,
        rev: Some(rev),
    })
}

fn mark(mark: Mark) -> Arc<Envelope> {
    of(Cargo::Stream {
        json: format!("{mark:?}").into(),
        run: RUN,
        lease: 1,
        mark,
    })
}

fn channel() -> (Channel, Arc<Outbox>) {
    let (mut channel, outbox) = (Channel::default(), Outbox::new());
    channel.add(&outbox);
    channel.begun(4, None);
    (channel, outbox)
}

fn heard(outbox: &Outbox) -> Vec<String> {
    let all = std::iter::from_fn(|| outbox.try_next());
    all.map(|next| match next {
        Next::Envelope(it) => match &it.cargo {
            Cargo::Frame { json, .. } | Cargo::Stream { json, .. } => json.to_string(),
            other => panic!("only frames were given: {other:?}"),
        },
        Next::Lost(_) => "lost".to_owned(),
        other => panic!("only frames were given: {other:?}"),
    })
    .collect()
}

#[test]
fn an_event_that_came_too_early_waits_for_the_one_before_it() {
    let (mut channel, outbox) = channel();

    assert!(channel.give(durable(6), true).is_parked);
    channel.give(mark(Mark::Start), true);
    channel.give(durable(8), true);
    assert_eq!(heard(&outbox), [""; 0]);
    channel.give(durable(5), true);
    assert_eq!(heard(&outbox), ["5", "6", "Start"]);
    channel.give(durable(7), true);

    assert_eq!(heard(&outbox), ["7", "8"]);
}

#[test]
fn without_other_nodes_nothing_waits() {
    let (mut channel, outbox) = channel();

    assert!(!channel.give(durable(6), false).is_parked);

    assert_eq!(heard(&outbox), ["6"]);
}

#[test]
fn nothing_waits_for_ever() {
    let (mut channel, outbox) = channel();
    channel.give(durable(6), true);
    channel.wait_no_longer();
    assert_eq!(heard(&outbox), ["6"]);

    for rev in (0..=MOST_PARKED as i64).map(|it| 8 + it) {
        channel.give(durable(rev), true);
    }

    assert_eq!(heard(&outbox).len(), MOST_PARKED + 1);
}

#[test]
fn listeners_are_behind_when_they_were_given_less_or_see_the_wrong_one_writing() {
    let truth = |rev, running: Option<Uuid>| Truth {
        conversation: HERE,
        rev,
        running,
    };
    let (mut channel, outbox) = channel();
    assert!(!channel.is_behind(&truth(4, None)));
    assert!(channel.is_behind(&truth(5, None)));
    assert!(channel.is_behind(&truth(4, Some(RUN))));
    channel.give(mark(Mark::Start), true);
    assert!(!channel.is_behind(&truth(4, Some(RUN))));
    assert!(channel.is_behind(&truth(4, None)));
    // It has ended since, or begun: the next look will tell.
    assert!(!channel.is_behind(&truth(3, None)));

    channel.lose(HERE);

    assert!(!channel.is_behind(&truth(9, None)));
    assert_eq!(heard(&outbox), ["lost"]);
}

#[test]
fn who_begins_later_does_not_hide_what_others_missed() {
    let (mut channel, _outbox) = channel();

    channel.begun(6, None);

    assert!(channel.is_behind(&Truth {
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
            channel.give(durable(rev), true);
        }
        let heard: Vec<i64> = heard(&outbox).iter().filter_map(|it| it.parse().ok()).collect();
        let expected: Vec<i64> = (5..25).collect();
        prop_assert_eq!(&heard[..20], &expected[..]);
    }
}
