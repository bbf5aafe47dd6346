//! Fan-out inside a node: who publishes hands over one envelope, every listener's outbox gets it.
//!
//! **Invariant:** publishing never waits for a listener. An outbox is bounded and takes what it is
//! given or drops it and remembers that; nobody's slowness is anybody else's.
//!
//! **Invariant:** all listeners of a topic get its envelopes in one and the same order.
//!
//! With several nodes a [`Bus`] stands behind [`Hub::publish`]: it passes on what is published
//! here, and [`Hub::publish_here`] takes in what other nodes passed on. Listeners do not notice.

use std::sync::Arc;

use dashmap::{DashMap, Entry};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::ids::{ConversationId, UserId};
use crate::realtime::channel::{Channel, DatabasePosition};
use crate::realtime::cluster::bus::ClusterBus;
use crate::realtime::cluster::message::MessageBody;
use crate::realtime::event::Envelope;
use crate::realtime::metrics::HubMetrics;
use crate::realtime::outbox::Outbox;
use crate::realtime::topic::Topic;

/// The loudspeaker of this node. Cloning gives another handle on the same one.
#[derive(Clone, Default)]
pub struct Hub {
    /// A topic is here exactly as long as somebody listens to it. The lock is what gives its
    /// envelopes one order.
    channels: Arc<DashMap<Topic, Mutex<Channel>>>,
    metrics: Arc<HubMetrics>,
    bus: ClusterBus,
    reordering: Arc<ReorderingTopics>,
}

/// Topics in which something waits for what is missing before it.
#[derive(Default)]
struct ReorderingTopics {
    topics: Mutex<Vec<Topic>>,
    wakeup: Notify,
}

impl Hub {
    /// A loudspeaker to which nobody listens, of a house of one node.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with a way to other nodes.
    pub fn with_bus(bus: ClusterBus) -> Self {
        Self {
            bus,
            ..Self::default()
        }
    }

    /// The way to other nodes.
    pub fn bus(&self) -> &ClusterBus {
        &self.bus
    }

    /// Gives the envelope to everyone who listens to its topic now, on any node.
    ///
    /// It was encoded when it was made; what a further listener costs is a pointer in a queue.
    pub fn publish(&self, envelope: Envelope) {
        if self.bus.state().is_some() {
            self.bus.enqueue(MessageBody::Envelope(envelope.clone()));
        }
        self.publish_local(envelope);
    }

    /// Gives the envelope to everyone who listens to its topic on this node.
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

    /// What passed here so far.
    pub fn metrics(&self) -> &HubMetrics {
        &self.metrics
    }

    /// From now on `outbox` gets what is published to `topic`. Twice is the same as once.
    pub fn subscribe(&self, topic: Topic, outbox: &Arc<Outbox>) {
        self.channels
            .entry(topic)
            .or_default()
            .lock()
            .add_subscriber(outbox);
    }

    /// From now on it does not. The topic goes when its last listener leaves.
    pub fn unsubscribe(&self, topic: Topic, outbox: &Arc<Outbox>) {
        let Entry::Occupied(channel) = self.channels.entry(topic) else {
            return;
        };
        let is_empty = channel.get().lock().remove_subscriber(outbox);
        if is_empty {
            channel.remove();
        }
    }

    /// A listener of a conversation began with a snapshot: see [`Channel::begun`].
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

    /// Makes whoever listens to a conversation begin again if they were given less than there is.
    /// Returns whether they were.
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

    /// Whether anybody listens to this here.
    pub fn has_subscribers(&self, topic: Topic) -> bool {
        self.channels.contains_key(&topic)
    }

    /// The conversations to which somebody listens here.
    pub fn subscribed_conversations(&self) -> Vec<ConversationId> {
        let topics = self.channels.iter().map(|it| *it.key());
        let conversations = topics.filter_map(|it| match it {
            Topic::Conversation(id) => Some(id),
            _ => None,
        });
        conversations.collect()
    }

    /// The people with a socket here.
    pub fn subscribed_users(&self) -> Vec<UserId> {
        let topics = self.channels.iter().map(|it| *it.key());
        let people = topics.filter_map(|it| match it {
            Topic::User(id) => Some(id),
            _ => None,
        });
        people.collect()
    }

    /// Gives out what has waited for so long in vain, for as long as it is polled.
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

    /// How many topics have listeners.
    pub fn n_topics(&self) -> usize {
        self.channels.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde::Serialize;

    use super::Hub;
    use crate::ids::{ConversationId, SpaceId};
    use crate::realtime::event::{Envelope, Event, Payload};
    use crate::realtime::outbox::{MAX_QUEUED_BYTES, NextItem, Outbox};
    use crate::realtime::topic::Topic;

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
                    other => panic!("only frames were published: {other:?}"),
                },
                other => panic!("only frames were published: {other:?}"),
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
            panic!("both hear it");
        };
        assert!(Arc::ptr_eq(&one, &two));
    }

    #[test]
    fn concurrent_events_reach_all_subscribers_in_one_order() {
        let hub = Hub::new();
        let listeners: Vec<_> = (0..8).map(|_| Outbox::new()).collect();
        for outbox in &listeners {
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

        let first = received(&listeners[0]);
        assert_eq!(first.len(), 800);
        assert!(listeners[1..].iter().all(|it| received(it) == first));
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

        // Only the word that something was lost is left, and all that was sent is gone.
        assert_eq!(hub.metrics().dropped.get(), n_sent as u64);
        assert!(matches!(slow.try_next(), Some(NextItem::Gap(_))));
        assert!(slow.try_next().is_none());
    }
}
