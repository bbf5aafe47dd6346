//! Fan-out inside a node: who publishes hands over one envelope, every listener's outbox gets it.
//!
//! **Invariant:** publishing never waits for a listener. An outbox is bounded and takes what it is
//! given or drops it and remembers that; nobody's slowness is anybody else's.
//!
//! **Invariant:** all listeners of a topic get its envelopes in one and the same order.
//!
//! With several nodes a [`Bus`] stands behind [`Hub::publish`]: it passes on what is published
//! here, and [`Hub::publish_here`] takes in what other nodes passed on. Listeners do not notice.

use crate::ids::ConversationId;
use crate::ids::UserId;
use crate::realtime::bus::handle::Bus;
use crate::realtime::bus::packet::Parcel;
use crate::realtime::channel::Channel;
use crate::realtime::channel::Truth;
use crate::realtime::event::Envelope;
use crate::realtime::meter::Meter;
use crate::realtime::outbox::Outbox;
use crate::realtime::topic::Topic;
use dashmap::DashMap;
use dashmap::Entry;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Notify;

/// The loudspeaker of this node. Cloning gives another handle on the same one.
#[derive(Clone, Default)]
pub struct Hub {
    /// A topic is here exactly as long as somebody listens to it. The lock is what gives its
    /// envelopes one order.
    channels: Arc<DashMap<Topic, Mutex<Channel>>>,
    meter: Arc<Meter>,
    bus: Bus,
    waiting: Arc<Waiting>,
}

/// Topics in which something waits for what is missing before it.
#[derive(Default)]
struct Waiting {
    topics: Mutex<Vec<Topic>>,
    bell: Notify,
}

impl Hub {
    /// A loudspeaker to which nobody listens, of a house of one node.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with a way to other nodes.
    pub fn among(bus: Bus) -> Self {
        Self {
            bus,
            ..Self::default()
        }
    }

    /// The way to other nodes.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Gives the envelope to everyone who listens to its topic now, on any node.
    ///
    /// It was encoded when it was made; what a further listener costs is a pointer in a queue.
    pub fn publish(&self, envelope: Envelope) {
        if self.bus.line().is_some() {
            self.bus.put(Parcel::Envelope(envelope.clone()));
        }
        self.publish_here(envelope);
    }

    /// Gives the envelope to everyone who listens to its topic on this node.
    pub fn publish_here(&self, envelope: Envelope) {
        self.meter.published(&envelope.cargo);
        let topic = envelope.topic;
        let Some(channel) = self.channels.get(&topic) else {
            return;
        };
        let may_wait = self.bus.is_connected();
        let given = channel.lock().give(Arc::new(envelope), may_wait);
        if given.n_dropped > 0 {
            self.meter.dropped.inc_by(given.n_dropped);
        }
        if given.is_parked {
            self.waiting.topics.lock().push(topic);
            self.waiting.bell.notify_one();
        }
    }

    /// What passed here so far.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// From now on `outbox` gets what is published to `topic`. Twice is the same as once.
    pub fn listen(&self, topic: Topic, outbox: &Arc<Outbox>) {
        self.channels.entry(topic).or_default().lock().add(outbox);
    }

    /// From now on it does not. The topic goes when its last listener leaves.
    pub fn leave(&self, topic: Topic, outbox: &Arc<Outbox>) {
        let Entry::Occupied(channel) = self.channels.entry(topic) else {
            return;
        };
        let nobody_left = channel.get().lock().remove(outbox);
        if nobody_left {
            channel.remove();
        }
    }

    /// A listener of a conversation began with a snapshot: see [`Channel::begun`].
    pub fn begun(&self, conversation: ConversationId, rev: i64, running: Option<uuid::Uuid>) {
        if let Some(channel) = self.channels.get(&Topic::Conversation(conversation)) {
            channel.lock().begun(rev, running);
        }
    }

    /// Makes whoever listens to a conversation begin again if they were given less than there is.
    /// Returns whether they were.
    pub fn hold_to(&self, truth: &Truth) -> bool {
        let Some(channel) = self.channels.get(&Topic::Conversation(truth.conversation)) else {
            return false;
        };
        let mut channel = channel.lock();
        let is_behind = channel.is_behind(truth);
        if is_behind {
            channel.lose(truth.conversation);
        }
        is_behind
    }

    /// Whether anybody listens to this here.
    pub fn is_heard(&self, topic: Topic) -> bool {
        self.channels.contains_key(&topic)
    }

    /// The conversations to which somebody listens here.
    pub fn conversations(&self) -> Vec<ConversationId> {
        let topics = self.channels.iter().map(|it| *it.key());
        let conversations = topics.filter_map(|it| match it {
            Topic::Conversation(id) => Some(id),
            _ => None,
        });
        conversations.collect()
    }

    /// The people with a socket here.
    pub fn people(&self) -> Vec<UserId> {
        let topics = self.channels.iter().map(|it| *it.key());
        let people = topics.filter_map(|it| match it {
            Topic::User(id) => Some(id),
            _ => None,
        });
        people.collect()
    }

    /// Gives out what has waited for so long in vain, for as long as it is polled.
    pub async fn keep_giving_up_after(&self, patience: std::time::Duration) {
        loop {
            self.waiting.bell.notified().await;
            tokio::time::sleep(patience).await;
            let topics = std::mem::take(&mut *self.waiting.topics.lock());
            for topic in topics {
                if let Some(channel) = self.channels.get(&topic) {
                    let n_dropped = channel.lock().wait_no_longer();
                    self.meter.dropped.inc_by(n_dropped);
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
    use super::Hub;
    use crate::ids::ConversationId;
    use crate::ids::SpaceId;
    use crate::realtime::event::Cargo;
    use crate::realtime::event::Envelope;
    use crate::realtime::event::Event;
    use crate::realtime::outbox::LIMIT;
    use crate::realtime::outbox::Next;
    use crate::realtime::outbox::Outbox;
    use crate::realtime::topic::Topic;
    use serde::Serialize;
    use std::sync::Arc;

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

    fn heard(outbox: &Outbox) -> Vec<String> {
        std::iter::from_fn(|| outbox.try_next())
            .map(|next| match next {
                Next::Envelope(it) => match &it.cargo {
                    Cargo::Frame { json, .. } => json.to_string(),
                    other => panic!("only frames were published: {other:?}"),
                },
                other => panic!("only frames were published: {other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_listener_hears_its_topics_and_no_others() {
        let hub = Hub::new();
        let outbox = Outbox::new();
        hub.listen(HERE, &outbox);
        hub.listen(HERE, &outbox);

        hub.publish(Envelope::plain(HERE, &Tick { n: 1 }));
        hub.publish(Envelope::plain(THERE, &Tick { n: 2 }));
        hub.leave(HERE, &outbox);
        hub.publish(Envelope::plain(HERE, &Tick { n: 3 }));

        assert_eq!(heard(&outbox), [r#"{"type":"tick","n":1}"#]);
    }

    #[test]
    fn a_topic_goes_with_its_last_listener() {
        let hub = Hub::new();
        let (ann, bob) = (Outbox::new(), Outbox::new());
        hub.listen(HERE, &ann);
        hub.listen(HERE, &bob);

        hub.leave(HERE, &ann);
        hub.leave(HERE, &ann);
        assert_eq!(hub.n_topics(), 1);
        hub.leave(HERE, &bob);
        hub.leave(THERE, &bob);

        assert_eq!(hub.n_topics(), 0);
    }

    #[test]
    fn all_listeners_share_one_encoding() {
        let hub = Hub::new();
        let (ann, bob) = (Outbox::new(), Outbox::new());
        hub.listen(HERE, &ann);
        hub.listen(HERE, &bob);

        hub.publish(Envelope::plain(HERE, &Tick { n: 1 }));

        let (Some(Next::Envelope(one)), Some(Next::Envelope(two))) =
            (ann.try_next(), bob.try_next())
        else {
            panic!("both hear it");
        };
        assert!(Arc::ptr_eq(&one, &two));
    }

    #[test]
    fn publishers_at_once_are_heard_by_all_in_one_order() {
        let hub = Hub::new();
        let listeners: Vec<_> = (0..8).map(|_| Outbox::new()).collect();
        for outbox in &listeners {
            hub.listen(HERE, outbox);
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

        let first = heard(&listeners[0]);
        assert_eq!(first.len(), 800);
        assert!(listeners[1..].iter().all(|it| heard(it) == first));
    }

    #[test]
    fn what_a_slow_listener_loses_is_counted() {
        let hub = Hub::new();
        let (quick, slow) = (Outbox::new(), Outbox::new());
        hub.listen(HERE, &quick);
        hub.listen(HERE, &slow);
        let n_sent = 2 * LIMIT / size_of::<Envelope>();

        for n in 0..n_sent {
            hub.publish(Envelope::plain(HERE, &Tick { n }));
            quick.try_next();
        }

        // Only the word that something was lost is left, and all that was sent is gone.
        assert_eq!(hub.meter().dropped.get(), n_sent as u64);
        assert!(matches!(slow.try_next(), Some(Next::Lost(_))));
        assert!(slow.try_next().is_none());
    }
}
