//! The hub of a node: subscribes outboxes to topics, pushes each published envelope to the outbox
//! of every subscriber on this node, and queues it for the other nodes.
//!
//! **Invariant:** publishing never waits for a subscriber. An outbox is bounded: it queues an
//! envelope, or drops it and records the loss; a slow client does not affect others.
//!
//! **Invariant:** all subscribers of a topic get its envelopes in the same order.
//!
//! With several nodes, [`Hub::publish`] also sends each envelope to the [`ClusterBus`], and
//! [`Hub::publish_local`] delivers what other nodes sent. Subscribers do not notice a difference.

use std::sync::Arc;

use base::ids::{ConversationId, UserId};
use dashmap::{DashMap, Entry};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::channel::{Channel, DatabasePosition};
use crate::cluster::bus::ClusterBus;
use crate::cluster::message::MessageBody;
use crate::envelope::Envelope;
use crate::metrics::HubMetrics;
use crate::outbox::Outbox;
use crate::topic::Topic;

/// The hub of this node. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct Hub {
    /// Contains a topic exactly while it has subscribers. The lock puts the envelopes of a topic in
    /// one order.
    channels: Arc<DashMap<Topic, Mutex<Channel>>>,
    metrics: Arc<HubMetrics>,
    bus: ClusterBus,
    reordering: Arc<ReorderingTopics>,
}

/// Topics in which an envelope waits for a missing predecessor.
#[derive(Default)]
struct ReorderingTopics {
    topics: Mutex<Vec<Topic>>,
    wakeup: Notify,
}

impl Hub {
    /// Creates a hub for a single node.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a hub that also publishes to other nodes.
    pub fn with_bus(bus: ClusterBus) -> Self {
        Self {
            bus,
            ..Self::default()
        }
    }

    /// Returns the bus to other nodes.
    pub fn bus(&self) -> &ClusterBus {
        &self.bus
    }

    /// Delivers the envelope to all current subscribers of its topic, on every node.
    ///
    /// It is already encoded; each further subscriber costs one pointer in a queue.
    pub fn publish(&self, envelope: Envelope) {
        if self.bus.state().is_some() {
            self.bus.enqueue(MessageBody::Envelope(envelope.clone()));
        }
        self.publish_local(envelope);
    }

    /// Delivers the envelope to all subscribers of its topic on this node.
    pub fn publish_local(&self, envelope: Envelope) {
        self.metrics.count_published(&envelope.payload);
        let topic = envelope.topic;
        let Some(channel) = self.channels.get(&topic) else {
            return;
        };
        let can_reorder = self.bus.is_connected();
        let report = channel.lock().deliver(Arc::new(envelope), can_reorder);
        if report.n_dropped > 0 {
            self.metrics.dropped.inc_by(report.n_dropped);
        }
        if report.is_reordering {
            self.reordering.topics.lock().push(topic);
            self.reordering.wakeup.notify_one();
        }
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> &HubMetrics {
        &self.metrics
    }

    /// Subscribes `outbox` to `topic`. Subscribing twice has no effect.
    pub fn subscribe(&self, topic: Topic, outbox: &Arc<Outbox>) {
        self.channels
            .entry(topic)
            .or_default()
            .lock()
            .add_subscriber(outbox);
    }

    /// Unsubscribes `outbox`. The topic is removed with its last subscriber.
    pub fn unsubscribe(&self, topic: Topic, outbox: &Arc<Outbox>) {
        let Entry::Occupied(channel) = self.channels.entry(topic) else {
            return;
        };
        let is_empty = channel.get().lock().remove_subscriber(outbox);
        if is_empty {
            channel.remove();
        }
    }

    /// Records that a subscriber started with a snapshot: see [`Channel::stream_started`].
    pub fn stream_started(
        &self,
        conversation: ConversationId,
        rev: i64,
        running: Option<uuid::Uuid>,
    ) {
        if let Some(channel) = self.channels.get(&Topic::Conversation(conversation)) {
            channel.lock().stream_started(rev, running);
        }
    }

    /// Makes the subscribers of a conversation subscribe again if they received less than the
    /// database has. Returns whether this was necessary.
    pub fn check_position(&self, position: &DatabasePosition) -> bool {
        let Some(channel) = self
            .channels
            .get(&Topic::Conversation(position.conversation))
        else {
            return false;
        };
        let mut channel = channel.lock();
        let is_behind = channel.is_behind(position);
        if is_behind {
            channel.mark_gap(position.conversation);
        }
        is_behind
    }

    /// Returns whether the topic has subscribers on this node.
    pub fn has_subscribers(&self, topic: Topic) -> bool {
        self.channels.contains_key(&topic)
    }

    /// Returns the conversations with subscribers on this node.
    pub fn subscribed_conversations(&self) -> Vec<ConversationId> {
        let topics = self.channels.iter().map(|it| *it.key());
        let conversations = topics.filter_map(|it| match it {
            Topic::Conversation(id) => Some(id),
            _ => None,
        });
        conversations.collect()
    }

    /// Returns the users with a socket on this node.
    pub fn subscribed_users(&self) -> Vec<UserId> {
        let topics = self.channels.iter().map(|it| *it.key());
        let people = topics.filter_map(|it| match it {
            Topic::User(id) => Some(id),
            _ => None,
        });
        people.collect()
    }

    /// Delivers envelopes that waited for `timeout` in vain, while it is polled.
    pub async fn run_reorder_timeout(&self, timeout: std::time::Duration) {
        loop {
            self.reordering.wakeup.notified().await;
            tokio::time::sleep(timeout).await;
            let topics = std::mem::take(&mut *self.reordering.topics.lock());
            for topic in topics {
                if let Some(channel) = self.channels.get(&topic) {
                    let n_dropped = channel.lock().release_reorder_buffer();
                    self.metrics.dropped.inc_by(n_dropped);
                }
            }
        }
    }

    /// Returns the number of topics with subscribers.
    pub fn n_topics(&self) -> usize {
        self.channels.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::ids::{ConversationId, SpaceId};
    use serde::Serialize;

    use super::Hub;
    use crate::envelope::{Envelope, Event, Payload};
    use crate::outbox::{MAX_QUEUED_BYTES, NextItem, Outbox};
    use crate::topic::Topic;

    #[derive(Serialize)]
    struct Tick {
        n: usize,
    }

    impl Event for Tick {
        fn name(&self) -> &'static str {
            "tick"
        }
    }

    const HERE: Topic = Topic::Conversation(ConversationId(1));
    const THERE: Topic = Topic::Space(SpaceId(1));

    fn received(outbox: &Outbox) -> Vec<String> {
        std::iter::from_fn(|| outbox.try_next())
            .map(|next| match next {
                NextItem::Envelope(it) => match &it.payload {
                    Payload::Frame { json, .. } => json.to_string(),
                    other => panic!("unexpected item: {other:?}"),
                },
                other => panic!("unexpected item: {other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_subscriber_receives_its_topics_and_no_others() {
        let hub = Hub::new();
        let outbox = Outbox::new();
        hub.subscribe(HERE, &outbox);
        hub.subscribe(HERE, &outbox);

        hub.publish(Envelope::plain(HERE, &Tick { n: 1 }));
        hub.publish(Envelope::plain(THERE, &Tick { n: 2 }));
        hub.unsubscribe(HERE, &outbox);
        hub.publish(Envelope::plain(HERE, &Tick { n: 3 }));

        assert_eq!(received(&outbox), [r#"{"type":"tick","n":1}"#]);
    }

    #[test]
    fn a_topic_is_removed_with_its_last_subscriber() {
        let hub = Hub::new();
        let (ann, bob) = (Outbox::new(), Outbox::new());
        hub.subscribe(HERE, &ann);
        hub.subscribe(HERE, &bob);

        hub.unsubscribe(HERE, &ann);
        hub.unsubscribe(HERE, &ann);
        assert_eq!(hub.n_topics(), 1);
        hub.unsubscribe(HERE, &bob);
        hub.unsubscribe(THERE, &bob);

        assert_eq!(hub.n_topics(), 0);
    }

    #[test]
    fn all_subscribers_share_one_encoding() {
        let hub = Hub::new();
        let (ann, bob) = (Outbox::new(), Outbox::new());
        hub.subscribe(HERE, &ann);
        hub.subscribe(HERE, &bob);

        hub.publish(Envelope::plain(HERE, &Tick { n: 1 }));

        let (Some(NextItem::Envelope(one)), Some(NextItem::Envelope(two))) =
            (ann.try_next(), bob.try_next())
        else {
            panic!("a subscriber received no event");
        };
        assert!(Arc::ptr_eq(&one, &two));
    }

    #[test]
    fn concurrent_events_reach_all_subscribers_in_one_order() {
        let hub = Hub::new();
        let subscribers: Vec<_> = (0..8).map(|_| Outbox::new()).collect();
        for outbox in &subscribers {
            hub.subscribe(HERE, outbox);
        }

        std::thread::scope(|scope| {
            for publisher in 0..4 {
                let hub = hub.clone();
                scope.spawn(move || {
                    for n in 0..200 {
                        let n = publisher * 1000 + n;
                        hub.publish(Envelope::plain(HERE, &Tick { n }));
                    }
                });
            }
        });

        let first = received(&subscribers[0]);
        assert_eq!(first.len(), 800);
        assert!(subscribers[1..].iter().all(|it| received(it) == first));
    }

    #[test]
    fn events_dropped_for_a_slow_subscriber_are_counted() {
        let hub = Hub::new();
        let (quick, slow) = (Outbox::new(), Outbox::new());
        hub.subscribe(HERE, &quick);
        hub.subscribe(HERE, &slow);
        let n_sent = 2 * MAX_QUEUED_BYTES / size_of::<Envelope>();

        for n in 0..n_sent {
            hub.publish(Envelope::plain(HERE, &Tick { n }));
            quick.try_next();
        }

        // Only the gap marker is left; everything that was sent is gone.
        assert_eq!(hub.metrics().dropped.get(), n_sent as u64);
        assert!(matches!(slow.try_next(), Some(NextItem::Gap(_))));
        assert!(slow.try_next().is_none());
    }
}
